"""Who is suspected of holding an address for nobody, for how long, and what becomes of reservations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import (
    LeakGrace,
    Orphaned,
    PodSeen,
    ReservationAction,
    ReservationVerdict,
    Reserved,
    Spare,
    SuspectTimes,
    is_doubtful,
    judge_reservation,
    why_orphaned,
)
from podtide.core.ranges import IPAddress, parse_address

ALIVE = PodSeen(frozenset({"uid-1"}))
ENDED = PodSeen(frozenset({"uid-1"}), ended=True)
BY_UID = Allocation("sandbox", "ns/web-0", "net1", "uid-1")
BY_NAME = Allocation("sandbox", "ns/web-0", "net1")


def test_a_pod_that_is_there_has_what_it_holds() -> None:
    assert why_orphaned(BY_UID, ALIVE) is None
    assert why_orphaned(BY_NAME, ALIVE) is None


def test_without_a_pod_of_its_name_an_address_is_nobodys() -> None:
    assert why_orphaned(BY_UID, None) is Orphaned.GONE
    assert why_orphaned(BY_NAME, None) is Orphaned.GONE


def test_a_pod_that_came_back_under_its_name_is_another_where_the_uid_tells() -> None:
    back = PodSeen(frozenset({"uid-2"}))
    assert why_orphaned(BY_UID, back) is Orphaned.REPLACED
    assert why_orphaned(BY_NAME, back) is None


def test_a_static_pod_goes_by_the_hash_of_its_configuration_too() -> None:
    mirror = PodSeen(frozenset({"uid-of-the-mirror", "hash"}))
    assert why_orphaned(Allocation("sandbox", "kube-system/static-n1", "net1", "hash"), mirror) is None


def test_a_pod_that_has_ended_has_nothing() -> None:
    assert why_orphaned(BY_NAME, ENDED) is Orphaned.ENDED


def test_a_pod_whose_node_is_gone_has_nothing() -> None:
    assert why_orphaned(BY_UID, PodSeen(frozenset({"uid-1"}), stranded=True)) is Orphaned.STRANDED


AT_5, AT_9 = parse_address("10.0.0.5"), parse_address("10.0.0.9")


@pytest.mark.parametrize(
    ("holder", "shown", "address", "reason"),
    [
        (BY_NAME, {AT_9}, AT_5, Orphaned.NOT_SHOWN),
        (BY_NAME, {AT_9, AT_5}, AT_5, None),
        (BY_NAME, set(), AT_5, None),
        (BY_NAME, {AT_9}, None, None),
        (BY_UID, {AT_9}, AT_5, None),
    ],
)
def test_what_has_no_uid_is_an_earlier_pods_when_the_living_one_shows_other_addresses(
    holder: Allocation, shown: set[IPAddress], address: IPAddress | None, reason: Orphaned | None
) -> None:
    assert why_orphaned(holder, PodSeen(frozenset({"uid-1"}), shown=frozenset(shown)), address) is reason


def test_what_a_living_pod_does_not_show_may_be_of_a_removed_node_and_waits_for_the_quarantine() -> None:
    patience = LeakGrace(leak_grace_seconds=300.0, quarantine_seconds=360.0)
    assert patience.seconds(Orphaned.NOT_SHOWN) == 360.0


@pytest.mark.parametrize("podref", ["", "web-0", "/web-0", "ns/"])
def test_a_holder_that_names_no_pod_is_never_suspected(podref: str) -> None:
    assert why_orphaned(Allocation("sandbox", podref, "net1"), None) is None


def test_a_suspect_is_due_when_it_was_one_for_the_grace_period() -> None:
    suspects = SuspectTimes[str]()
    assert suspects.due({"a": 300.0}, 100.0) == []
    assert suspects.due({"a": 300.0, "b": 300.0}, 399.0) == []
    assert suspects.due({"a": 300.0, "b": 300.0}, 400.0) == ["a"]
    assert len(suspects) == 2


def test_a_suspect_that_was_cleared_once_begins_anew() -> None:
    suspects = SuspectTimes[str]()
    suspects.due({"a": 300.0}, 0.0)
    suspects.due({}, 200.0)
    assert suspects.due({"a": 300.0}, 400.0) == []
    assert suspects.due({"a": 300.0}, 700.0) == ["a"]


def test_a_suspect_that_is_one_for_another_reason_now_has_been_one_all_the_time() -> None:
    suspects = SuspectTimes[str]()
    suspects.due({"a": 360.0}, 0.0)
    assert suspects.due({"a": 300.0}, 300.0) == ["a"]
    assert suspects.due({"a": 360.0}, 300.0) == []


@pytest.mark.parametrize("reason", [Orphaned.GONE, Orphaned.REPLACED, Orphaned.STRANDED])
@pytest.mark.parametrize(("grace", "quarantine", "seconds"), [(300.0, 360.0, 360.0), (600.0, 360.0, 600.0)])
def test_what_may_be_of_a_removed_node_waits_for_the_quarantine_too(
    reason: Orphaned, grace: float, quarantine: float, seconds: float
) -> None:
    assert LeakGrace(leak_grace_seconds=grace, quarantine_seconds=quarantine).seconds(reason) == seconds


@pytest.mark.parametrize("reason", [Orphaned.ENDED, None])
def test_what_is_certainly_not_of_a_removed_node_waits_for_the_grace_of_leaks_alone(
    reason: Orphaned | None,
) -> None:
    assert LeakGrace(leak_grace_seconds=300.0, quarantine_seconds=360.0).seconds(reason) == 300.0


def test_a_pod_that_was_ended_because_its_node_is_gone_is_one_of_a_removed_node() -> None:
    assert why_orphaned(BY_UID, PodSeen(frozenset({"uid-1"}), ended=True, stranded=True)) is Orphaned.STRANDED


def test_without_grace_the_first_look_counts() -> None:
    assert SuspectTimes[str]().due({"a": 0.0}, 5.0) == ["a"]


def test_it_is_known_when_the_next_suspect_will_be_due() -> None:
    suspects = SuspectTimes[str]()
    assert suspects.next_due_seconds(0.0) is None
    suspects.due({"a": 300.0}, 0.0)
    suspects.due({"a": 300.0, "b": 300.0}, 100.0)
    assert suspects.next_due_seconds(100.0) == 200.0
    assert suspects.next_due_seconds(300.0) == 100.0  # the first is due, the second is not yet
    assert suspects.next_due_seconds(500.0) is None


@given(
    st.lists(st.tuples(st.floats(0, 100), st.sets(st.sampled_from("abc"))), max_size=20), st.floats(0, 300)
)
def test_nobody_is_due_who_was_not_suspected_in_every_look_of_a_grace_period(
    looks: list[tuple[float, set[str]]], grace: float
) -> None:
    suspects, now, history = SuspectTimes[str](), 0.0, []
    for pause, seen in looks:
        now += pause
        history.append((now, seen))
        for suspect in suspects.due(dict.fromkeys(sorted(seen), grace), now):
            since = now
            for then, seen_then in reversed(history):
                if suspect not in seen_then:
                    break
                since = then
            assert now - since >= grace


OTHER = Allocation("sandbox-2", "ns/other", "net1", "uid-9")


def judged(reserved: Reserved, pod: PodSeen | None, *, shows_it: bool | None = None) -> ReservationVerdict:
    return judge_reservation(reserved, pod, shows_it=shows_it)


def test_a_reservation_that_a_pool_bears_out_is_not_doubted() -> None:
    fine = Reserved(holder=BY_UID, backed=True, rightful=BY_UID)
    assert not is_doubtful(fine, ALIVE)
    assert judged(fine, ALIVE) == ReservationVerdict(ReservationAction.KEEP)


def test_a_reservation_is_doubted_without_allocation_without_pod_and_when_another_has_the_address() -> None:
    assert is_doubtful(Reserved(holder=BY_UID, backed=False), ALIVE)
    assert is_doubtful(Reserved(holder=BY_UID, backed=True), None)
    assert is_doubtful(Reserved(holder=BY_UID, backed=True, rightful=OTHER), ALIVE)


def test_a_reservation_that_knows_no_uid_is_the_pods_all_the_same() -> None:
    by_whereabouts = Reserved(holder=BY_NAME, backed=True, rightful=BY_UID)
    by_podtide = Reserved(holder=BY_UID, backed=True, rightful=BY_NAME)
    assert not is_doubtful(by_whereabouts, ALIVE)
    assert not is_doubtful(by_podtide, ALIVE)


def test_a_dead_pods_reservation_is_released_after_its_allocation() -> None:
    assert judged(Reserved(holder=BY_UID, backed=True), None) == ReservationVerdict(
        ReservationAction.KEEP, Orphaned.GONE
    )
    assert judged(Reserved(holder=BY_UID, backed=False), None) == ReservationVerdict(
        ReservationAction.RELEASE, Orphaned.GONE
    )


def test_a_reservation_of_an_add_that_broke_off_is_released_though_its_pod_lives() -> None:
    verdict = judged(Reserved(holder=BY_UID, backed=False), ALIVE)
    assert verdict == ReservationVerdict(ReservationAction.RELEASE, Spare.NEVER_HELD)


def test_a_reservation_by_whereabouts_is_released_only_when_the_living_pod_shows_other_addresses() -> None:
    alone = Reserved(holder=BY_NAME, backed=False)
    assert judged(alone, ALIVE, shows_it=None) == ReservationVerdict(ReservationAction.KEEP)
    assert judged(alone, ALIVE, shows_it=True) == ReservationVerdict(ReservationAction.KEEP)
    assert judged(alone, ALIVE, shows_it=False) == ReservationVerdict(
        ReservationAction.RELEASE, Spare.NOT_SHOWN
    )


def test_a_reservation_is_corrected_rather_than_released_where_somebody_living_has_the_address() -> None:
    dead = Reserved(holder=BY_UID, backed=False, rightful=OTHER)
    assert judged(dead, None) == ReservationVerdict(ReservationAction.CORRECT, Orphaned.GONE)
    came_back = Allocation("sandbox-3", "ns/web-0", "net1", "uid-2")
    outdated = Reserved(holder=BY_UID, backed=True, rightful=came_back)
    assert judged(outdated, PodSeen(frozenset({"uid-2"}))) == ReservationVerdict(
        ReservationAction.CORRECT, Orphaned.REPLACED
    )


def test_where_two_living_pods_claim_an_address_nothing_is_touched() -> None:
    assert judged(Reserved(holder=BY_UID, backed=True, rightful=OTHER), ALIVE) == ReservationVerdict(
        ReservationAction.KEEP
    )


def test_a_replaced_pods_reservation_is_its_successors_where_the_pool_has_the_address_by_name_alone() -> None:
    outdated = Reserved(holder=BY_UID, backed=True, rightful=BY_NAME)
    assert judged(outdated, PodSeen(frozenset({"uid-2"}))) == ReservationVerdict(
        ReservationAction.CORRECT, Orphaned.REPLACED
    )
    assert judged(Reserved(holder=BY_UID, backed=True), PodSeen(frozenset({"uid-2"}))) == ReservationVerdict(
        ReservationAction.KEEP, Orphaned.REPLACED
    )
