"""A Disk in memory that can lose power: for simulations, and to prove what a journal survives.

`crash` keeps what was synced and, of what was only appended, a beginning of random length, cut anywhere. `kill` keeps
everything: what a program appended is in the kernel's cache, and only the process ends. Both close every open log and
release every lock: code of an ended program that still runs gets an error instead of writing into its successor's files.

`fail_at` has the disk fail once, as real ones do. What a sync could not write is read as before, while the power lasts;
syncing again reports success, and it is gone all the same when the power is.
"""

from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Self

from podtide.runtime.disk import DiskFailed, DiskFull, Locked


class DiskWeakness(Enum):
    """The operation at which a disk is made to fail."""

    SYNC = "the sync of a log"
    REPLACE = "the sync of a file that is to replace another, before it is renamed"
    RENAME = "the sync of the directory, after the file was renamed"


class _MemoryFile:
    """Content, and how much of it is durable."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self.synced_bytes = len(content)
        self.dropped: list[slice] = []
        """What could not be written, and passes for written."""

    def fail_to_sync(self) -> None:
        """Lose what is not durable, although it counts as written from now on."""
        self.dropped.append(slice(self.synced_bytes, len(self.content)))
        self.synced_bytes = len(self.content)

    def crash(self, randomness: Random) -> None:
        """Keep what is durable, and any prefix of the rest. What was dropped reads as zeros."""
        survives = randomness.randint(self.synced_bytes, len(self.content))
        for each in self.dropped:
            self.content[each] = bytes(each.stop - each.start)
        self.dropped.clear()
        del self.content[survives:]
        self.synced_bytes = survives


class MemoryDisk:
    """Files in a dict. While `full` is true nothing can be written."""

    def __init__(self) -> None:
        self.full = False
        self.life = 0
        """How often the programs that use it have come to a sudden end."""
        self.locked: set[str] = set()
        self._files: dict[str, _MemoryFile] = {}
        self._before: dict[str, _MemoryFile] = {}
        """What was there under a name, where it is unknown whether the renaming is durable."""
        self._weakness: DiskWeakness | None = None
        self._when_failed: Callable[[], None] = lambda: None

    def lock(self, name: str) -> "_MemoryLock":
        """Take the lock of this name until it is released, or until the crash."""
        if name in self.locked:
            raise Locked(f"cannot lock {name}: it is held already; release it first")
        return _MemoryLock(self, name)

    def read(self, name: str) -> bytes | None:
        """The content, or None."""
        file = self._files.get(name)
        return None if file is None else bytes(file.content)

    def replace(self, name: str, content: bytes) -> None:
        """Replace the file durably."""
        self.check_space("write", name)
        if self.fails(DiskWeakness.REPLACE):
            raise _failed("write", name)
        before, self._files[name] = self._files.get(name), _MemoryFile(content)
        if self.fails(DiskWeakness.RENAME):
            if before is not None:
                self._before[name] = before
            raise _failed("sync the renaming of", name)
        self._before.pop(name, None)

    def names(self) -> list[str]:
        """The names."""
        return sorted(self._files)

    def remove(self, name: str) -> None:
        """Remove it for good."""
        self._files.pop(name, None)
        self._before.pop(name, None)

    def open_log(self, name: str, good_bytes: int) -> "_MemoryLog":
        """Open the file for appending after its first `good_bytes`."""
        file = self._files.setdefault(name, _MemoryFile(b""))
        if len(file.content) < good_bytes:
            raise DiskFailed(
                f"cannot append to {name} at byte {good_bytes}: it has only {len(file.content)}, so it is not the "
                "file that was read"
            )
        del file.content[good_bytes:]
        file.dropped = [slice(each.start, min(each.stop, good_bytes)) for each in file.dropped]
        file.synced_bytes = good_bytes
        return _MemoryLog(self, name, file)

    def kill(self) -> None:
        """End the programs that use the disk at this instant; the machine goes on."""
        self.life += 1
        self.locked.clear()

    def crash(self, randomness: Random) -> None:
        """Lose power, and restart: only what is durable is certain to be left."""
        self.kill()
        for name, before in self._before.items():
            if randomness.randint(0, 1):
                self._files[name] = before
        self._before.clear()
        for file in self._files.values():
            file.crash(randomness)

    def fail_at(self, weakness: DiskWeakness, then: Callable[[], None] = lambda: None) -> None:
        """Fail once, at the next such operation, and call `then`."""
        self._weakness, self._when_failed = weakness, then

    def recover(self) -> None:
        """Cancel the failure that was planned."""
        self._weakness = None

    def fails(self, weakness: DiskWeakness) -> bool:
        """Whether this operation is the one to fail at."""
        if self._weakness is not weakness:
            return False
        self._weakness = None
        self._when_failed()
        return True

    def check_space(self, action: str, name: str) -> None:
        """Raise DiskFull while the disk is full."""
        if self.full:
            raise DiskFull(f"cannot {action} {name}: no space left; free some")


class _MemoryLog:
    """A file open at its end, in one life of the disk."""

    def __init__(self, disk: MemoryDisk, name: str, file: _MemoryFile) -> None:
        self._disk = disk
        self._name = name
        self._file = file
        self._life = disk.life
        self._closed = False

    def append(self, content: bytes) -> None:
        self._check_usable()
        self._disk.check_space("append to", self._name)
        self._file.content += content

    def sync(self) -> None:
        self._check_usable()
        if self._disk.fails(DiskWeakness.SYNC):
            self._closed = True
            self._file.fail_to_sync()
            raise _failed("sync", self._name)
        self._file.synced_bytes = len(self._file.content)

    def close(self) -> None:
        self._closed = True

    def _check_usable(self) -> None:
        if self._closed or self._life != self._disk.life:
            raise DiskFailed(
                f"cannot write to {self._name}: this log was closed or has failed; open it again"
            )


class _MemoryLock:
    """A name in the disk's set of locks, in one life of the disk."""

    def __init__(self, disk: MemoryDisk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._life = disk.life
        disk.locked.add(name)

    def release(self) -> None:
        if self._life == self._disk.life:
            self._disk.locked.discard(self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _failed(action: str, name: str) -> DiskFailed:
    return DiskFailed(f"cannot {action} {name}: input/output error; check the disk, then start again")
