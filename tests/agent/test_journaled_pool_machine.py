"""A kept pool through everything that can stop a program: killed, cut off from power, its journal damaged or full disk."""

import io
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent.unlucky_disk import KeepsAll, Killed, UnluckyDisk
from examples import examples
from podtide.agent.pool import journal_file
from podtide.agent.pool.journal import Identity
from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.core.pool.pool import GrantedContainer, Owner
from podtide.core.pool.snapshot import PoolSnapshot
from podtide.core.pool.states import State
from podtide.runtime.clock import SystemClock
from podtide.runtime.disk import Disk, DiskFull
from podtide.runtime.logging import make_logger
from podtide.runtime.memory_disk import MemoryDisk

JOURNAL = "agent.journal"
SHORT_JOURNAL_BYTES = 700
"""So short that it is rewritten every few changes."""
ADDRESSES = [f"10.0.0.{number}" for number in range(1, 13)]

Known = tuple[PoolSnapshot, Identity | None, str]


def opened(disk: Disk) -> JournaledPool:
    clock = SystemClock()
    return JournaledPool.open(disk, cooldown_seconds=0.0, clock=clock, log=make_logger(io.StringIO(), clock))


def known(kept: JournaledPool) -> Known:
    return kept.pool.snapshot(), kept.identity, kept.lost


def pod(number: int) -> Owner:
    return Owner(f"sandbox-{number}", "eth0", f"uid-{number}")


