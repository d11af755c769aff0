"""The node's pool: the table, who is served with what, and what becomes of a container's addresses."""

import pytest
from msgspec import structs

from core.pool_steps import assign, name_for_release
from podtide.core.pool.pool import (
    Address,
    AppliedContainer,
    Family,
    GrantedContainer,
    Owner,
    Pool,
    StateCounts,
)
from podtide.core.pool.states import TRANSITIONS, AddressEvent, BrokenPool, State
from podtide.core.ranges import parse_network


def container(*numbers: int, version: int = 1, family: Family = 4, name: str = "nc") -> GrantedContainer:
    prefix = "10.0.0." if family == 4 else "fd00::"
    return GrantedContainer(name, version, family, {f"{name}-{n}": f"{prefix}{n}" for n in numbers})


def pool_with(*numbers: int, cooldown_seconds: float = 30.0) -> Pool:
    pool = Pool(cooldown_seconds)
    pool.programmed(pool.apply(container(*numbers), 0.0).granted, 0.0)
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
    assert dict(TRANSITIONS[State.PENDING_RELEASE]) == {AddressEvent.WITHDRAWN: None}


def test_who_follows_the_pool_is_told_of_every_move() -> None:
    pool = Pool(0.0)
    moves: list[tuple[str, State | None]] = []
    pool.on_move.append(lambda address: moves.append((address.ip, address.state)))
    pool.programmed(pool.apply(container(1), 0.0).granted, 0.0)
    pool.take(pod(1), ["10.0.0.1"], 0.0)
    pool.apply(container(version=2), 1.0)
    assert moves == [
        ("10.0.0.1", State.PENDING_PROGRAMMING),
        ("10.0.0.1", State.AVAILABLE),
        ("10.0.0.1", State.ASSIGNED),
        ("10.0.0.1", State.ORPHANED),
    ]


def test_what_the_table_lacks_stops_the_pool() -> None:
    pool = pool_with(1)
    (address,) = pool.addresses()
    with pytest.raises(
        BrokenPool, match=r"^address 10\.0\.0\.1 \(nc-1\) is Available and cannot be granted: "
    ):
        pool._records.move(address, AddressEvent.GRANTED, 0.0)
    with pytest.raises(BrokenPool, match="is absent and cannot be taken"):
        pool._records.move(Address("x", "10.0.0.9", "nc"), AddressEvent.TAKEN, 0.0)


def test_an_address_is_handed_out_only_once_it_is_programmed() -> None:
    pool = Pool()
    applied = pool.apply(container(1), 0.0)
    assert applied == AppliedContainer(granted=("nc-1",))
    assert assign(pool, pod(1), 0.0) is None
    pool.programmed(["nc-1", "unknown"], 0.0)
    assert ips(assign(pool, pod(1), 0.0)) == ["10.0.0.1"]
    pool.programmed(["nc-1"], 0.0)
    assert pool.counts("nc") == StateCounts(assigned=1)


def test_the_same_sandbox_gets_the_same_address_again() -> None:
    pool = pool_with(1, 2)
    assert assign(pool, pod(1), 0.0) == assign(pool, pod(1), 1.0)
    assert ips(assign(pool, Owner("sandbox-1", "net1"), 1.0)) == ["10.0.0.2"]
    assert set(pool.owners()) == {("sandbox-1", "eth0"), ("sandbox-1", "net1")}


def test_an_empty_pool_gives_nobody_an_address() -> None:
    assert assign(Pool(), pod(1), 0.0) is None


def test_freeing_the_unknown_does_nothing() -> None:
    assert pool_with(1).free("nobody", "eth0", 0.0) == ()


def test_the_address_free_longest_is_handed_out_first() -> None:
    pool = pool_with(1, 2, 3, cooldown_seconds=0)
    assert [ips(assign(pool, pod(n), 1.0)) for n in (1, 2, 3)] == [["10.0.0.1"], ["10.0.0.2"], ["10.0.0.3"]]
    for number, at in ((2, 5.0), (1, 6.0), (3, 7.0)):
        pool.free(f"sandbox-{number}", "eth0", at)
    assert [ips(assign(pool, pod(n), 8.0)) for n in (4, 5, 6)] == [["10.0.0.2"], ["10.0.0.1"], ["10.0.0.3"]]


