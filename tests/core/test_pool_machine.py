"""A machine that does to a pool everything that can befall it, in any order."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.pool_steps import assign, name_for_release
from examples import examples
from podtide.core.pool.pool import Address, AppliedContainer, GrantedContainer, Owner, Pool, StateCounts
from podtide.core.pool.states import State

COOLDOWN_SECONDS = 3.0


def pod(number: int) -> Owner:
    return Owner(f"sandbox-{number}", "eth0", f"uid-{number}")


def ips(addresses: tuple[Address, ...] | None) -> list[str]:
    assert addresses is not None
    return [address.ip for address in addresses]


def drained(pool: Pool, now: float) -> list[list[str]]:
    """What the pool gives to newcomers until it has no more."""
    given: list[list[str]] = []
    while (addresses := assign(pool, Owner(f"newcomer-{len(given)}", "eth0"), now)) is not None:
        given.append(ips(addresses))
    return given


class PoolMachine(RuleBasedStateMachine):
    """Everything that can befall a pool, in any order, against a plain model of who has what."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(COOLDOWN_SECONDS)
        self.now = 0.0
        self.version = 0
        self.minted = 0
        self.granted: dict[str, str] = {}  # what the allocator says this node holds
        self.history: list[GrantedContainer] = []
        self.pods: dict[tuple[str, str], str] = {}
        self.named: set[str] = set()

    def told(self, addresses: dict[str, str]) -> GrantedContainer:
        self.version += 1
        told = GrantedContainer("nc", self.version, 4, dict(addresses))
        self.history.append(told)
        return told

    def counts(self) -> StateCounts:
        return self.pool.counts("nc") if "nc" in self.pool.containers() else StateCounts()

    def restored(self) -> Pool:
        pool = Pool(COOLDOWN_SECONDS)
        pool.restore(self.pool.snapshot(), self.now)
        return pool

    @initialize()
    def start(self) -> None:
        self.pool.apply(self.told({}), self.now)

    @rule(passed=st.floats(0, 10))
    def time_passes(self, passed: float) -> None:
        self.now += passed

    @rule(count=st.integers(1, 5), programmed=st.booleans())
    def grant(self, count: int, programmed: bool) -> None:
        new = {}
        for _ in range(count):
            self.minted += 1
            new[f"name-{self.minted}"] = f"10.0.{self.minted // 256}.{self.minted % 256}"
        self.granted |= new
        applied = self.pool.apply(self.told(self.granted), self.now)
        assert set(applied.granted) == set(new)
        assert applied.alarms == ()
        if programmed:
            self.pool.programmed(new, self.now)

    @rule()
    def program_all(self) -> None:
        self.pool.programmed(self.granted, self.now)

    @rule(number=st.integers(1, 8))
    def add(self, number: int) -> None:
        before = self.counts().available
        key = (f"sandbox-{number}", "eth0")
        given = assign(self.pool, pod(number), self.now)
        if key in self.pods:
            assert ips(given) == [self.pods[key]]
        elif given is None:
            assert before == 0
        else:
            self.pods[key] = ips(given)[0]
            assert given[0].name not in self.named

    @rule(number=st.integers(1, 8))
    def delete(self, number: int) -> None:
        key = (f"sandbox-{number}", "eth0")
        freed = self.pool.free(*key, self.now)
        assert [address.ip for address in freed] == ([self.pods.pop(key)] if key in self.pods else [])

    @precondition(lambda self: self.pool.is_granted("nc"))
    @rule(count=st.integers(0, 4))
    def name(self, count: int) -> None:
        counts = self.pool.counts("nc")
        named = name_for_release(self.pool, "nc", count, self.now)
        assert len(named) == min(count, counts.pending_programming + counts.available)
        self.named |= set(named)

    @rule()
    def allocator_releases_what_was_named(self) -> None:
        kept = {name: ip for name, ip in self.granted.items() if name not in self.named}
        expected = set(self.granted) - set(kept)
        applied = self.pool.apply(self.told(kept), self.now)
        assert set(applied.gone) == expected
        assert applied.alarms == ()
        self.granted = kept

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def an_older_version_arrives_late(self, data: st.DataObject) -> None:
        older = data.draw(st.sampled_from(self.history))
        if older.version < self.version:
            assert self.pool.apply(older, self.now) == AppliedContainer()

    @precondition(lambda self: self.granted)
    @rule(data=st.data())
    def the_allocator_loses_one(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.granted)))
        self.granted.pop(name)
        applied = self.pool.apply(self.told(self.granted), self.now)
        assert bool(applied.alarms) == (name not in self.named)

    @rule()
    def the_container_is_withdrawn(self) -> None:
        kept = {address.name for addresses in self.pool.owners().values() for address in addresses}
        assert set(self.pool.withdraw("nc", self.now).gone) == set(self.granted) - kept
        self.granted = {}
        self.history.clear()

    @rule()
    def the_program_starts_again(self) -> None:
        before, self.pool, twin = self.pool, self.restored(), self.restored()
        assert self.pool.snapshot() == before.snapshot()
        if self.pool.is_granted("nc"):
            assert twin.choose_releases("nc", 99) == before.choose_releases("nc", 99)
        later = self.now + COOLDOWN_SECONDS
        assert drained(twin, later) == drained(before, later)

    @invariant()
    def counts_add_up(self) -> None:
        counts = self.counts()
        addresses = list(self.pool.addresses())
        by_state = {state: sum(address.state is state for address in addresses) for state in State}
        assert counts == StateCounts(
            pending_programming=by_state[State.PENDING_PROGRAMMING],
            available=by_state[State.AVAILABLE],
            assigned=by_state[State.ASSIGNED],
            pending_release=by_state[State.PENDING_RELEASE],
            quarantined=by_state[State.QUARANTINED],
            orphaned=by_state[State.ORPHANED],
        )
        assert counts.held == len(self.granted)
        assert counts.held + counts.orphaned == len(addresses) == sum(by_state.values())

    @invariant()
    def no_address_has_two_pods_and_every_pod_keeps_its_own(self) -> None:
        assert {key: ips(addresses)[0] for key, addresses in self.pool.owners().items()} == self.pods
        assert len(set(self.pods.values())) == len(self.pods)
        counts = self.counts()
        assert counts.assigned + counts.orphaned == len(self.pods)

    @invariant()
    def what_was_named_stays_named_until_it_is_gone(self) -> None:
        named = self.pool.named("nc") if "nc" in self.pool.containers() else ()
        assert set(named) == self.named & set(self.granted)


PoolMachine.TestCase.settings = examples(150, stateful_step_count=40)
TestPoolMachine = pytest.mark.slow(PoolMachine.TestCase)
