"""What only the disk in memory can show: losing power, and programs that are killed."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.runtime.disk import DiskFailed
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.randomness import seeded_randomness


@given(st.binary(), st.binary(), st.integers())
def test_a_crash_keeps_what_was_synced_and_a_beginning_of_the_rest(
    synced: bytes, appended: bytes, seed: int
) -> None:
    disk = MemoryDisk()
    disk.replace("pool", b"whole")
    log = disk.open_log("journal", 0)
    log.append(synced)
    log.sync()
    log.append(appended)
    disk.crash(seeded_randomness(seed))
    survived = disk.read("journal")
    assert survived is not None
    assert survived.startswith(synced)
    assert (synced + appended).startswith(survived)
    assert disk.read("pool") == b"whole"


def test_a_crash_tears_the_last_append_anywhere() -> None:
    lengths = set()
    for seed in range(100):
        disk = MemoryDisk()
        disk.open_log("journal", 0).append(b"12345")
        disk.crash(seeded_randomness(seed))
        lengths.add(len(disk.read("journal") or b""))
    assert lengths == {0, 1, 2, 3, 4, 5}


def test_what_survived_a_crash_survives_the_next() -> None:
    disk = MemoryDisk()
    disk.open_log("journal", 0).append(b"x" * 1000)
    disk.crash(seeded_randomness(1))
    survived = disk.read("journal")
    disk.crash(seeded_randomness(2))
    assert disk.read("journal") == survived


def test_what_a_killed_program_appended_is_kept_synced_or_not() -> None:
    disk = MemoryDisk()
    disk.open_log("journal", 0).append(b"12345")
    disk.kill()
    assert disk.read("journal") == b"12345"


@pytest.mark.parametrize("end", [MemoryDisk.kill, lambda disk: disk.crash(seeded_randomness(1))])
def test_who_lived_before_a_sudden_end_has_neither_log_nor_lock_after_it(
    end: Callable[[MemoryDisk], None],
) -> None:
    disk = MemoryDisk()
    log = disk.open_log("journal", 0)
    lock = disk.lock("agent.lock")
    end(disk)
    successor = disk.lock("agent.lock")
    lock.release()
    with pytest.raises(DiskFailed, match="open it again"):
        log.append(b"from the dead")
    assert disk.locked == {"agent.lock"}
    successor.release()
    assert disk.locked == set()