def test_a_released_address_cools_down_unless_nothing_else_is_free() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 10.0)
    pool.free("sandbox-1", "eth0", 20.0)
    pool.programmed(pool.apply(container(1, 2, 3, version=2), 25.0).granted, 25.0)
    assert ips(assign(pool, pod(2), 26.0)) == ["10.0.0.2"], "freed earlier, but still warm"
    assert ips(assign(pool, pod(3), 50.0)) == ["10.0.0.1"], "cooled down, and free longest"
    pool.free("sandbox-2", "eth0", 51.0)
    assert ips(assign(pool, pod(4), 52.0)) == ["10.0.0.3"]
    assert ips(assign(pool, pod(5), 52.0)) == ["10.0.0.2"], "warm, but the last one"


def test_a_fresh_address_goes_before_one_freed_after_it_came() -> None:
    pool = pool_with(1, 2, cooldown_seconds=5)
    assign(pool, pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 10.0)
    assert ips(assign(pool, pod(2), 100.0)) == ["10.0.0.2"]


def test_release_picks_what_is_not_programmed_then_the_longest_idle() -> None:
    pool = pool_with(1, 2, 3)
    assign(pool, pod(1), 1.0)
    assign(pool, pod(2), 1.0)
    pool.free("sandbox-1", "eth0", 2.0)
    pool.apply(container(1, 2, 3, 4, version=2), 3.0)
    assert name_for_release(pool, "nc", 1, 4.0) == ("nc-4",)
    assert name_for_release(pool, "nc", 9, 4.0) == ("nc-3", "nc-1")
    assert pool.named("nc") == ("nc-4", "nc-3", "nc-1")
    assert pool.counts("nc") == StateCounts(assigned=1, pending_release=3)


def test_release_takes_the_one_freed_longest_ago_before_a_newer_grant() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 1.0)
    pool.free("sandbox-1", "eth0", 2.0)
    pool.programmed(pool.apply(container(1, 2, version=2), 3.0).granted, 3.0)
    assert name_for_release(pool, "nc", 1, 4.0) == ("nc-1",)


def test_a_named_address_is_never_handed_out_and_ends_with_the_container_that_lacks_it() -> None:
    pool = pool_with(1, 2)
    assert name_for_release(pool, "nc", 1, 1.0) == ("nc-1",)
    assert ips(assign(pool, pod(1), 1.0)) == ["10.0.0.2"]
    assert assign(pool, pod(2), 1.0) is None
    assert pool.apply(container(1, 2, version=2), 2.0) == AppliedContainer()
    assert pool.apply(container(2, version=3), 2.0) == AppliedContainer(gone=("nc-1",))
    assert pool.named("nc") == ()
    assert pool.counts("nc").held == 1


def test_an_older_version_is_ignored_so_released_addresses_stay_released() -> None:
    """The real CNS resurrects them (design T6)."""
    pool = pool_with(1, 2)
    name_for_release(pool, "nc", 1, 0.0)
    pool.apply(container(2, version=5), 0.0)
    assert pool.apply(container(1, 2, version=4), 0.0) == AppliedContainer()
    assert pool.version("nc") == 5
    assert [address.ip for address in pool.addresses()] == ["10.0.0.2"]


def test_a_container_that_lacks_an_assigned_address_is_an_alarm_and_the_pod_keeps_it() -> None:
    pool = pool_with(1, 2)
    assign(pool, pod(1), 0.0)
    applied = pool.apply(container(3, version=2), 1.0)
    assert applied.granted == ("nc-3",)
    assert applied.gone == ("nc-2",), "the free one is withheld"
    assert applied.alarms == (
        "container nc version 2 lacks 10.0.0.1 as nc-1 (Assigned), which this node did not name for release",
        "container nc version 2 lacks 10.0.0.2 as nc-2 (Available), which this node did not name for release",
    )
    assert ips(assign(pool, pod(1), 2.0)) == ["10.0.0.1"]
    assert pool.counts("nc") == StateCounts(pending_programming=1, orphaned=1)
    assert pool.counts("nc").held == 1
    assert pool.apply(container(3, version=3), 3.0) == AppliedContainer(), "said once"
    pool.free("sandbox-1", "eth0", 4.0)
    assert [address.ip for address in pool.addresses()] == ["10.0.0.3"], "not ours to hand on"


