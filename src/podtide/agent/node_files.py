"""Removes the files that an agent keeps on its node: journals and lock, the socket, and notes of DELs.

Only what agents write is removed, by name. A directory goes when nothing else is in it: where it is shared, as with an
allocator's database, what is another program's stays.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podtide.agent.api.deletion_notes import DIRECTORY_NAME
from podtide.agent.networks import address_record
from podtide.agent.pool import journal, pool_storage
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import NotPermitted

SOCKET = "agent.sock"
_JOURNALS = (
    journal.JOURNAL,
    pool_storage.DAMAGED_JOURNAL,
    address_record.JOURNAL,
    address_record.DAMAGED_JOURNAL,
)


def remove_state(directory: Path) -> Iterator[Path]:
    """Remove an agent's records. Returns what was removed. Locked if an agent runs on them."""
    if not directory.is_dir():
        return
    names = [*_JOURNALS, *(f".{name}.new" for name in _JOURNALS), pool_storage.LOCK]
    if (directory / pool_storage.LOCK).exists():
        lock = DirectoryDisk(directory).lock(pool_storage.LOCK)
        try:
            yield from _remove_files(directory, names)
        finally:
            lock.release()
    else:
        yield from _remove_files(directory, names)
    yield from _remove_if_empty(directory)


def remove_socket(directory: Path) -> Iterator[Path]:
    """Remove the socket, and the notes beside it. Returns what was removed."""
    if not directory.is_dir():
        return
    notes = directory / DIRECTORY_NAME
    if notes.is_dir():
        yield from _remove_files(notes, sorted(note.name for note in notes.iterdir()))
        yield from _remove_if_empty(notes)
    yield from _remove_files(directory, [SOCKET])
    yield from _remove_if_empty(directory)


def _remove_files(directory: Path, names: list[str]) -> Iterator[Path]:
    for path in (directory / name for name in names):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise NotPermitted(
                f"cannot remove {path}: {(error.strerror or str(error)).lower()}; run as root, or remove it by hand"
            ) from error
        yield path


def _remove_if_empty(directory: Path) -> Iterator[Path]:
    with suppress(OSError):  # something of others is in it, or it is a mount point
        directory.rmdir()
        yield directory
