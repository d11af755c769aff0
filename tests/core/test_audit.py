"""The auditor finds each broken invariant, and is silent on a sound picture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podtide.core.audit.invariants import Grant, Ledger, NodeView, Picture, PodView, audit, audit_change
from podtide.core.pool.states import State

SOUND = Picture(
    ledgers=(Ledger("pods", capacity=10, reserved=6, free=3, resting=1),),
    grants=(
        Grant("nc-a", "a", "pods", "10.0.0.1", {"a-1": "10.0.0.2", "a-2": "10.0.0.3"}),
        Grant("nc-b", "b", "pods", "10.0.0.4", {"b-1": "10.0.0.5", "b-2": "10.0.0.6"}),
    ),
    nodes=(
        NodeView("a", {"10.0.0.2": State.ASSIGNED, "10.0.0.3": State.AVAILABLE}),
        NodeView("b", {"10.0.0.5": State.ASSIGNED, "10.0.0.6": State.PENDING_RELEASE}, frozenset({"b-2"})),
    ),
    pods=(PodView("ns/x", "a", ("10.0.0.2",)), PodView("ns/y", "b", ("10.0.0.5",))),
)


def words(picture: Picture) -> list[str]:
    return [str(violation) for violation in audit(picture)]


def test_a_sound_picture_has_no_violation() -> None:
    assert audit(SOUND) == ()
    assert audit(Picture()) == ()
    assert audit_change(SOUND, SOUND) == ()


def test_an_address_of_two_pods_is_found() -> None:
    twin = PodView("ns/z", "a", ("10.0.0.2",))
    assert words(structs.replace(SOUND, pods=(*SOUND.pods, twin))) == [
        "invariant 1: 10.0.0.2 is assigned to both ns/x and ns/z"
    ]


@pytest.mark.parametrize(("primary", "secondary"), [("10.0.0.2", "10.0.0.9"), ("10.0.0.9", "10.0.0.1")])
def test_an_address_in_two_containers_is_found(primary: str, secondary: str) -> None:
    third = Grant("nc-c", "c", "elsewhere", primary, {"c-1": secondary})
    shared = primary if primary != "10.0.0.9" else secondary
    assert words(structs.replace(SOUND, grants=(*SOUND.grants, third))) == [
        f"invariant 1: {shared} is in both container nc-a and container nc-c"
    ]


def test_an_address_twice_in_one_container_is_found() -> None:
    double = Grant("nc-c", "c", "elsewhere", "10.0.0.7", {"c-1": "10.0.0.8", "c-2": "10.0.0.8"})
    assert words(structs.replace(SOUND, grants=(*SOUND.grants, double))) == [
        "invariant 1: 10.0.0.8 is in both container nc-c and container nc-c"
    ]


def test_an_address_in_two_pools_is_found_unless_one_is_giving_it_up() -> None:
    taken = NodeView("c", {"10.0.0.3": State.AVAILABLE})
    assert words(structs.replace(SOUND, nodes=(*SOUND.nodes, taken))) == [
        "invariant 1: 10.0.0.3 is in the pools of both a and c"
    ]
    handed_on = NodeView("c", {"10.0.0.6": State.AVAILABLE})
    assert audit(structs.replace(SOUND, nodes=(*SOUND.nodes, handed_on))) == ()


def test_counts_that_do_not_add_up_are_found() -> None:
    ledger = Ledger("pods", capacity=10, reserved=7, free=3, resting=1)
    assert words(structs.replace(SOUND, ledgers=(ledger,))) == [
        "invariant 2: subnet pods counts 7 reserved + 3 free + 1 resting = 11, but its capacity is 10",
        "invariant 2: subnet pods counts 7 reserved, but its containers hold 6",
    ]
    assert audit(structs.replace(SOUND, ledgers=(Ledger("unused", 5, 0, 5),))) == ()


def test_an_address_that_left_unnamed_is_found() -> None:
    named_one_gone = Grant("nc-b", "b", "pods", "10.0.0.4", {"b-1": "10.0.0.5"})
    live_one_gone = Grant("nc-b", "b", "pods", "10.0.0.4", {"b-2": "10.0.0.6"})
    assert audit_change(SOUND, structs.replace(SOUND, grants=(SOUND.grants[0], named_one_gone))) == ()
    violations = audit_change(SOUND, structs.replace(SOUND, grants=(SOUND.grants[0], live_one_gone)))
    assert [str(violation) for violation in violations] == [
        "invariant 3: 10.0.0.5 (b-1) left node b, which had not named it for release"
    ]


def test_a_node_that_is_gone_takes_its_addresses_along() -> None:
    without_b = structs.replace(SOUND, grants=SOUND.grants[:1], nodes=SOUND.nodes[:1])
    assert audit_change(SOUND, without_b) == ()


@pytest.mark.parametrize("state", [State.ASSIGNED, State.ORPHANED])
def test_an_assigned_address_that_nobody_grants_is_found(state: State) -> None:
    view = NodeView("a", {"10.0.0.2": State.ASSIGNED, "10.0.0.8": state})
    assert words(structs.replace(SOUND, nodes=(view, SOUND.nodes[1]))) == [
        "invariant 4: 10.0.0.8 is assigned on node a, but no container grants it there"
    ]


@pytest.mark.parametrize("state", [State.AVAILABLE, State.PENDING_RELEASE, State.PENDING_PROGRAMMING])
def test_a_pods_address_that_its_node_thinks_free_is_found(state: State) -> None:
    view = NodeView("a", {"10.0.0.2": state})
    assert words(structs.replace(SOUND, nodes=(view, SOUND.nodes[1]))) == [
        "invariant 4: 10.0.0.2 is used by pod ns/x, but not assigned in the pool of node a"
    ]


def test_a_quarantined_address_may_well_be_a_pods() -> None:
    view = NodeView("a", {"10.0.0.2": State.QUARANTINED, "10.0.0.3": State.QUARANTINED})
    assert audit(structs.replace(SOUND, nodes=(view, SOUND.nodes[1]))) == ()


def test_a_pod_on_a_node_whose_pool_is_not_seen_is_not_judged() -> None:
    assert audit(structs.replace(SOUND, nodes=SOUND.nodes[1:])) == ()


@given(st.permutations(range(4)))
def test_the_order_of_the_findings_does_not_depend_on_the_order_of_the_picture(order: list[int]) -> None:
    pods = tuple(PodView(f"ns/{n % 2}", "unseen", (f"10.9.0.{n // 2}",)) for n in order)
    assert [violation.subject for violation in audit(Picture(pods=pods))] == ["10.9.0.0", "10.9.0.1"]