@pytest.mark.parametrize("name", ["nc-1", "minted-anew"])
def test_an_orphan_that_is_granted_again_stays_with_its_pod(name: str) -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.apply(container(version=2), 1.0)
    assert pool.apply(GrantedContainer("nc", 3, 4, {name: "10.0.0.1"}), 2.0) == AppliedContainer(
        granted=(name,)
    )
    assert pool.counts("nc") == StateCounts(assigned=1)
    assert assign(pool, pod(2), 2.0) is None
    pool.free("sandbox-1", "eth0", 3.0)
    assert name_for_release(pool, "nc", 1, 4.0) == (name,)


def test_an_address_granted_twice_is_an_alarm_and_taken_once() -> None:
    pool = pool_with(1)
    other = GrantedContainer("other", 1, 4, {"other-1": "10.0.0.1"})
    assert pool.apply(other, 1.0).alarms == (
        "container other grants 10.0.0.1 as other-1, but the pool holds 10.0.0.1 as nc-1 (Available)",
    )
    assert pool.apply(GrantedContainer("nc", 2, 4, {"nc-1": "10.0.0.7"}), 1.0).alarms == (
        "container nc grants 10.0.0.7 as nc-1, but the pool holds 10.0.0.1 as nc-1 (Available)",
    )
    assert [address.ip for address in pool.addresses()] == ["10.0.0.1"]


def test_an_orphan_granted_by_another_container_is_an_alarm() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.apply(container(version=2), 1.0)
    assert pool.apply(GrantedContainer("other", 1, 4, {"other-1": "10.0.0.1"}), 2.0).granted == ()
    assert pool.counts("nc") == StateCounts(orphaned=1)


def test_who_has_nothing_but_orphans_outlived_its_containers() -> None:
    pool = pool_with(1, 2)
    pool.programmed(pool.apply(container(1, 2, family=6, name="six"), 0.0).granted, 0.0)
    assign(pool, pod(1), 1.0)
    assert pool.outlived() == 0
    pool.apply(container(version=2), 2.0)
    assert pool.outlived() == 0, "it has an address of the other family"
    pool.withdraw("six", 3.0)
    assert pool.outlived() == 1
    pool.free("sandbox-1", "eth0", 4.0)
    assert pool.outlived() == 0


def test_a_pod_gets_one_address_of_each_family_or_none() -> None:
    pool = pool_with(1, 2)
    pool.programmed(pool.apply(container(1, family=6, name="six"), 0.0).granted, 0.0)
    assert pool.containers() == ("nc", "six")
    assert ips(assign(pool, pod(1), 0.0)) == ["10.0.0.1", "fd00::1"]
    assert assign(pool, pod(2), 0.0) is None
    assert pool.counts("nc") == StateCounts(available=1, assigned=1), "nothing is taken halfway"
    assert len(pool.free("sandbox-1", "eth0", 1.0)) == 2


def test_two_containers_of_one_family_serve_the_address_free_longest() -> None:
    pool = Pool()
    first = pool.apply(container(1), 0.0).granted
    pool.programmed(pool.apply(container(7, name="other"), 0.0).granted, 1.0)
    pool.programmed(first, 2.0)
    assert ips(assign(pool, pod(1), 6.0)) == ["10.0.0.7"]
    assert ips(assign(pool, pod(2), 6.0)) == ["10.0.0.1"]


def test_a_warm_address_of_one_container_waits_for_a_cool_one_of_another() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 100.0)
    pool.programmed(pool.apply(container(7, name="other"), 105.0).granted, 105.0)
    assert ips(assign(pool, pod(2), 106.0)) == ["10.0.0.7"]
    assert ips(assign(pool, pod(3), 106.0)) == ["10.0.0.1"], "warm, but the last one"


def test_an_address_has_cooled_down_when_exactly_the_cool_down_has_passed() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 100.0)
    pool.programmed(pool.apply(container(1, 2, version=2), 110.0).granted, 110.0)
    assert ips(assign(pool, pod(2), 130.0)) == ["10.0.0.1"]


