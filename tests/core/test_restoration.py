"""A pool compared with what sandboxes were given of it: what is put back, withheld, forgotten and told of."""

from ipaddress import ip_address, ip_network

import pytest
from msgspec import structs

from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.networks.restoration import HOLD_SECONDS, PutBack, RecordedAddress, Restoration
from podtide.core.ranges import AddressRange

NETWORK = ip_network("10.0.0.0/29")
BOUNDS = AddressRange(NETWORK, (Interval(1, 6),))
FIRST, SECOND = ip_address("10.0.0.1"), ip_address("10.0.0.2")
WEB = Allocation("c1", "default/web", "net1", "u1")
NEWER_WEB = Allocation("c2", "default/web", "net1", "u1")
OTHER = Allocation("x1", "default/other", "net1", "u9")
RECORDED = RecordedAddress(address=FIRST, holder=WEB, reservation_name="10.0.0.1")
LOST = structs.replace(RECORDED, is_from_before=True)
PATIENCE = 360.0


def a_pool(**entries: Allocation) -> PoolCopy:
    return PoolCopy(NETWORK, {key.removeprefix("_"): entry for key, entry in entries.items()})


def restoration(*, is_shared: bool = True) -> Restoration:
    return Restoration(is_shared=is_shared, patience_seconds=PATIENCE)


def test_what_the_pool_has_is_confirmed_and_needs_no_further_look() -> None:
    state = restoration()
    comparison = state.compare(a_pool(_1=WEB), [RECORDED], {}, 0.0)
    assert comparison.confirmed == [RECORDED]
    assert state.look_again_seconds is None


def test_what_was_lost_with_a_restore_is_put_back_over_whoever_had_it_at_the_backup() -> None:
    state, pool = restoration(), a_pool(_1=OTHER)
    assert state.pods_in_question(pool, [LOST]) == []
    (put_back,) = state.compare(pool, [LOST], {}, 0.0).put_back
    assert put_back.reservation is not None
    assert (put_back.reservation.name, put_back.reservation.before) == ("10.0.0.1", OTHER)
    assert put_back.instead_of == "default/other"
    state.put(pool, put_back)
    assert pool.allocations.holder(FIRST) == WEB


def test_what_is_put_back_for_a_pod_beside_its_newer_sandbox_is_both_sandboxes() -> None:
    state, pool = restoration(), a_pool(_1=NEWER_WEB)
    (put_back,) = state.compare(pool, [RECORDED], {}, 0.0).put_back
    assert put_back.instead_of == ""
    state.put(pool, put_back)
    assert pool.allocations.holder(FIRST) == structs.replace(WEB, earlier=("c2",))


def test_where_nothing_is_reserved_it_is_put_back_all_the_same() -> None:
    unguarded = structs.replace(LOST, reservation_name="")
    assert PutBack(unguarded, None).reservation is None


@pytest.mark.parametrize(("exists", "is_put_back"), [(True, True), (False, False)])
def test_what_the_pool_lacks_is_put_back_if_its_pod_exists(exists: bool, is_put_back: bool) -> None:
    state, pool = restoration(), a_pool()
    assert state.pods_in_question(pool, [RECORDED]) == [RECORDED]
    comparison = state.compare(pool, [RECORDED], {RECORDED.place: exists}, 0.0)
    assert bool(comparison.put_back) is is_put_back


def test_what_a_pod_that_is_gone_had_is_withheld_for_a_while_and_then_forgotten() -> None:
    state, gone = restoration(), {RECORDED.place: False}
    pool = a_pool()
    assert state.compare(pool, [RECORDED], gone, 0.0).forgotten == []
    assert state.look_again_seconds == 20.0
    assert pool.allocations.choose(OTHER, BOUNDS, is_ours=lambda _: False) == SECOND
    assert state.compare(a_pool(), [RECORDED], gone, PATIENCE - 1).forgotten == []
    assert state.compare(a_pool(), [RECORDED], gone, PATIENCE).forgotten == [RECORDED]


def test_what_could_not_be_found_out_holds_up_no_other_and_is_looked_at_soon() -> None:
    state, pool = restoration(), a_pool()
    comparison = state.compare(pool, [RECORDED], {RECORDED.place: None}, 0.0)
    assert (comparison.put_back, comparison.forgotten) == ([], [])
    assert state.look_again_seconds == 1.0
    assert pool.allocations.choose(OTHER, BOUNDS, is_ours=lambda _: False) == SECOND


def test_what_is_in_use_twice_is_told_of_once() -> None:
    state, pool = restoration(), a_pool(_1=OTHER)
    for _ in range(2):
        state.compare(pool, [RECORDED], {}, 0.0)
    state.refused(pool, PutBack(structs.replace(RECORDED, address=SECOND), None))
    elsewhere = structs.replace(RECORDED, address=ip_address("10.0.7.1"))
    state.compare(pool, [elsewhere], {}, 0.0)
    assert [(str(each.address), reason) for each, reason in state.alarms] == [
        ("10.0.0.1", "is held for default/other by the pool"),
        ("10.0.0.2", "is reserved for another pod"),
        ("10.0.7.1", "is outside of the node's slice, which is 10.0.0.0/29 now"),
    ]
    assert state.look_again_seconds == 20.0


def test_nothing_is_taken_from_others_for_a_sandbox_whose_del_has_come() -> None:
    state = restoration()
    state.leave(LOST.key)
    assert state.compare(a_pool(_1=OTHER), [LOST], {}, 0.0).put_back == []
    state.released([LOST.key])
    assert state.compare(a_pool(_1=OTHER), [LOST], {}, 0.0).put_back != []
    state.leave(LOST.key)
    state.given(LOST)
    assert state.compare(a_pool(_1=OTHER), [LOST], {}, 0.0).put_back != []


