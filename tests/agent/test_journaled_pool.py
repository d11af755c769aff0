"""A pool that survives the program: what is written when, and what is believed of what is found."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent.unlucky_disk import KeepsAll, UnluckyDisk
from podtide import __version__
from podtide.agent.pool import journal_file
from podtide.agent.pool.file_format import NewerFormat
from podtide.agent.pool.journal import Identity, encode_record, read_records
from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.core.pool.pool import Address, AppliedContainer, GrantedContainer, Owner, StateCounts
from podtide.runtime.clock import Clock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import Disk, DiskFailed, DiskFull, Locked
from podtide.runtime.logging import make_logger
from podtide.runtime.memory_disk import MemoryDisk

JOURNAL = "agent.journal"
DAMAGED = "agent.journal.damaged"
ME = Identity("node-uid", "config-uid")


class StillClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


def opened(disk: Disk, clock: Clock | None = None, lines: io.StringIO | None = None) -> JournaledPool:
    clock = clock or StillClock()
    log = make_logger(lines or io.StringIO(), clock)
    return JournaledPool.open(disk, cooldown_seconds=30.0, clock=clock, log=log)


def container(*numbers: int, version: int = 1, name: str = "nc") -> GrantedContainer:
    return GrantedContainer(name, version, 4, {f"{name}-{n}": f"10.0.0.{n}" for n in numbers})


def pod(number: int) -> Owner:
    return Owner(f"sandbox-{number}", "eth0", f"uid-{number}", "default", f"web-{number}", "podtide")


def ips(addresses: tuple[Address, ...] | None) -> list[str]:
    assert addresses is not None
    return [address.ip for address in addresses]


def filled(disk: Disk, *numbers: int) -> JournaledPool:
    kept = opened(disk)
    kept.prove_free()
    kept.bind(ME)
    kept.programmed(kept.apply(container(*numbers)).granted)
    return kept


def killed_and_reopened(disk: MemoryDisk) -> JournaledPool:
    disk.crash(KeepsAll())
    return opened(disk)


def records(disk: Disk) -> list[str]:
    found = read_records(disk.read(JOURNAL) or b"").records
    return [json.loads(record.payload).get("did", "beginning") for record in found]


def test_a_node_without_a_journal_believes_nothing_until_it_is_proven() -> None:
    disk = MemoryDisk()
    kept = opened(disk)
    assert kept.identity is None
    assert kept.lost == "there was no journal"
    assert killed_and_reopened(disk).lost == "there was no journal"
    kept = killed_and_reopened(disk)
    kept.prove_free()
    assert kept.lost == ""
    assert killed_and_reopened(disk).lost == ""


def test_a_node_that_is_started_again_before_it_has_anything_speaks_of_no_loss() -> None:
    disk, lines = MemoryDisk(), io.StringIO()
    opened(disk)
    disk.crash(KeepsAll())
    opened(disk, lines=lines)
    [line] = [json.loads(each) for each in lines.getvalue().splitlines()]
    assert line["event"].startswith("the journal is still empty: nothing is free until")
    assert "lost" not in line


def test_everything_is_as_it_was_after_a_kill() -> None:
    disk = MemoryDisk()
    kept = filled(disk, 1, 2, 3, 4)
    kept.assign(pod(1))
    kept.assign(pod(2))
    kept.free("sandbox-1", "eth0")
    kept.name_for_release("nc", 1)
    kept.apply(container(1, 2, 3, 4, 5, version=2))
    again = killed_and_reopened(disk)
    assert again.identity == ME
    assert again.lost == ""
    assert again.pool.snapshot() == kept.pool.snapshot()
    assert again.pool.counts("nc") == StateCounts(
        pending_programming=1, available=2, assigned=1, pending_release=1
    )
    assert again.pool.held_by("sandbox-2", "eth0")[0].owner == pod(2)


def test_the_same_holds_on_a_real_disk(tmp_path: Path) -> None:
    disk = DirectoryDisk(tmp_path)
    kept = filled(disk, 1, 2)
    kept.assign(pod(1))
    kept.name_for_release("nc", 1)
    before = kept.pool.snapshot()
    kept.close()
    assert opened(disk).pool.snapshot() == before


def test_a_second_agent_on_the_same_directory_is_refused_until_the_first_is_gone() -> None:
    disk = MemoryDisk()
    first = opened(disk)
    with pytest.raises(Locked):
        opened(disk)
    first.close()
    opened(disk).close()


def test_an_agent_that_cannot_open_its_journal_does_not_keep_the_lock() -> None:
    disk = MemoryDisk()
    disk.full = True
    with pytest.raises(DiskFull):
        opened(disk)
    disk.full = False
    opened(disk)


def test_what_changes_nothing_is_not_written() -> None:
    disk = MemoryDisk()
    kept = filled(disk, 1)
    kept.assign(pod(1))
    before = disk.read(JOURNAL)
    kept.bind(ME)
    assert kept.apply(container(1)) == AppliedContainer()
    assert kept.apply(container(version=0)) == AppliedContainer()
    assert kept.recover(container(1), ()) == AppliedContainer()
    assert kept.withdraw("unknown") == AppliedContainer()
    kept.programmed(["nc-1", "unknown"])
    assert not kept.adopt("10.0.0.1", pod(2))
    assert not kept.adopt("10.0.0.9", pod(2))
    assert kept.prove_free() == 0
    assert ips(kept.assign(pod(1))) == ["10.0.0.1"]
    assert kept.assign(pod(2)) is None
    assert kept.free("unknown", "eth0") == ()
    assert kept.name_for_release("nc", 5) == ()
    assert disk.read(JOURNAL) == before


def test_wanted_addresses_are_given_and_written() -> None:
    disk = MemoryDisk()
    kept = filled(disk, 1, 2, 3)
    assert ips(kept.assign(pod(1), ("10.0.0.3",))) == ["10.0.0.3"]
    assert kept.assign(pod(2), ("10.0.0.3",)) is None
    assert ips(killed_and_reopened(disk).assign(pod(1))) == ["10.0.0.3"]


def test_a_choice_is_replayed_as_it_was_made_whatever_the_time() -> None:
    """By the clock of the second life, the address that was chosen would not have been the first choice."""
    disk, clock = MemoryDisk(), StillClock()
    kept = opened(disk, clock)
    kept.programmed(kept.apply(container(1, 2)).granted)
    kept.assign(pod(1))
    kept.free("sandbox-1", "eth0")
    clock.now += 10
    assert ips(kept.assign(pod(2))) == ["10.0.0.2"]
    kept.free("sandbox-2", "eth0")
    clock.now += 60
    assert ips(kept.assign(pod(3))) == ["10.0.0.1"]
    disk.crash(KeepsAll())
    assert opened(disk, StillClock()).pool.snapshot() == kept.pool.snapshot()


def test_used_addresses_cool_down_anew_after_a_restart() -> None:
    disk, clock = MemoryDisk(), StillClock()
    kept = filled(disk, 1)
    kept.assign(pod(1))
    kept.free("sandbox-1", "eth0")
    disk.crash(KeepsAll())
    kept = opened(disk, clock)
    kept.programmed(kept.apply(container(1, 2, version=2)).granted)
    clock.now += 29
    assert ips(kept.pool.choose(clock.now)) == ["10.0.0.2"]
    clock.now += 1
    assert ips(kept.pool.choose(clock.now)) == ["10.0.0.1"]


CHANGES: dict[str, Callable[[JournaledPool], object]] = {
    "bind": lambda kept: kept.bind(Identity("other", "other")),
    "apply": lambda kept: kept.apply(container(1, 2, 3, version=2)),
    "recover": lambda kept: kept.recover(container(1, 2, 3, version=2), ()),
    "withdraw": lambda kept: kept.withdraw("nc"),
    "programmed": lambda kept: kept.programmed(["nc-9"]),
    "assign": lambda kept: kept.assign(pod(2)),
    "free": lambda kept: kept.free("sandbox-1", "eth0"),
    "name for release": lambda kept: kept.name_for_release("nc", 1),
    "adopt": lambda kept: kept.adopt("10.0.0.8", pod(8)),
    "prove free": lambda kept: kept.prove_free(),
}


def in_every_state(disk: Disk) -> JournaledPool:
    """A pool in which each of CHANGES has something to do."""
    kept = filled(disk, 1, 2)
    kept.assign(pod(1))
    kept.apply(GrantedContainer("more", 1, 4, {"nc-9": "10.0.0.9"}))
    kept.recover(GrantedContainer("found", 1, 4, {"nc-8": "10.0.0.8"}), ())
    return kept


@pytest.mark.parametrize("change", CHANGES)
def test_a_full_disk_refuses_a_change_and_leaves_the_pool_as_it_was(change: str) -> None:
    disk = MemoryDisk()
    kept = in_every_state(disk)
    before = kept.pool.snapshot(), kept.identity
    disk.full = True
    with pytest.raises(DiskFull):
        CHANGES[change](kept)
    assert (kept.pool.snapshot(), kept.identity) == before
    disk.full = False
    CHANGES[change](kept)
    assert (kept.pool.snapshot(), kept.identity) != before
    assert killed_and_reopened(disk).pool.snapshot() == kept.pool.snapshot()


@pytest.mark.parametrize("change", ["bind", "name for release"])
def test_a_failed_sync_refuses_the_change_and_all_that_follow(change: str) -> None:
    inner = MemoryDisk()
    disk = UnluckyDisk(inner)
    kept = in_every_state(disk)
    before = kept.pool.snapshot(), kept.identity
    disk.syncs_fail = True
    with pytest.raises(DiskFailed) as first:
        CHANGES[change](kept)
    disk.syncs_fail = False
    with pytest.raises(DiskFailed) as later:
        kept.assign(pod(2))
    assert later.value is first.value
    assert (kept.pool.snapshot(), kept.identity) == before
    assert killed_and_reopened(inner).lost == ""


def test_assigning_and_freeing_do_not_wait_for_the_disk_and_what_is_promised_does() -> None:
    disk = UnluckyDisk(MemoryDisk())
    kept = in_every_state(disk)
    waits = {}
    for name, change in reversed(CHANGES.items()):
        before = disk.calls
        change(kept)
        waits[name] = disk.calls - before == 2
    assert {name for name, waited in waits.items() if waited} == {"bind", "name for release"}


def test_a_damaged_journal_is_kept_aside_and_believed_in_nothing() -> None:
    disk = MemoryDisk()
    filled(disk, 1, 2).assign(pod(1))
    damaged = (disk.read(JOURNAL) or b"").replace(b"10.0.0.1", b"10.0.0.7", 1)
    disk.replace(JOURNAL, damaged)
    disk.crash(KeepsAll())
    lines = io.StringIO()
    kept = opened(disk, lines=lines)
    assert list(kept.pool.addresses()) == []
    assert kept.identity is None
    assert kept.lost.startswith("the journal cannot be used: the record at byte ")
    assert kept.lost.endswith(f"; it is kept as {DAMAGED}")
    assert disk.read(DAMAGED) == damaged
    said = json.loads(lines.getvalue())
    assert (said["level"], said["reason"]) == ("warning", kept.lost)


def test_a_rebuild_that_is_interrupted_goes_on_where_it_was() -> None:
    disk = MemoryDisk()
    disk.replace(JOURNAL, b"garbage")
    kept = opened(disk)
    lost = kept.lost
    kept.recover(container(1, 2, 3), named=["nc-3"])
    kept.adopt("10.0.0.1", pod(1))
    kept = killed_and_reopened(disk)
    assert kept.lost == lost
    assert kept.pool.counts("nc") == StateCounts(assigned=1, quarantined=1, pending_release=1)
    assert kept.assign(pod(2)) is None
    assert kept.recover(container(1, 2, 3), named=["nc-3"]) == AppliedContainer()
    assert kept.prove_free() == 1
    kept = killed_and_reopened(disk)
    assert kept.lost == ""
    assert ips(kept.assign(pod(2))) == ["10.0.0.2"]
    assert ips(kept.assign(pod(1))) == ["10.0.0.1"]


def test_records_stay_lost_as_long_as_something_is_contested() -> None:
    disk = MemoryDisk()
    kept = opened(disk)
    kept.recover(container(1, 2), named=())
    assert kept.prove_free(contested={"10.0.0.1", "10.9.9.9"}) == 1
    before = disk.read(JOURNAL)
    assert kept.prove_free(contested={"10.0.0.1"}) == 0
    assert disk.read(JOURNAL) == before, "no news is written"
    kept = killed_and_reopened(disk)
    assert kept.lost == "there was no journal"
    assert kept.pool.counts("nc") == StateCounts(available=1, quarantined=1)
    assert kept.prove_free() == 1
    assert killed_and_reopened(disk).lost == ""


def change_record(**fields: object) -> bytes:
    return encode_record(msgspec.json.encode(fields))


BEGINNING = encode_record(b'{"format":1}')


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "its first record is missing or incomplete"),
        (BEGINNING[:-1], "its first record is missing or incomplete"),
        (bytes(100), "its first record is missing or incomplete"),
        (encode_record(b"null"), "the record at byte 0 cannot be understood: "),
        (encode_record(b'{"format":1,"pool":7}'), "the record at byte 0 cannot be understood: "),
        (encode_record(b'{"format":0,"pool":7}'), "it has format 0, and this podtide reads format 1"),
        (
            BEGINNING + change_record(did="danced"),
            f"the record at byte {len(BEGINNING)} cannot be understood: ",
        ),
        (BEGINNING + encode_record(b"\xff"), f"the record at byte {len(BEGINNING)} cannot be understood: "),
        (
            BEGINNING + change_record(did="named", container_id="nc", names=["nc-1"]),
            f"the record at byte {len(BEGINNING)} makes no sense: nc is not in the pool",
        ),
        (
            encode_record(
                b'{"format":1,"pool":{"owners":[{"owner":{"sandbox":"s","interface":"i"},"ips":["10.0.0.1"]}]}}'
            ),
            "the record at byte 0 makes no sense: 10.0.0.1 is not in the pool",
        ),
    ],
)
def test_what_has_a_good_checksum_and_makes_no_sense_is_damage(content: bytes, words: str) -> None:
    disk = MemoryDisk()
    disk.replace(JOURNAL, content)
    kept = opened(disk)
    assert f"the journal cannot be used: {words}" in kept.lost
    assert list(kept.pool.addresses()) == []
    assert disk.read(DAMAGED) == content


def test_a_journal_of_a_newer_podtide_is_no_damage_and_stays_as_it_is() -> None:
    disk = MemoryDisk()
    content = encode_record(b'{"format":2,"podtide":"9.1.0"}') + change_record(did="danced")
    disk.replace(JOURNAL, content)
    for _ in range(2):  # the lock was released
        with pytest.raises(
            NewerFormat, match=r"by podtide 9\.1\.0 in format 2, .* install podtide 9\.1\.0 or newer"
        ):
            opened(disk)
    assert disk.names() == [JOURNAL]
    assert disk.read(JOURNAL) == content


def test_a_journal_says_which_podtide_wrote_it() -> None:
    disk = MemoryDisk()
    filled(disk, 1)
    first = json.loads(read_records(disk.read(JOURNAL) or b"").records[0].payload)
    assert (first["format"], first["podtide"]) == (1, __version__)


def test_only_the_last_damaged_journal_is_kept() -> None:
    disk = MemoryDisk()
    for garbage in (b"first", b"second"):
        disk.replace(JOURNAL, garbage)
        opened(disk).close()
    assert disk.read(DAMAGED) == b"second"


def test_a_torn_last_record_is_cut_off_and_said() -> None:
    disk = MemoryDisk()
    kept = filled(disk, 1, 2)
    before = kept.pool.snapshot()
    kept.assign(pod(1))
    disk.replace(JOURNAL, (disk.read(JOURNAL) or b"")[:-5])
    disk.crash(KeepsAll())
    lines = io.StringIO()
    again = opened(disk, lines=lines)
    assert again.pool.snapshot() == before
    assert json.loads(lines.getvalue())["torn_bytes"] > 0
    again.assign(pod(2))
    assert killed_and_reopened(disk).pool.snapshot() == again.pool.snapshot()


def test_a_journal_that_is_written_for_years_stays_small() -> None:
    disk = MemoryDisk()
    kept = filled(disk, *range(1, 17))
    largest = 0
    for round_ in range(5000):
        owner = pod(round_ % 3)
        kept.assign(owner)
        kept.free(owner.sandbox, owner.interface)
        if round_ % 100 == 0:
            largest = max(largest, len(disk.read(JOURNAL) or b""))
    assert 200_000 < largest < 300_000
    assert killed_and_reopened(disk).pool.snapshot() == kept.pool.snapshot()


def test_a_journal_that_cannot_be_shortened_is_said_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "_SLACK_BYTES", 100)

    class CannotReplace(MemoryDisk):
        has_room = False

        def replace(self, name: str, content: bytes) -> None:
            self.check_space("write", name)
            if self.read(name) and not self.has_room:
                raise DiskFull(f"cannot write {name}: no space left; free some")
            super().replace(name, content)

    disk, lines = CannotReplace(), io.StringIO()
    kept = opened(disk, lines=lines)
    for version in range(1, 30):
        kept.apply(container(1, version=version))
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert "cannot shorten the journal; going on with the long one" in [line["event"] for line in said]
    disk.has_room = True
    assert killed_and_reopened(disk).pool.version("nc") == 29


def test_the_journal_reads_as_the_story_of_the_node() -> None:
    disk = MemoryDisk()
    kept = filled(disk, 1, 2)
    kept.assign(pod(1))
    kept.free("sandbox-1", "eth0")
    kept.name_for_release("nc", 1)
    kept.withdraw("nc")
    assert records(disk) == [
        "beginning",
        "proven free",
        "bound",
        "applied",
        "programmed",
        "assigned",
        "freed",
        "named",
        "withdrawn",
    ]
