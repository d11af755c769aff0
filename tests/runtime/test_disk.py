"""The contract of the Disk port, for both adapters."""

import resource
import string
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import Disk, DiskFailed, DiskFull, Locked
from podtide.runtime.memory_disk import MemoryDisk


class Bench(Protocol):
    """A disk under test, and a way to fill it up."""

    @property
    def disk(self) -> Disk: ...

    def no_space_left(self) -> AbstractContextManager[None]: ...


class MemoryBench:
    def __init__(self) -> None:
        self.disk = MemoryDisk()

    @contextmanager
    def no_space_left(self) -> Iterator[None]:
        self.disk.full = True
        yield
        self.disk.full = False


class DirectoryBench:
    def __init__(self, directory: Path) -> None:
        self.disk = DirectoryDisk(directory)

    @contextmanager
    def no_space_left(self) -> Iterator[None]:
        """The kernel refuses to let any file grow past ten bytes: the first of them are written, then it fails."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["memory", "directory"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return MemoryBench() if request.param == "memory" else DirectoryBench(tmp_path / "state")


@pytest.fixture
def disk(bench: Bench) -> Disk:
    return bench.disk


def test_a_file_that_was_never_written_is_none_and_an_empty_one_is_empty(disk: Disk) -> None:
    assert disk.read("pool") is None
    disk.replace("pool", b"")
    assert disk.read("pool") == b""


def test_a_replaced_file_has_the_new_content_whole(disk: Disk) -> None:
    disk.replace("pool", b"a longer text")
    disk.replace("pool", b"short")
    assert disk.read("pool") == b"short"


def test_files_are_listed_by_name_and_gone_once_they_are_removed(disk: Disk) -> None:
    assert disk.names() == []
    for name in ("b", "a@eth0"):
        disk.replace(name, b"content")
    assert disk.names() == ["a@eth0", "b"]
    disk.remove("b")
    disk.remove("never there")
    assert disk.names() == ["a@eth0"]
    assert disk.read("b") is None


def test_a_log_keeps_what_is_appended_in_order(disk: Disk) -> None:
    log = disk.open_log("journal", 0)
    log.append(b"one,")
    log.append(b"two,")
    log.sync()
    assert disk.read("journal") == b"one,two,"


def test_a_log_opened_again_goes_on_behind_what_was_good(disk: Disk) -> None:
    first = disk.open_log("journal", 0)
    first.append(b"good,to")
    first.close()
    again = disk.open_log("journal", len(b"good,"))
    assert disk.read("journal") == b"good,"
    again.append(b"next,")
    assert disk.read("journal") == b"good,next,"


def test_a_log_that_is_shorter_than_what_was_read_is_not_opened(disk: Disk) -> None:
    disk.open_log("journal", 0).append(b"12345")
    with pytest.raises(DiskFailed, match=r"^cannot append to .*journal at byte 6: it has only 5"):
        disk.open_log("journal", 6)


def test_a_log_may_take_over_a_replaced_file(disk: Disk) -> None:
    old = disk.open_log("journal", 0)
    old.append(b"a,b,c,")
    old.close()
    disk.replace("journal", b"snapshot,")
    disk.open_log("journal", len(b"snapshot,")).append(b"d,")
    assert disk.read("journal") == b"snapshot,d,"


def test_a_closed_log_refuses_to_write(disk: Disk) -> None:
    log = disk.open_log("journal", 0)
    log.close()
    log.close()
    with pytest.raises(DiskFailed, match="open it again"):
        log.append(b"late")
    with pytest.raises(DiskFailed, match="open it again"):
        log.sync()


def test_a_lock_is_held_by_one_until_it_is_released(disk: Disk) -> None:
    with disk.lock("agent.lock"):
        with pytest.raises(Locked, match=r"^cannot lock .*agent\.lock: "):
            disk.lock("agent.lock")
        with disk.lock("other.lock"):
            pass
    held = disk.lock("agent.lock")
    held.release()
    held.release()
    disk.lock("agent.lock")


def test_a_full_disk_changes_nothing_and_works_again_when_there_is_room(bench: Bench) -> None:
    disk = bench.disk
    disk.replace("pool", b"old")
    log = disk.open_log("journal", 0)
    log.append(b"before,")
    with bench.no_space_left():
        with pytest.raises(DiskFull, match=r"^cannot append to .*journal: .*; free "):
            log.append(string.ascii_letters.encode())
        with pytest.raises(DiskFull, match=r"^cannot write .*pool: .*; free "):
            disk.replace("pool", string.ascii_letters.encode())
        assert disk.read("pool") == b"old"
        assert disk.read("journal") == b"before,"
    log.append(b"after,")
    log.sync()
    disk.replace("pool", b"new")
    assert disk.read("journal") == b"before,after,"
    assert disk.read("pool") == b"new"