def test_only_a_shared_pool_is_held_up_for_others() -> None:
    for is_shared in (True, False):
        state = restoration(is_shared=is_shared)
        assert not state.is_held_up(0.0)
        state.went_back(0.0)
        assert state.is_held_up(HOLD_SECONDS - 1) is is_shared
        assert not state.is_held_up(HOLD_SECONDS)
        assert state.look_again_seconds == 20.0


def test_an_agent_that_is_restarted_goes_on_waiting() -> None:
    state = Restoration(is_shared=True, patience_seconds=PATIENCE, went_back_at=-10.0)
    assert state.is_held_up(0.0)
    assert not state.is_held_up(HOLD_SECONDS - 10.0)


def test_ghosts_are_what_a_backup_brought_back_for_pods_of_this_node_and_go_after_a_while() -> None:
    state, pool = restoration(), a_pool(_1=WEB, _2=NEWER_WEB, _3=OTHER)
    kept = structs.replace(RECORDED, address=SECOND, holder=NEWER_WEB)
    assert not state.is_ghost(FIRST, WEB)
    state.went_back(0.0)
    state.compare(pool, [kept], {}, 0.0)
    assert state.is_ghost(FIRST, WEB)
    assert not state.is_ghost(SECOND, NEWER_WEB)
    assert not state.remove_ghosts(pool, PATIENCE - 1)
    assert len(pool.allocations) == 3
    assert state.remove_ghosts(pool, PATIENCE)
    assert set(pool.allocations.render()) == {"2", "3"}, "of other nodes' pods nothing is known"
    assert not state.is_ghost(FIRST, WEB)


@pytest.mark.parametrize("offset", [0, 1])
def test_ghosts_of_a_pod_that_asked_go_although_it_has_gone_and_a_question_changes_nothing(
    offset: int,
) -> None:
    """Of a pod that did not ask, it is not known whether it is this node's."""
    state, pool = restoration(), a_pool(**{f"_{offset}": WEB, "_3": OTHER})
    state.asks(pool, OTHER, lambda _: True)
    state.went_back(0.0)
    state.asks(pool, NEWER_WEB, lambda _: True)
    state.asks(pool, structs.replace(OTHER, pod_uid="u10"), lambda _: True)
    assert state.is_ghost(ip_address("10.0.0.3"), OTHER)
    assert state.remove_ghosts(pool, PATIENCE)
    assert set(pool.allocations.render()) == {"3"}


def test_what_was_given_since_the_pool_was_read_is_no_ghost() -> None:
    state = restoration()
    state.went_back(0.0)
    state.compare(a_pool(), [], {}, 0.0)
    state.given(RECORDED)
    assert not state.is_ghost(FIRST, NEWER_WEB)
    state.released([RECORDED.key])
    assert state.is_ghost(FIRST, NEWER_WEB)


def test_without_a_pool_there_is_something_to_look_at_again_if_sandboxes_have_any_of_it() -> None:
    state = restoration()
    state.vanished(has_any=False)
    assert state.look_again_seconds is None
    state.vanished(has_any=True)
    assert state.look_again_seconds == 20.0


def test_what_a_pods_older_sandbox_has_is_given_up_once_its_newer_one_had_another_address_for_long() -> None:
    state, pool = restoration(), a_pool(_1=WEB, _2=NEWER_WEB)
    newer = RecordedAddress(address=SECOND, holder=NEWER_WEB, reservation_name="10.0.0.2")
    both = [RECORDED, newer]
    for now in (0.0, PATIENCE - 1.0):
        assert state.compare(pool, both, {}, now).confirmed == both
        assert state.look_again_seconds is not None, "nobody may ask for the pool again"
    freed = state.compare(pool, both, {}, PATIENCE)
    assert (freed.confirmed, freed.forgotten) == ([newer], []), "its record stays until the pool is written"
    assert (pool.allocations.holder(FIRST), pool.allocations.holder(SECOND)) == (None, NEWER_WEB)
    assert state.compare(pool, both, {}, PATIENCE).forgotten == [RECORDED]
    state.compare(pool, [newer], {}, PATIENCE)
    assert state.look_again_seconds is None


def test_what_both_sandboxes_of_a_pod_may_have_is_not_freed_for_the_older_ones_sake() -> None:
    state, pool = restoration(), a_pool(_1=structs.replace(NEWER_WEB, earlier=("c1",)), _2=NEWER_WEB)
    both = [RECORDED, RecordedAddress(address=SECOND, holder=NEWER_WEB, reservation_name="")]
    state.compare(pool, both, {}, 0.0)
    assert state.compare(pool, both, {}, PATIENCE).forgotten == [RECORDED]
    assert pool.allocations.holder(FIRST) is not None


@pytest.mark.parametrize(
    "newer",
    [
        RecordedAddress(address=FIRST, holder=NEWER_WEB, reservation_name=""),
        RecordedAddress(address=SECOND, holder=WEB, reservation_name=""),
        RecordedAddress(address=SECOND, holder=structs.replace(NEWER_WEB, pod_uid="u2"), reservation_name=""),
        RecordedAddress(
            address=SECOND, holder=structs.replace(NEWER_WEB, ifname="net2"), reservation_name=""
        ),
    ],
    ids=["the same address", "the same sandbox", "another pod of that name", "another interface"],
)
def test_nothing_else_that_was_given_later_makes_an_address_be_given_up(newer: RecordedAddress) -> None:
    state = restoration()
    for now in (0.0, 2 * PATIENCE):
        pool = a_pool(_1=structs.replace(WEB, earlier=("c2",)), _2=newer.holder)
        assert RECORDED in state.compare(pool, [RECORDED, newer], {}, now).confirmed
        assert pool.allocations.holder(FIRST) is not None
