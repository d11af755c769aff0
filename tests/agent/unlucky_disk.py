"""A Disk that stops the program at a chosen call, or whose syncs fail: for what a journal must survive."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from podtide.runtime.disk import DiskFailed, Lock, Log
from podtide.runtime.memory_disk import MemoryDisk


class Killed(BaseException):
    """The program is no more. Nothing catches this but the test."""


class KeepsAll(Random):
    """Chance by which a crash loses nothing: kill -9 of a program, while the machine goes on."""

    def randint(self, _least: int, most: int) -> int:
        return most


class UnluckyDisk:
    """A disk in memory; the `fatal_call`-th call that writes is the program's last, before or after its effect."""

    def __init__(self, inner: MemoryDisk, *, fatal_call: int = 0, has_effect: bool = False) -> None:
        self.calls = 0
        self.syncs_fail = False
        self._inner = inner
        self._fatal_call = fatal_call
        self._has_effect = has_effect

    def lock(self, name: str) -> Lock:
        return self._inner.lock(name)

    def read(self, name: str) -> bytes | None:
        return self._inner.read(name)

    def replace(self, name: str, content: bytes) -> None:
        with self.call():
            self._inner.replace(name, content)

    def names(self) -> list[str]:
        return self._inner.names()

    def remove(self, name: str) -> None:
        with self.call():
            self._inner.remove(name)

    def open_log(self, name: str, good_bytes: int) -> "_UnluckyLog":
        with self.call():
            return _UnluckyLog(self, self._inner.open_log(name, good_bytes))

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around whatever changes a file."""
        self.calls += 1
        if self.calls == self._fatal_call and not self._has_effect:
            raise Killed
        yield
        if self.calls == self._fatal_call:
            raise Killed


class _UnluckyLog:
    def __init__(self, disk: UnluckyDisk, inner: Log) -> None:
        self._disk = disk
        self._inner = inner

    def append(self, content: bytes) -> None:
        with self._disk.call():
            self._inner.append(content)

    def sync(self) -> None:
        if self._disk.syncs_fail:
            self._inner.close()
            raise DiskFailed("cannot sync: input/output error; check the disk, then start again")
        with self._disk.call():
            self._inner.sync()

    def close(self) -> None:
        self._inner.close()
