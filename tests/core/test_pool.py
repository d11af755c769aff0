"""The node's pool: the table, who is served with what, and a machine that does everything in any order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podtide.core.address_states import TRANSITIONS, BrokenPool, Event, State
from podtide.core.pool import Address, Applied, Container, Counts, Family, Owner, Pool


def container(*numbers: int, version: int = 1, family: Family = 4, name: str = "nc") -> Container:
    prefix = "10.0.0." if family == 4 else "fd00::"
    return Container(name, version, family, {f"{name}-{n}": f"{prefix}{n}" for n in numbers})


def pool_with(*numbers: int, now: float = 0.0, cooldown_seconds: float = 30.0) -> Pool:
    pool = Pool(cooldown_seconds)
    pool.programmed(pool.apply(container(*numbers), now).granted, now)
    return pool


def pod(number: int) -> Owner:
    return Owner(f"sandbox-{number}", "eth0", f"uid-{number}")


def ips(addresses: tuple[Address, ...] | None) -> list[str]:
    assert addresses is not None
    return [address.ip for address in addresses]


def test_every_state_is_in_the_table_and_can_be_left() -> None:
    assert set(TRANSITIONS) == {None, *State}
    assert all(TRANSITIONS.values())
    reached = {state for row in TRANSITIONS.values() for state in row.values()}
    assert reached == {None, *State}


def test_nothing_leads_out_of_pending_release_but_withdrawal() -> None:
    assert dict(TRANSITIONS[State.PENDING_RELEASE]) == {Event.WITHDRAWN: None}


def test_what_the_table_lacks_stops_the_pool() -> None:
    pool = pool_with(1)
    (address,) = pool.addresses()
    with pytest.raises(
        BrokenPool, match=r"^address 10\.0\.0\.1 \(nc-1\) is Available and cannot be granted: "
    ):
        pool._move(address, Event.GRANTED, 0.0)
    with pytest.raises(BrokenPool, match="is absent and cannot be taken"):
        pool._move(Address("x", "10.0.0.9", "nc"), Event.TAKEN, 0.0)


def test_an_address_is_handed_out_only_once_it_is_programmed() -> None:
    pool = Pool()
    applied = pool.apply(container(1), 0.0)
    assert applied == Applied(granted=("nc-1",))
    assert pool.assign(pod(1), 0.0) is None
    pool.programmed(["nc-1", "unknown"], 0.0)
    assert ips(pool.assign(pod(1), 0.0)) == ["10.0.0.1"]
    pool.programmed(["nc-1"], 0.0)
    assert pool.counts("nc") == Counts(assigned=1)


def test_the_same_sandbox_gets_the_same_address_again() -> None:
    pool = pool_with(1, 2)
    assert pool.assign(pod(1), 0.0) == pool.assign(pod(1), 1.0)
    assert ips(pool.assign(Owner("sandbox-1", "net1"), 1.0)) == ["10.0.0.2"]
    assert set(pool.owners()) == {("sandbox-1", "eth0"), ("sandbox-1", "net1")}


def test_an_empty_pool_gives_nobody_an_address() -> None:
    assert Pool().assign(pod(1), 0.0) is None


def test_freeing_the_unknown_does_nothing() -> None:
    assert pool_with(1).free("nobody", "eth0", 0.0) == ()


def test_the_address_free_longest_is_handed_out_first() -> None:
    pool = pool_with(1, 2, 3, cooldown_seconds=0)
    assert [ips(pool.assign(pod(n), 1.0)) for n in (1, 2, 3)] == [["10.0.0.1"], ["10.0.0.2"], ["10.0.0.3"]]
    for number, at in ((2, 5.0), (1, 6.0), (3, 7.0)):
        pool.free(f"sandbox-{number}", "eth0", at)
    assert [ips(pool.assign(pod(n), 8.0)) for n in (4, 5, 6)] == [["10.0.0.2"], ["10.0.0.1"], ["10.0.0.3"]]


def test_a_released_address_cools_down_unless_nothing_else_is_free() -> None:
    pool = pool_with(1)
    pool.assign(pod(1), 10.0)
    pool.free("sandbox-1", "eth0", 20.0)
    pool.programmed(pool.apply(container(1, 2, 3, version=2), 25.0).granted, 25.0)
    assert ips(pool.assign(pod(2), 26.0)) == ["10.0.0.2"], "freed earlier, but still warm"
    assert ips(pool.assign(pod(3), 50.0)) == ["10.0.0.1"], "cooled down, and free longest"
    pool.free("sandbox-2", "eth0", 51.0)
    assert ips(pool.assign(pod(4), 52.0)) == ["10.0.0.3"]
    assert ips(pool.assign(pod(5), 52.0)) == ["10.0.0.2"], "warm, but the last one"


def test_a_fresh_address_goes_before_one_freed_after_it_came() -> None:
    pool = pool_with(1, 2, cooldown_seconds=5)
    pool.assign(pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 10.0)
    assert ips(pool.assign(pod(2), 100.0)) == ["10.0.0.2"]


def test_release_picks_what_is_not_programmed_then_the_longest_idle() -> None:
    pool = pool_with(1, 2, 3)
    pool.assign(pod(1), 1.0)
    pool.assign(pod(2), 1.0)
    pool.free("sandbox-1", "eth0", 2.0)
    pool.apply(container(1, 2, 3, 4, version=2), 3.0)
    assert pool.name_for_release("nc", 1, 4.0) == ("nc-4",)
    assert pool.name_for_release("nc", 9, 4.0) == ("nc-3", "nc-1")
    assert pool.named("nc") == ("nc-4", "nc-3", "nc-1")
    assert pool.counts("nc") == Counts(assigned=1, pending_release=3)


def test_release_takes_the_one_freed_longest_ago_before_a_newer_grant() -> None:
    pool = pool_with(1)
    pool.assign(pod(1), 1.0)
    pool.free("sandbox-1", "eth0", 2.0)
    pool.programmed(pool.apply(container(1, 2, version=2), 3.0).granted, 3.0)
    assert pool.name_for_release("nc", 1, 4.0) == ("nc-1",)


def test_a_named_address_is_never_handed_out_and_ends_with_the_container_that_lacks_it() -> None:
    pool = pool_with(1, 2)
    assert pool.name_for_release("nc", 1, 1.0) == ("nc-1",)
    assert ips(pool.assign(pod(1), 1.0)) == ["10.0.0.2"]
    assert pool.assign(pod(2), 1.0) is None
    assert pool.apply(container(1, 2, version=2), 2.0) == Applied()
    assert pool.apply(container(2, version=3), 2.0) == Applied(gone=("nc-1",))
    assert pool.named("nc") == ()
    assert pool.counts("nc").held == 1


def test_an_older_version_is_ignored_so_released_addresses_stay_released() -> None:
    """The real CNS resurrects them (WIRE.md section 4)."""
    pool = pool_with(1, 2)
    pool.name_for_release("nc", 1, 0.0)
    pool.apply(container(2, version=5), 0.0)
    assert pool.apply(container(1, 2, version=4), 0.0) == Applied()
    assert pool.version("nc") == 5
    assert [address.ip for address in pool.addresses()] == ["10.0.0.2"]


def test_a_container_that_lacks_an_assigned_address_is_an_alarm_and_the_pod_keeps_it() -> None:
    pool = pool_with(1, 2)
    pool.assign(pod(1), 0.0)
    applied = pool.apply(container(3, version=2), 1.0)
    assert applied.granted == ("nc-3",)
    assert applied.gone == ("nc-2",), "the free one is withheld"
    assert applied.alarms == (
        "container nc version 2 lacks 10.0.0.1 as nc-1 (Assigned), which this node did not name for release",
        "container nc version 2 lacks 10.0.0.2 as nc-2 (Available), which this node did not name for release",
    )
    assert ips(pool.assign(pod(1), 2.0)) == ["10.0.0.1"]
    assert pool.counts("nc") == Counts(pending_programming=1, orphaned=1)
    assert pool.counts("nc").held == 1
    assert pool.apply(container(3, version=3), 3.0) == Applied(), "said once"
    pool.free("sandbox-1", "eth0", 4.0)
    assert [address.ip for address in pool.addresses()] == ["10.0.0.3"], "not ours to hand on"


@pytest.mark.parametrize("name", ["nc-1", "minted-anew"])
def test_an_orphan_that_is_granted_again_stays_with_its_pod(name: str) -> None:
    pool = pool_with(1)
    pool.assign(pod(1), 0.0)
    pool.apply(container(version=2), 1.0)
    assert pool.apply(Container("nc", 3, 4, {name: "10.0.0.1"}), 2.0) == Applied(granted=(name,))
    assert pool.counts("nc") == Counts(assigned=1)
    assert pool.assign(pod(2), 2.0) is None
    pool.free("sandbox-1", "eth0", 3.0)
    assert pool.name_for_release("nc", 1, 4.0) == (name,)


def test_an_address_granted_twice_is_an_alarm_and_taken_once() -> None:
    pool = pool_with(1)
    other = Container("other", 1, 4, {"other-1": "10.0.0.1"})
    assert pool.apply(other, 1.0).alarms == (
        "container other grants 10.0.0.1 as other-1, but the pool holds 10.0.0.1 as nc-1 (Available)",
    )
    assert pool.apply(Container("nc", 2, 4, {"nc-1": "10.0.0.7"}), 1.0).alarms == (
        "container nc grants 10.0.0.7 as nc-1, but the pool holds 10.0.0.1 as nc-1 (Available)",
    )
    assert [address.ip for address in pool.addresses()] == ["10.0.0.1"]


def test_an_orphan_granted_by_another_container_is_an_alarm() -> None:
    pool = pool_with(1)
    pool.assign(pod(1), 0.0)
    pool.apply(container(version=2), 1.0)
    assert pool.apply(Container("other", 1, 4, {"other-1": "10.0.0.1"}), 2.0).granted == ()
    assert pool.counts("nc") == Counts(orphaned=1)


def test_a_pod_gets_one_address_of_each_family_or_none() -> None:
    pool = pool_with(1, 2)
    pool.programmed(pool.apply(container(1, family=6, name="six"), 0.0).granted, 0.0)
    assert pool.containers() == ("nc", "six")
    assert ips(pool.assign(pod(1), 0.0)) == ["10.0.0.1", "fd00::1"]
    assert pool.assign(pod(2), 0.0) is None
    assert pool.counts("nc") == Counts(available=1, assigned=1), "nothing is taken halfway"
    assert len(pool.free("sandbox-1", "eth0", 1.0)) == 2


def test_two_containers_of_one_family_serve_the_address_free_longest() -> None:
    pool = pool_with(1, now=5.0)
    pool.programmed(pool.apply(container(7, name="old"), 1.0).granted, 1.0)
    assert ips(pool.assign(pod(1), 6.0)) == ["10.0.0.7"]
    assert ips(pool.assign(pod(2), 6.0)) == ["10.0.0.1"]


def test_a_warm_address_of_one_container_waits_for_a_cool_one_of_another() -> None:
    pool = pool_with(1)
    pool.assign(pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 100.0)
    pool.programmed(pool.apply(container(7, name="other"), 105.0).granted, 105.0)
    assert ips(pool.assign(pod(2), 106.0)) == ["10.0.0.7"]
    assert ips(pool.assign(pod(3), 106.0)) == ["10.0.0.1"], "warm, but the last one"


def test_an_address_has_cooled_down_when_exactly_the_cool_down_has_passed() -> None:
    pool = pool_with(1)
    pool.assign(pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 100.0)
    pool.programmed(pool.apply(container(1, 2, version=2), 110.0).granted, 110.0)
    assert ips(pool.assign(pod(2), 130.0)) == ["10.0.0.1"]


def test_a_rebuild_without_records_hands_out_and_gives_back_nothing_unproven() -> None:
    pool = Pool()
    applied = pool.recover(container(1, 2, 3, version=7), named=["nc-3", "long gone"], now=0.0)
    assert set(applied.granted) == {"nc-1", "nc-2", "nc-3"}
    assert pool.counts("nc") == Counts(pending_release=1, quarantined=2)
    assert pool.assign(pod(9), 0.0) is None
    assert pool.name_for_release("nc", 5, 0.0) == ()
    assert pool.adopt("10.0.0.2", pod(2), 1.0)
    assert not pool.adopt("10.0.0.2", pod(3), 1.0)
    assert not pool.adopt("10.0.0.99", pod(3), 1.0)
    assert ips(pool.assign(pod(2), 1.0)) == ["10.0.0.2"]
    assert pool.prove_free(2.0) == 1
    assert pool.counts("nc") == Counts(available=1, assigned=1, pending_release=1)
    assert pool.apply(container(1, 2, version=8), 3.0) == Applied(gone=("nc-3",))


def test_a_rebuild_adopts_both_families_for_one_owner() -> None:
    pool = Pool()
    pool.recover(container(1), (), 0.0)
    pool.recover(container(1, family=6, name="six"), (), 0.0)
    assert pool.adopt("10.0.0.1", pod(1), 0.0)
    assert pool.adopt("fd00::1", pod(1), 0.0)
    assert ips(pool.assign(pod(1), 1.0)) == ["10.0.0.1", "fd00::1"]


class PoolMachine(RuleBasedStateMachine):
    """Everything that can befall a pool, in any order, against a plain model of who has what."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(cooldown_seconds=3.0)
        self.now = 0.0
        self.version = 0
        self.minted = 0
        self.granted: dict[str, str] = {}  # what the allocator says this node holds
        self.history: list[Container] = []
        self.pods: dict[tuple[str, str], str] = {}
        self.named: set[str] = set()

    def told(self, addresses: dict[str, str]) -> Container:
        self.version += 1
        told = Container("nc", self.version, 4, dict(addresses))
        self.history.append(told)
        return told

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
        before = self.pool.counts("nc").available
        key = (f"sandbox-{number}", "eth0")
        given = self.pool.assign(pod(number), self.now)
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

    @rule(count=st.integers(0, 4))
    def name(self, count: int) -> None:
        counts = self.pool.counts("nc")
        named = self.pool.name_for_release("nc", count, self.now)
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

    @rule(data=st.data())
    def an_older_version_arrives_late(self, data: st.DataObject) -> None:
        older = data.draw(st.sampled_from(self.history))
        if older.version < self.version:
            assert self.pool.apply(older, self.now) == Applied()

    @precondition(lambda self: self.granted)
    @rule(data=st.data())
    def the_allocator_loses_one(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.granted)))
        self.granted.pop(name)
        applied = self.pool.apply(self.told(self.granted), self.now)
        assert bool(applied.alarms) == (name not in self.named)

    @invariant()
    def counts_add_up(self) -> None:
        counts = self.pool.counts("nc")
        addresses = list(self.pool.addresses())
        by_state = {state: sum(address.state is state for address in addresses) for state in State}
        assert counts == Counts(
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
        counts = self.pool.counts("nc")
        assert counts.assigned + counts.orphaned == len(self.pods)

    @invariant()
    def what_was_named_stays_named_until_it_is_gone(self) -> None:
        assert set(self.pool.named("nc")) == self.named & set(self.granted)


PoolMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestPoolMachine = PoolMachine.TestCase
