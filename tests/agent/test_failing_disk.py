"""A disk that fails under the journal: nothing is appended to what may be lost, and what is read is written anew."""

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.node_bench import Bench
from agent.test_journaled_pool import filled, in_every_state, opened, pod
from agent.test_stopping import started
from podtide.agent.pool.journal import Identity, read_records
from podtide.agent.pool.journal_file import Journal
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import DiskFailed, DiskFull
from podtide.runtime.memory_disk import DiskWeakness, MemoryDisk
from podtide.runtime.randomness import seeded_randomness

JOURNAL = "agent.journal"

AGENT = """
import errno, io, os, stat, sys
from pathlib import Path
from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.core.pool.pool import GrantedContainer, Owner
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.logging import make_logger

kept = JournaledPool.open(
    DirectoryDisk(Path(sys.argv[1])), cooldown_seconds=0.0, clock=SystemClock(), log=make_logger(io.StringIO(), SystemClock())
)
kept.prove_free()
kept.programmed(kept.apply(GrantedContainer("nc", 1, 4, {f"nc-{n}": f"10.0.0.{n}" for n in range(1, 60)})).granted)
kept.shorten_after((Path(sys.argv[1]) / "agent.journal").stat().st_size + 1000)
fsync = os.fsync

def failing(descriptor):
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        raise OSError(int(sys.argv[2]), os.strerror(int(sys.argv[2])))
    fsync(descriptor)

os.fsync = failing
for number in range(1, 60):
    [given] = kept.assign(Owner(f"sandbox-{number}", "eth0", "", "default", "web", "podtide"))
    print(given.ip, flush=True)
"""


def failing_directory_sync(monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    """From now on a directory cannot be synced."""
    sync = os.fsync

    def fail(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112 - a descriptor is no path
            raise OSError(reason, os.strerror(reason))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.parametrize("reason", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE])
def test_a_directory_that_cannot_be_synced_after_the_renaming_is_a_failed_disk_whatever_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    disk = DirectoryDisk(tmp_path)
    journal = Journal.begin(disk, JOURNAL, b"state")
    failing_directory_sync(monkeypatch, reason)
    with pytest.raises(
        DiskFailed, match=r"^cannot sync the renaming of .*; check the disk, then start again$"
    ):
        journal.rewrite(b"new state")
    with pytest.raises(DiskFailed, match="open it again"):
        journal.append(b"to a file without a name", durable=False)


@pytest.mark.parametrize("reason", [errno.EIO, errno.ENOSPC])
def test_what_a_real_agent_answered_before_its_directory_failed_is_what_the_next_one_reads(
    tmp_path: Path, reason: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", AGENT, str(tmp_path), str(reason)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answered = ended.stdout.split()
    assert ended.returncode != 0
    assert "DiskFailed: cannot sync the renaming of" in ended.stderr
    assert 0 < len(answered) < 59, "it ended when the journal was to be shortened, and not before"
    kept = opened(DirectoryDisk(tmp_path))
    held = [address.ip for owner in kept.pool.owners().values() for address in owner]
    assert sorted(held) == sorted(answered), "what was answered is known, and what was not is free"
    kept.close()


def test_a_log_that_cannot_be_opened_after_the_renaming_ends_the_journal_too(tmp_path: Path) -> None:
    disk = DirectoryDisk(tmp_path)
    journal = Journal.begin(disk, JOURNAL, b"state")

    def full(_name: str, _good_bytes: int) -> None:
        raise DiskFull("cannot open agent.journal: no space left; free some")

    disk.open_log = full  # type: ignore[method-assign,assignment] # the moment is too short to be hit otherwise
    with pytest.raises(DiskFailed, match=r"but the new file cannot be opened: cannot open agent\.journal"):
        journal.rewrite(b"new state")
    with pytest.raises(DiskFailed):
        journal.append(b"more", durable=False)
    assert [each.payload for each in read_records(disk.read(JOURNAL) or b"").records] == [b"new state"]


def test_a_journal_that_there_is_no_room_to_write_anew_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = in_every_state(DirectoryDisk(tmp_path))
    before = kept.pool.snapshot()
    kept.close()

    def full(_disk: DirectoryDisk, name: str, _content: bytes) -> None:
        raise DiskFull(f"cannot write {name}: no space left; free some")

    monkeypatch.setattr(DirectoryDisk, "replace", full)
    again = opened(DirectoryDisk(tmp_path))
    assert again.pool.snapshot() == before
    again.close()


@pytest.mark.parametrize("weakness", [DiskWeakness.REPLACE, DiskWeakness.RENAME])
@pytest.mark.parametrize("loses_power", [False, True])
def test_a_journal_whose_rewriting_failed_takes_nothing_more_and_tells_what_was_so(
    weakness: DiskWeakness, loses_power: bool
) -> None:
    for seed in range(8):
        disk = MemoryDisk()
        kept = in_every_state(disk)
        kept.bind(Identity("node-uid", "another"))  # durable, and so is all before it
        before = kept.pool.snapshot()
        kept.shorten_after(-(10**6))
        disk.fail_at(weakness)
        for _ in range(2):
            with pytest.raises(DiskFailed):
                kept.assign(pod(2))
        if loses_power:
            disk.crash(seeded_randomness(seed))
        else:
            disk.kill()
        assert opened(disk).pool.snapshot() == before


@pytest.mark.parametrize("crashes", [0, 1, 2])
def test_a_promise_that_is_read_after_its_sync_failed_is_kept_when_the_power_goes(crashes: int) -> None:
    """The kernel has it in memory, says that it is written when asked again, and it is not."""
    disk = MemoryDisk()
    kept = filled(disk, 1, 2, 3)
    disk.fail_at(DiskWeakness.SYNC)
    with pytest.raises(DiskFailed):
        kept.name_for_release("nc", 1)
    disk.kill()
    kept = opened(disk)
    assert len(kept.pool.named("nc")) == 1, "it was read, and so may be told to others"
    for seed in range(crashes):
        disk.crash(seeded_randomness(seed))
        kept = opened(disk)
    assert kept.lost == ""
    assert len(kept.pool.named("nc")) == 1


def test_power_lost_right_after_a_failed_sync_leaves_what_was_durable() -> None:
    disk = MemoryDisk()
    kept = filled(disk, 1, 2, 3)
    named = kept.name_for_release("nc", 1)
    disk.fail_at(DiskWeakness.SYNC)
    with pytest.raises(DiskFailed):
        kept.name_for_release("nc", 1)
    disk.crash(seeded_randomness(1))
    kept = opened(disk)
    assert kept.lost == ""
    assert kept.pool.named("nc") == named


async def fails(bench: Bench, weakness: DiskWeakness) -> None:
    agent, ended = await started(bench)
    await bench.add("before")
    agent._journaled.shorten_after(-(10**6))
    bench.disk.fail_at(weakness)
    with pytest.raises(DiskFailed):
        await bench.add("sandbox")
    with pytest.raises(DiskFailed, match="input/output error"):
        await asyncio.wait_for(ended, 1)
    agent.close()


@pytest.mark.parametrize("weakness", [DiskWeakness.REPLACE, DiskWeakness.RENAME])
async def test_an_agent_whose_journal_failed_ends_and_the_next_one_knows_who_has_what(
    weakness: DiskWeakness,
) -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller():
        await fails(bench, weakness)
        bench.disk.kill()
        agent, task = await started(bench)
        assert [sandbox for sandbox, _ in agent.pool.owners()] == ["before"]
        task.cancel()
        await asyncio.wait({task})
        agent.close()