def test_a_rebuild_without_records_hands_out_and_gives_back_nothing_unproven() -> None:
    pool = Pool()
    applied = pool.recover(container(1, 2, 3, version=7), named=["nc-3", "long gone"], now=0.0)
    assert set(applied.granted) == {"nc-1", "nc-2", "nc-3"}
    assert pool.counts("nc") == StateCounts(pending_release=1, quarantined=2)
    assert assign(pool, pod(9), 0.0) is None
    assert name_for_release(pool, "nc", 5, 0.0) == ()
    assert pool.adopt("10.0.0.2", pod(2), 1.0)
    assert not pool.adopt("10.0.0.2", pod(3), 1.0)
    assert not pool.adopt("10.0.0.99", pod(3), 1.0)
    assert ips(assign(pool, pod(2), 1.0)) == ["10.0.0.2"]
    assert pool.prove_free(2.0) == 1
    assert pool.counts("nc") == StateCounts(available=1, assigned=1, pending_release=1)
    assert pool.apply(container(1, 2, version=8), 3.0) == AppliedContainer(gone=("nc-3",))


def test_what_is_contested_stays_in_quarantine_when_the_rest_is_proven_free() -> None:
    pool = Pool()
    pool.recover(container(1, 2), (), 0.0)
    assert pool.prove_free(1.0, {"10.0.0.1"}) == 1
    assert pool.counts("nc") == StateCounts(available=1, quarantined=1)
    assert pool.prove_free(2.0) == 1
    assert pool.counts("nc") == StateCounts(available=2)


def test_whoever_hears_of_a_pod_s_address_sees_whose_it_is() -> None:
    pool = Pool()
    pool.recover(container(1), (), 0.0)
    pool.on_move.append(lambda address: heard.append(address.owner))
    heard: list[Owner | None] = []
    pool.adopt("10.0.0.1", pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 1.0)
    assign(pool, pod(2), 100.0)
    assert heard[0] == pod(1)
    assert heard[-1] == pod(2)


def test_a_rebuild_adopts_both_families_for_one_owner() -> None:
    pool = Pool()
    pool.recover(container(1), (), 0.0)
    pool.recover(container(1, family=6, name="six"), (), 0.0)
    assert pool.adopt("10.0.0.1", pod(1), 0.0)
    assert pool.adopt("fd00::1", pod(1), 0.0)
    assert ips(assign(pool, pod(1), 1.0)) == ["10.0.0.1", "fd00::1"]


def test_choosing_changes_nothing_and_taking_gives_what_was_chosen() -> None:
    pool = pool_with(1, 2)
    before = pool.snapshot()
    assert ips(pool.choose(0.0)) == ["10.0.0.1"]
    assert pool.choose_releases("nc", 5) == ("nc-1", "nc-2")
    assert pool.choose_releases("nc", 1) == ("nc-1",)
    assert pool.snapshot() == before
    assert ips(pool.take(pod(1), ["10.0.0.2"], 0.0)) == ["10.0.0.2"]
    assert ips(pool.held_by("sandbox-1", "eth0")) == ["10.0.0.2"]
    assert pool.held_by("sandbox-2", "eth0") == ()
    pool.name("nc", ["nc-1"], 0.0)
    assert pool.choose(0.0) is None
    assert pool.named("nc") == ("nc-1",)


def test_taking_or_naming_what_was_not_free_stops_the_pool() -> None:
    pool = pool_with(1, 2)
    assign(pool, pod(1), 0.0)
    with pytest.raises(BrokenPool, match=r"^address 10\.0\.0\.1 \(nc-1\) is Assigned and cannot be taken: "):
        pool.take(pod(2), ["10.0.0.1"], 0.0)
    with pytest.raises(
        BrokenPool, match=r"^sandbox sandbox-1 \(eth0\) holds 10\.0\.0\.1 as nc-1 .* cannot take more: "
    ):
        pool.take(pod(1), ["10.0.0.2"], 0.0)
    with pytest.raises(BrokenPool, match=r"^10\.0\.0\.9 is not in the pool: "):
        pool.take(pod(2), ["10.0.0.9"], 0.0)
    with pytest.raises(BrokenPool, match=r"^nc-9 is not in the pool: "):
        pool.name("nc", ["nc-9"], 0.0)
    with pytest.raises(BrokenPool, match=r"^other is not in the pool: "):
        pool.name("other", ["nc-2"], 0.0)


def test_a_wanted_address_is_given_if_it_is_free_and_else_none_is() -> None:
    pool = pool_with(1, 2, 3)
    assert ips(assign(pool, pod(1), 0.0, ["10.0.0.2"])) == ["10.0.0.2"]
    assert ips(assign(pool, pod(1), 0.0, ["10.0.0.3"])) == ["10.0.0.2"], "the same sandbox keeps what it has"
    assert assign(pool, pod(2), 0.0, ["10.0.0.2"]) is None
    assert assign(pool, pod(2), 0.0, ["10.0.0.9"]) is None
    assert assign(pool, pod(2), 0.0, ["10.0.0.1", "10.0.0.3"]) is None, "one of a family is all a pod gets"
    pool.name("nc", ["nc-3"], 0.0)
    assert assign(pool, pod(2), 0.0, ["10.0.0.3"]) is None
    assert pool.counts("nc") == StateCounts(available=1, assigned=1, pending_release=1)