class JournaledPoolMachine(RuleBasedStateMachine):
    """One node with one network container, whose addresses come again under new names after they were released."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(journal_file, "_SLACK_BYTES", SHORT_JOURNAL_BYTES)
        self.disk = MemoryDisk()
        self.kept = opened(self.disk)
        self.since_durable = [known(self.kept)]
        self.granted: dict[str, str] = {}
        self.version = 0
        self.minted = 0
        self.promised: set[str] = set()
        self.pods: dict[tuple[str, str], str] = {}

    def teardown(self) -> None:
        self.patch.undo()

    def happened(self, *, durable: bool = False) -> None:
        if durable:
            self.since_durable.clear()
        self.since_durable.append(known(self.kept))

    def tell(self) -> None:
        """The agent hears of its container. While records are lost, of what is not in them it knows nothing."""
        self.version += 1
        container = GrantedContainer("nc", self.version, 4, dict(self.granted))
        if self.kept.lost and "nc" not in self.kept.pool.containers():
            self.kept.recover(container, self.promised)
        else:
            self.kept.apply(container)
        self.happened()

    @initialize()
    def nothing_is_lost_at_first(self) -> None:
        self.kept.prove_free()
        self.happened()

    # What happens in any case

    @rule(count=st.integers(1, 5))
    def grant(self, count: int) -> None:
        free = [ip for ip in ADDRESSES if ip not in {*self.granted.values(), *self.pods.values()}]
        for ip in free[:count]:
            self.minted += 1
            self.granted[f"name-{self.minted}"] = ip
        self.tell()
        self.kept.programmed(self.granted)
        self.happened()

    @rule(number=st.integers(1, 3))
    def bind(self, number: int) -> None:
        identity = Identity(f"node-{number}", f"config-{number}")
        is_new = identity != self.kept.identity
        self.kept.bind(identity)
        self.happened(durable=is_new)

    @precondition(lambda self: not self.kept.lost)
    @rule(number=st.integers(1, 8))
    def add(self, number: int) -> None:
        key = (f"sandbox-{number}", "eth0")
        given = self.kept.assign(pod(number))
        self.happened()
        if given is not None:
            (address,) = given
            assert self.pods.setdefault(key, address.ip) == address.ip

    @precondition(lambda self: not self.kept.lost)
    @rule(number=st.integers(1, 8))
    def delete(self, number: int) -> None:
        key = (f"sandbox-{number}", "eth0")
        freed = self.kept.free(*key)
        self.happened()
        assert [address.ip for address in freed] == ([self.pods.pop(key)] if key in self.pods else [])

    @precondition(lambda self: self.kept.pool.is_granted("nc"))
    @rule(count=st.integers(1, 4))
    def name(self, count: int) -> None:
        named = self.kept.name_for_release("nc", count)
        self.promised |= set(named)
        self.happened(durable=bool(named))

    @rule()
    def the_allocator_releases_what_was_named(self) -> None:
        self.granted = {name: ip for name, ip in self.granted.items() if name not in self.promised}
        self.tell()

    @precondition(lambda self: not self.kept.lost)
    @rule()
    def the_container_is_withdrawn(self) -> None:
        self.granted = {}
        self.kept.withdraw("nc")
        self.happened()

    @precondition(lambda self: not self.kept.lost)
    @rule(number=st.integers(1, 8))
    def the_disk_is_full(self, number: int) -> None:
        before = known(self.kept)
        self.disk.full = True
        try:
            self.kept.assign(pod(number))
            self.kept.free(f"sandbox-{number}", "eth0")
        except DiskFull:
            pass
        self.disk.full = False
        assert known(self.kept) == before

    # What stops the program

    @rule()
    def the_program_is_killed(self) -> None:
        before = known(self.kept)
        self.disk.crash(KeepsAll())
        self.kept = opened(self.disk)
        assert known(self.kept) == before

    @rule(seed=st.integers())
    def power_is_cut(self, seed: int) -> None:
        self.disk.crash(Random(seed))
        self.kept = opened(self.disk)
        assert known(self.kept) in self.since_durable
        self.since_durable = [known(self.kept)]
        self.pods = {key: address.ip for key, (address,) in self.kept.pool.owners().items()}

    # What loses the records

    @rule(data=st.data())
    def the_journal_is_damaged(self, data: st.DataObject) -> None:
        content = bytearray(self.disk.read(JOURNAL) or b"")
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1
        self.disk.replace(JOURNAL, bytes(content))
        self.disk.crash(KeepsAll())
        self.kept = opened(self.disk)
        assert self.kept.lost
        assert known(self.kept)[:2] == (PoolSnapshot(), None)
        self.since_durable = [known(self.kept)]
        self.tell()
        self.pods = {key: ip for key, ip in self.pods.items() if ip in self.granted.values()}

    @precondition(lambda self: self.kept.lost and self.pods)
    @rule(data=st.data())
    def a_pod_shows_its_address(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.pods)))
        self.kept.adopt(self.pods[key], Owner(*key))
        self.happened()

    @precondition(lambda self: self.kept.lost and self.kept.pool.is_granted("nc"))
    @rule()
    def every_pod_has_shown_its_address(self) -> None:
        for key, ip in self.pods.items():
            self.kept.adopt(ip, Owner(*key))
            self.happened()
        self.kept.prove_free()
        self.happened()

    # What is so at any time

    @invariant()
    def what_was_promised_is_nobodys(self) -> None:
        states = {address.name: address.state for address in self.kept.pool.addresses()}
        assert {states[name] for name in self.promised & states.keys()} <= {State.PENDING_RELEASE}

    @invariant()
    def every_pod_has_its_own_address_and_nobody_elses(self) -> None:
        owned = {key: address.ip for key, (address,) in self.kept.pool.owners().items()}
        if not self.kept.lost:
            assert owned == self.pods
        assert len(set(self.pods.values())) == len(self.pods)
        available = {a.ip for a in self.kept.pool.addresses() if a.state is State.AVAILABLE}
        assert not available & set(self.pods.values())

    @invariant()
    def the_journal_stays_short(self) -> None:
        assert len(self.disk.read(JOURNAL) or b"") < 20_000


JournaledPoolMachine.TestCase.settings = examples(100, stateful_step_count=40)
TestJournaledPoolMachine = pytest.mark.slow(JournaledPoolMachine.TestCase)


def story(kept: JournaledPool, shown: list[Known]) -> None:
    """A little of everything; `shown` are the states that the program has shown, in order."""
    for step in (
        kept.prove_free,
        lambda: kept.bind(Identity("node", "config")),
        lambda: kept.apply(GrantedContainer("nc", 1, 4, {f"name-{n}": ip for n, ip in enumerate(ADDRESSES)})),
        lambda: kept.programmed(f"name-{n}" for n in range(12)),
        lambda: kept.assign(pod(1)),
        lambda: kept.assign(pod(2)),
        lambda: kept.free("sandbox-1", "eth0"),
        lambda: kept.name_for_release("nc", 2),
        lambda: kept.assign(pod(3)),
    ):
        step()
        shown.append(known(kept))


DURABLE_STEPS = (2, 8)


@pytest.mark.parametrize("has_effect", [False, True])
@pytest.mark.parametrize("seed", [None, *range(8)])
def test_whatever_call_to_the_disk_is_the_last_what_is_found_is_what_was(
    monkeypatch: pytest.MonkeyPatch, seed: int | None, has_effect: bool
) -> None:
    """Killed, or cut off from power by a seed. Every change here is preceded by a rewrite of the journal."""
    monkeypatch.setattr(journal_file, "_SLACK_BYTES", -(10**9))
    states: list[Known] = [(PoolSnapshot(), None, "there was no journal")]
    healthy = UnluckyDisk(MemoryDisk())
    story(opened(healthy), states)
    for fatal_call in range(1, healthy.calls + 1):
        disk, shown = MemoryDisk(), list[Known]()
        with pytest.raises(Killed):
            story(opened(UnluckyDisk(disk, fatal_call=fatal_call, has_effect=has_effect)), shown)
        disk.crash(KeepsAll() if seed is None else Random(seed))
        last = len(shown)
        may_be_forgotten = seed is not None and last > 0 and last not in DURABLE_STEPS
        assert known(opened(disk)) in states[last - may_be_forgotten : last + 2]
