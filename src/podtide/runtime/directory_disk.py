"""The real Disk: a directory of the machine's file system.

Durable means that fsync has returned, for the file and for the directory that names it. A file is replaced by
writing a new one beside it and renaming that; the new one's name is always the same, so that a program killed in
between leaves nothing that piles up.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from podtide.runtime.disk import DiskError, DiskFailed, DiskFull, Locked, NotPermitted, WrongPath

_ADVICE: list[tuple[type[DiskError], set[int], str]] = [
    (
        DiskFull,
        {errno.ENOSPC, errno.EDQUOT, errno.EFBIG},
        "free space there, raise the quota, or choose another directory",
    ),
    (
        NotPermitted,
        {errno.EACCES, errno.EPERM, errno.EROFS},
        "run as a user who may, or choose a directory that is writable",
    ),
    (
        WrongPath,
        {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG},
        "make sure the directory is there, and holds nothing of another kind under that name",
    ),
]
_BROKEN_ADVICE = "check the disk, then start again"
_OWNER_ONLY = 0o600


class DirectoryDisk:
    """A directory, created if it does not exist, readable by its owner only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._prefix = f"{directory}/"
        with _explained("make", directory):
            if not directory.is_dir():
                directory.mkdir(mode=0o700, parents=True)
                _sync_directory(directory.parent)

    def lock(self, name: str) -> "_FileLock":
        """Take the lock of this name for the life of the process; Locked when another has it."""
        return _FileLock(self._directory / name)

    def read(self, name: str) -> bytes | None:
        """The content, or None."""
        # Every ADD looks for a file that is mostly not there: joining and opening a Path would take twice as long.
        try:
            with open(self._prefix + name, "rb") as file:  # noqa: PTH123 - see above
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _explanation("read", self._directory / name, error) from error

    def names(self) -> list[str]:
        """The names, without those that are being written."""
        with _explained("read", self._directory):
            return sorted(name for name in os.listdir(self._directory) if not name.startswith("."))  # noqa: PTH208 - names are wanted, not paths

    def replace(self, name: str, content: bytes, *, mode: int = _OWNER_ONLY) -> None:
        """Replace the file durably: write a new one, sync, rename, sync the directory."""
        path = self._directory / name
        beside = self._directory / f".{name}.new"
        with _explained("write", path):
            try:
                descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
                try:
                    os.fchmod(descriptor, mode)  # else a file left beside, or the umask, would decide
                    _write_all(descriptor, content)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                beside.rename(path)
            except OSError:
                with suppress(OSError):
                    beside.unlink()
                raise
        try:
            _sync_directory(self._directory)
        except OSError as error:
            # Whatever the reason, even a lack of space: the new file has the name by now.
            raise DiskFailed(_line("sync the renaming of", path, error, _BROKEN_ADVICE)) from error

    def remove(self, name: str) -> None:
        """Delete the file durably, if it exists."""
        path = self._directory / name
        with _explained("remove", path):
            path.unlink(missing_ok=True)
            _sync_directory(self._directory)

    def open_log(self, name: str, good_bytes: int) -> "_FileLog":
        """Open the file for appending after its first `good_bytes`."""
        return _FileLog(self._directory / name, good_bytes)


class _FileLog:
    """A file open at its end."""

    def __init__(self, path: Path, good_bytes: int) -> None:
        self._path = path
        self._length = good_bytes
        self._usable = True
        with _explained("open", path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWNER_ONLY)
            try:
                self._cut_beyond_good()
                _sync_directory(path.parent)
            except (OSError, DiskFailed):
                self.close()
                raise

    def append(self, content: bytes) -> None:
        self._check_usable()
        with _explained("append to", self._path):
            try:
                _write_all(self._descriptor, content)
            except OSError:
                # What was written of it would be a torn record in the middle, once the next append succeeds.
                self._take_back()
                raise
        self._length += len(content)

    def sync(self) -> None:
        self._check_usable()
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._usable = False
            raise DiskFailed(_line("sync", self._path, error, _BROKEN_ADVICE)) from error

    def close(self) -> None:
        self._usable = False
        descriptor, self._descriptor = self._descriptor, _NO_DESCRIPTOR
        try:
            _closed(descriptor)
        except OSError as error:
            raise DiskFailed(_line("close", self._path, error, _BROKEN_ADVICE)) from error

    def _take_back(self) -> None:
        self._usable = False
        try:
            os.ftruncate(self._descriptor, self._length)
        except OSError as error:
            raise DiskFailed(_line("undo an append to", self._path, error, _BROKEN_ADVICE)) from error
        self._usable = True

    def _cut_beyond_good(self) -> None:
        length = os.fstat(self._descriptor).st_size
        if length < self._length:
            raise DiskFailed(
                f"cannot append to {self._path} at byte {self._length}: it has only {length}, so it is not the file "
                "that was read; find out who else writes there, then start again"
            )
        os.ftruncate(self._descriptor, self._length)
        os.fsync(self._descriptor)

    def _check_usable(self) -> None:
        if not self._usable:
            raise DiskFailed(
                f"cannot write to {self._path}: this log was closed or has failed; open it again"
            )


class _FileLock:
    """An flock, which the kernel releases when the process ends. The file names the holder, for people."""

    def __init__(self, path: Path) -> None:
        with _explained("lock", path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(self._descriptor, 0)
                _write_all(self._descriptor, str(os.getpid()).encode())
            except BlockingIOError:
                holder = os.read(self._descriptor, 32).decode(errors="replace") or "another"
                self.release()
                raise Locked(
                    f"cannot lock {path}: process {holder} holds it; stop that one, or choose another directory"
                ) from None
            except OSError:
                self.release()
                raise

    def release(self) -> None:
        self._descriptor = _closed(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


_NO_DESCRIPTOR = -1


def _closed(descriptor: int) -> int:
    """A context that closes the descriptor exactly once: a second time, its number may be another file's."""
    if descriptor != _NO_DESCRIPTOR:
        os.close(descriptor)
    return _NO_DESCRIPTOR


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _explained(action: str, path: Path) -> Iterator[None]:
    """A context that turns the kernel's errors into ones that say what was asked, what is wrong, and what to do."""
    try:
        yield
    except OSError as error:
        raise _explanation(action, path, error) from error


def _explanation(action: str, path: Path, error: OSError) -> DiskError:
    for kind, codes, advice in _ADVICE:
        if error.errno in codes:
            return kind(_line(action, path, error, advice))
    return DiskFailed(_line(action, path, error, _BROKEN_ADVICE))


def _line(action: str, path: Path, error: OSError, advice: str) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"cannot {action} {path}: {reason}; {advice}"