def test_a_wanted_address_of_one_family_goes_with_any_of_the_other() -> None:
    pool = pool_with(1, 2)
    pool.programmed(pool.apply(container(1, 2, family=6, name="six"), 0.0).granted, 0.0)
    assert ips(assign(pool, pod(1), 0.0, ["fd00::2"])) == ["10.0.0.1", "fd00::2"]
    assert ips(assign(pool, pod(2), 0.0, ["fd00::1", "10.0.0.2"])) == ["10.0.0.2", "fd00::1"]


def test_the_same_version_again_is_no_news_unless_something_is_missing() -> None:
    pool = Pool()
    assert pool.is_news(container(1, 2))
    pool.apply(container(1, 2), 0.0)
    assert not pool.is_news(container(1, 2))
    assert not pool.is_news(container(version=0))
    assert pool.is_news(container(1, 2, version=2))
    pool.programmed(["nc-1"], 0.0)
    assign(pool, pod(1), 0.0)
    pool.apply(container(2, version=2), 0.0)
    assert not pool.is_news(container(2, version=2)), "the orphan is no part of it"


def test_an_address_that_was_in_the_way_is_taken_when_the_same_version_comes_again() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.withdraw("nc", 0.0)
    successor = GrantedContainer("other", 1, 4, {"other-1": "10.0.0.1"})
    assert pool.apply(successor, 1.0).granted == ()
    pool.free("sandbox-1", "eth0", 2.0)
    assert pool.is_news(successor)
    assert pool.apply(successor, 3.0).granted == ("other-1",)


def test_a_withdrawn_container_leaves_pods_what_they_have_and_is_forgotten_with_the_last_of_them() -> None:
    pool = pool_with(1, 2, 3)
    name_for_release(pool, "nc", 1, 0.0)
    assign(pool, pod(2), 0.0)
    applied = pool.withdraw("nc", 1.0)
    assert applied == AppliedContainer(
        gone=("nc-1", "nc-3"),
        alarms=(
            "container nc is withdrawn and with it 10.0.0.2 as nc-2 (Assigned), which this node did not name for release",
            "container nc is withdrawn and with it 10.0.0.3 as nc-3 (Available), which this node did not name for release",
        ),
    )
    assert not pool.is_granted("nc")
    assert pool.counts("nc") == StateCounts(orphaned=1)
    assert pool.withdraw("nc", 2.0) == AppliedContainer()
    assert assign(pool, pod(9), 2.0) is None
    assert ips(assign(pool, pod(2), 2.0)) == ["10.0.0.2"]
    pool.free("sandbox-2", "eth0", 3.0)
    assert pool.containers() == ()
    assert list(pool.addresses()) == []


def test_a_container_of_which_nobody_has_anything_is_forgotten_when_it_is_withdrawn() -> None:
    pool = pool_with(1)
    assert pool.is_granted("nc")
    assert pool.withdraw("nc", 0.0).gone == ("nc-1",)
    assert pool.containers() == ()
    assert pool.withdraw("nc", 0.0) == AppliedContainer()
    assert pool.apply(container(1), 1.0).granted == ("nc-1",), "its version is forgotten too"


def test_the_family_of_a_withdrawn_container_is_no_longer_given() -> None:
    pool = pool_with(1, 2, 3)
    pool.programmed(pool.apply(container(1, 2, family=6, name="six"), 0.0).granted, 0.0)
    assert ips(assign(pool, pod(1), 0.0)) == ["10.0.0.1", "fd00::1"]
    pool.withdraw("six", 1.0)
    assert pool.containers() == ("nc", "six")
    assert ips(assign(pool, pod(2), 2.0)) == ["10.0.0.2"]
    assert pool.apply(container(2, family=6, name="six", version=2), 3.0).granted == ("six-2",)
    assert assign(pool, pod(3), 3.0) is None, "granted again, it is waited for"


