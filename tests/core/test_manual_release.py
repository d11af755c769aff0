"""A person may free what no pod can have, and nothing else without force."""

import pytest

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import PodSeen
from podtide.core.networks.manual_release import NodeOfAddress, ReleaseObjection, objections_to_release
from podtide.core.ranges import parse_address

ADDRESS = parse_address("10.7.0.1")
HOLDER = Allocation("sandbox", "default/web", "net1", "uid")


@pytest.mark.parametrize(
    "pod",
    [None, PodSeen(frozenset({"another"})), PodSeen(frozenset({"uid"}), ended=True)],
    ids=["gone", "replaced", "ended"],
)
def test_what_was_a_pods_that_is_not_there_any_more_may_be_freed(pod: PodSeen | None) -> None:
    assert objections_to_release(HOLDER, pod, ADDRESS, is_shown=False, node=NodeOfAddress.THERE) == ()


@pytest.mark.parametrize(
    ("pod", "objection"),
    [
        (PodSeen(frozenset({"uid"})), ReleaseObjection.ALIVE),
        (PodSeen(frozenset({"uid"}), stranded=True), ReleaseObjection.STRANDED),
    ],
    ids=["alive", "stranded"],
)
def test_what_a_pod_may_have_may_not_be_freed(pod: PodSeen, objection: ReleaseObjection) -> None:
    found = objections_to_release(HOLDER, pod, ADDRESS, is_shown=False, node=NodeOfAddress.THERE)
    assert found == (objection,)


def test_what_names_no_pod_is_proven_by_nothing() -> None:
    found = objections_to_release(
        Allocation("sandbox", "", "net1"), None, ADDRESS, is_shown=False, node=NodeOfAddress.THERE
    )
    assert found == (ReleaseObjection.UNPROVEN,)


def test_what_any_pod_shows_and_what_is_in_quarantine_may_not_be_freed_although_its_pod_is_gone() -> None:
    found = objections_to_release(HOLDER, None, ADDRESS, is_shown=True, node=NodeOfAddress.DELETED)
    assert found == (ReleaseObjection.SHOWN, ReleaseObjection.QUARANTINED)


@pytest.mark.parametrize(
    ("pod", "objections"),
    [
        (None, (ReleaseObjection.UNPLACED,)),
        (PodSeen(frozenset({"another"})), (ReleaseObjection.UNPLACED,)),
        (PodSeen(frozenset({"uid"}), ended=True), ()),
        (PodSeen(frozenset({"uid"})), (ReleaseObjection.ALIVE,)),
    ],
    ids=["gone", "replaced", "ended", "alive"],
)
def test_a_pod_that_is_gone_from_nobody_knows_which_node_may_run_on_where_its_node_was_deleted(
    pod: PodSeen | None, objections: tuple[ReleaseObjection, ...]
) -> None:
    """A pool that all nodes share: repair waits for the quarantine, and a person has no more to go on than repair."""
    found = objections_to_release(HOLDER, pod, ADDRESS, is_shown=False, node=NodeOfAddress.UNKNOWN)
    assert found == objections