def test_a_container_granted_without_addresses_yet_is_waited_for() -> None:
    pool = pool_with(1)
    pool.apply(container(family=6, name="six"), 0.0)
    assert assign(pool, pod(1), 0.0) is None, "a pod that starts with one family never gets the other"


def test_what_comes_while_records_are_lost_is_unproven_and_what_is_known_stays() -> None:
    pool = Pool()
    pool.recover(container(1, 2, 3, version=2), named=["nc-3"], now=0.0)
    pool.adopt("10.0.0.1", pod(1), 0.0)
    assert pool.recover(container(1, 2, 3, version=1), named=(), now=1.0) == AppliedContainer(), "older"
    assert pool.recover(container(1, 2, 4, version=3), named=["nc-3"], now=1.0) == AppliedContainer(
        granted=("nc-4",), gone=("nc-3",)
    )
    assert pool.counts("nc") == StateCounts(assigned=1, quarantined=2)


def test_what_a_pod_has_is_not_given_up_because_records_say_it_was_named() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.apply(container(version=2), 1.0)
    assert pool.recover(container(1, version=3), named=["nc-1"], now=2.0).granted == ("nc-1",)
    assert pool.counts("nc") == StateCounts(assigned=1)


def test_a_restored_pool_keeps_the_order_and_lets_used_addresses_cool_down_anew() -> None:
    pool = pool_with(1, 2, 3, 4)
    for number in (1, 2):
        assign(pool, pod(number), 1000.0)
    for number in (2, 1):
        pool.free(f"sandbox-{number}", "eth0", 2000.0)
    pool.programmed(pool.apply(container(1, 2, 3, 4, 5, version=2), 3000.0).granted, 3000.0)
    restored = Pool()
    restored.restore(pool.snapshot(), 5.0)
    assert restored.snapshot() == pool.snapshot()
    assert restored.choose_releases("nc", 9) == ("nc-3", "nc-4", "nc-2", "nc-1", "nc-5")
    assert [ips(assign(restored, pod(n), 34.0)) for n in (3, 4, 5)] == [
        ["10.0.0.3"],
        ["10.0.0.4"],
        ["10.0.0.5"],
    ]
    assert [ips(assign(restored, pod(n), 34.0)) for n in (6, 7)] == [["10.0.0.2"], ["10.0.0.1"]]


def test_an_address_restored_after_use_has_cooled_down_after_the_cool_down() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.free("sandbox-1", "eth0", 1.0)
    restored = Pool()
    restored.restore(pool.snapshot(), 500.0)
    restored.programmed(restored.apply(container(1, 2, version=2), 500.0).granted, 500.0)
    assert ips(restored.choose(529.0)) == ["10.0.0.2"]
    assert ips(restored.choose(530.0)) == ["10.0.0.1"]


def test_a_restored_pool_knows_its_owners_in_full_and_their_addresses_in_order() -> None:
    pool = Pool()
    pool.recover(container(1, family=6, name="six"), (), 0.0)
    pool.recover(container(1), (), 0.0)
    owner = Owner("sandbox-1", "eth0", "uid-1", "default", "web-0", "podtide")
    pool.adopt("fd00::1", owner, 0.0)
    pool.adopt("10.0.0.1", owner, 0.0)
    pool.apply(container(version=2, family=6, name="six"), 1.0)
    restored = Pool()
    restored.restore(pool.snapshot(), 2.0)
    assert ips(restored.held_by("sandbox-1", "eth0")) == ["fd00::1", "10.0.0.1"]
    assert [address.owner for address in restored.addresses()] == [owner, owner]
    found = restored.find("fd00::1")
    assert found is not None
    assert found.state is State.ORPHANED
    assert restored.find("10.0.0.9") is None


def test_a_restored_pool_waits_for_orphans_of_a_withdrawn_container() -> None:
    pool = pool_with(1)
    assign(pool, pod(1), 0.0)
    pool.withdraw("nc", 1.0)
    restored = Pool()
    restored.restore(pool.snapshot(), 2.0)
    assert restored.snapshot() == pool.snapshot()
    restored.free("sandbox-1", "eth0", 3.0)
    assert restored.containers() == ()


def moved_to(*numbers: int, version: int = 1) -> GrantedContainer:
    """The container that another Node of the same machine has, with these addresses."""
    return container(*numbers, version=version, name="new")


def test_what_another_nodes_container_grants_again_goes_on_as_it_is_under_new_names() -> None:
    pool = pool_with(1, 2, 3, 4)
    pool.take(pod(1), ["10.0.0.1"], 0.0)
    pool.name("nc", ["nc-2"], 0.0)
    moves: list[tuple[str, State | None]] = []
    pool.on_move.append(lambda address: moves.append((address.name, address.state)))
    assert pool.carried_over(moved_to(1, 2, 3), ["nc"])
    assert set(pool.carry_over(moved_to(1, 2, 3), ["nc", "unknown"], 1.0)) == {"new-1", "new-2", "new-3"}
    assert {name for name, _state in moves} == {"new-1", "new-2", "new-3"}
    assert ips(pool.held_by("sandbox-1", "eth0")) == ["10.0.0.1"]
    assert pool.named("new") == ("new-2",)
    assert pool.counts("new") == StateCounts(assigned=1, available=1, pending_release=1)
    assert pool.apply(moved_to(1, 2, 3), 1.0) == AppliedContainer()
    gone = pool.withdraw("nc", 1.0)
    assert (gone.gone, len(gone.alarms)) == (("nc-4",), 1)
    assert pool.containers() == ("new",)
    assert ips(pool.free("sandbox-1", "eth0", 2.0)) == ["10.0.0.1"]
    assert pool.counts("new").available == 2


def test_what_was_withdrawn_from_under_a_pod_is_granted_to_it_again_by_another_container() -> None:
    pool = pool_with(1, 2)
    pool.take(pod(1), ["10.0.0.1"], 0.0)
    pool.withdraw("nc", 0.0)
    pool.apply(moved_to(), 1.0)
    assert pool.carry_over(moved_to(1, version=2), ["nc"], 2.0) == ("new-1",)
    assert pool.counts("new") == StateCounts(assigned=1)
    assert pool.containers() == ("new",)


def test_nothing_is_carried_over_that_the_container_does_not_grant_or_that_is_its_own() -> None:
    pool = pool_with(1, 2)
    for other, former in ((moved_to(7), ["nc"]), (moved_to(1), []), (container(1, 2), ["nc", "unknown"])):
        assert not pool.carried_over(other, former)
        assert pool.carry_over(other, former, 1.0) == ()
    assert pool.containers() == ("nc",)


def test_a_container_that_was_granted_the_same_anew_goes_on_under_its_new_names() -> None:
    pool = pool_with(1, 2, 3)
    pool.take(pod(1), ["10.0.0.1"], 0.0)
    pool.name("nc", ["nc-2"], 0.0)
    anew = GrantedContainer("nc", 9, 4, {"anew-1": "10.0.0.1", "anew-2": "10.0.0.2", "anew-4": "10.0.0.4"})
    assert set(pool.carry_over(anew, ["nc"], 1.0)) == {"anew-1", "anew-2"}
    applied = pool.apply(anew, 1.0)
    assert (applied.granted, applied.gone, len(applied.alarms)) == (("anew-4",), ("nc-3",), 1)
    assert ips(pool.held_by("sandbox-1", "eth0")) == ["10.0.0.1"]
    assert pool.named("nc") == ("anew-2",)
    assert not pool.carried_over(structs.replace(anew, version=8), ["nc"])


def test_addresses_carried_over_go_on_being_handed_out_in_their_order() -> None:
    pool = pool_with(1, 2, 3)
    pool.take(pod(1), ["10.0.0.1"], 0.0)
    pool.free("sandbox-1", "eth0", 1.0)
    pool.carry_over(moved_to(3, 2, 1), ["nc"], 100.0)
    pool.withdraw("nc", 100.0)
    assert [ips(assign(pool, pod(number), 100.0)) for number in (4, 5, 6)] == [
        ["10.0.0.2"],
        ["10.0.0.3"],
        ["10.0.0.1"],
    ]


def test_what_is_idle_in_a_range_that_drains_is_all_of_it_that_no_pod_has_and_nothing_else() -> None:
    pool = pool_with(1, 2, 3, 130, 131)
    taken = assign(pool, pod(1), 0.0, ["10.0.0.131"])
    assert ips(taken) == ["10.0.0.131"]
    upper = parse_network("10.0.0.128/25")
    assert pool.idle_in("nc", [upper]) == ("nc-130",)
    assert pool.idle_in("nc", []) == ()
    pool.free("sandbox-1", "eth0", 1.0)
    assert set(pool.idle_in("nc", [upper])) == {"nc-130", "nc-131"}
