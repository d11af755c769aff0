"""Checked change by change, as much is found as in the whole picture, and in the same words."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.audit.incremental import RunningAudit
from podtide.core.audit.invariants import (
    Grant,
    Ledger,
    NodeView,
    Picture,
    PodView,
    Violation,
    audit,
    audit_change,
    miscounts,
)
from podtide.core.pool.states import State

NODES = ["a", "b"]
OF_CHANGES = 3
"""The invariant that speaks of two instants."""


def audit_of_a_node() -> RunningAudit:
    """A node with two addresses, of which a pod has one."""
    running = RunningAudit()
    assert not running.granted(Grant("nc-a", "a", "pods", "10.0.0.1", {"a-1": "10.0.0.2", "a-2": "10.0.0.3"}))
    assert not running.known(NodeView("a", {"10.0.0.2": State.ASSIGNED, "10.0.0.3": State.AVAILABLE}))
    assert not running.pod_has("sandbox-x", PodView("ns/x", "a", ("10.0.0.2",)))
    return running


def words(violations: tuple[Violation, ...]) -> list[str]:
    return [str(violation) for violation in violations]


def test_an_address_that_two_pods_get_is_found() -> None:
    found = audit_of_a_node().pod_has("sandbox-y", PodView("ns/y", "a", ("10.0.0.2",)))
    assert words(found) == ["invariant 1: 10.0.0.2 is assigned to both ns/x and ns/y"]


def test_an_address_that_two_containers_get_is_found() -> None:
    found = audit_of_a_node().granted(Grant("nc-b", "b", "pods", "10.0.0.9", {"b-1": "10.0.0.3"}))
    assert words(found) == ["invariant 1: 10.0.0.3 is in both container nc-a and container nc-b"]


def test_an_address_in_two_pools_is_found_unless_one_is_giving_it_up() -> None:
    running = audit_of_a_node()
    assert not running.known(NodeView("b", {}))
    assert words(running.moved("b", "10.0.0.3", State.AVAILABLE)) == [
        "invariant 1: 10.0.0.3 is in the pools of both a and b"
    ]
    running = audit_of_a_node()
    assert not running.moved("a", "10.0.0.3", State.PENDING_RELEASE)
    assert not running.known(NodeView("b", {"10.0.0.3": State.AVAILABLE}))


def test_an_address_leaves_a_node_only_after_the_node_named_it() -> None:
    without = Grant("nc-a", "a", "pods", "10.0.0.1", {"a-1": "10.0.0.2"})
    assert words(audit_of_a_node().granted(without)) == [
        "invariant 3: 10.0.0.3 (a-2) left node a, which had not named it for release"
    ]
    running = audit_of_a_node()
    running.named("a", ["a-2"])
    assert not running.granted(without)


def test_what_a_node_held_that_is_gone_may_go() -> None:
    running = audit_of_a_node()
    running.unknown("a")
    assert not running.ungranted("nc-a")
    assert running.held("pods") == 0


def test_what_a_pod_has_must_stay_granted_and_assigned() -> None:
    running = audit_of_a_node()
    running.named("a", ["a-1"])
    assert words(running.granted(Grant("nc-a", "a", "pods", "10.0.0.1", {"a-2": "10.0.0.3"}))) == [
        "invariant 4: 10.0.0.2 is assigned on node a, but no container grants it there"
    ]
    assert words(audit_of_a_node().moved("a", "10.0.0.2", State.AVAILABLE)) == [
        "invariant 4: 10.0.0.2 is used by pod ns/x, but not assigned in the pool of node a"
    ]
    assert words(audit_of_a_node().pod_has("sandbox-y", PodView("ns/y", "a", ("10.0.0.3",)))) == [
        "invariant 4: 10.0.0.3 is used by pod ns/y, but not assigned in the pool of node a"
    ]


def test_a_nodes_primary_address_is_no_pods() -> None:
    assert words(audit_of_a_node().moved("a", "10.0.0.1", State.ASSIGNED)) == [
        "invariant 4: 10.0.0.1 is assigned on node a, but no container grants it there"
    ]


def test_a_pool_that_is_known_anew_without_what_a_pod_has_is_found() -> None:
    only_the_other = NodeView("a", {"10.0.0.3": State.AVAILABLE})
    assert words(audit_of_a_node().known(only_the_other)) == [
        "invariant 4: 10.0.0.2 is used by pod ns/x, but not assigned in the pool of node a"
    ]
    as_it_was = NodeView("a", {"10.0.0.2": State.ASSIGNED, "10.0.0.3": State.PENDING_RELEASE})
    assert not audit_of_a_node().known(as_it_was)


def test_what_two_pods_had_is_the_others_when_one_is_gone() -> None:
    running = audit_of_a_node()
    assert running.pod_has("sandbox-y", PodView("ns/y", "a", ("10.0.0.2",)))
    running.pod_gone("sandbox-x")
    assert [pod.pod for pod in running.picture().pods] == ["ns/y"]
    assert words(running.pod_has("sandbox-z", PodView("ns/z", "a", ("10.0.0.2",)))) == [
        "invariant 1: 10.0.0.2 is assigned to both ns/y and ns/z"
    ]


def test_an_address_that_left_a_pool_can_be_anothers_whoever_uses_it_there() -> None:
    running = audit_of_a_node()
    assert not running.moved("a", "10.0.0.3", None)
    assert not running.known(NodeView("b", {"10.0.0.3": State.AVAILABLE}))
    assert words(running.moved("b", "10.0.0.2", State.AVAILABLE)) == [
        "invariant 1: 10.0.0.2 is in the pools of both a and b"
    ]


def test_what_a_node_was_giving_up_stays_no_pools_when_the_node_is_unknown() -> None:
    running = audit_of_a_node()
    assert not running.moved("a", "10.0.0.3", State.PENDING_RELEASE)
    running.unknown("a")
    assert not running.known(NodeView("b", {"10.0.0.3": State.AVAILABLE}))


@pytest.mark.parametrize(("reserved", "broken"), [(3, []), (2, ["but its containers hold 3"])])
def test_counts_are_held_against_what_containers_hold(reserved: int, broken: list[str]) -> None:
    ledger = Ledger("pods", capacity=10, reserved=reserved, free=10 - reserved)
    found = miscounts(ledger, audit_of_a_node().held("pods"))
    assert [str(each).partition(", ")[2] for each in found] == broken


class Scene:
    """What a running audit is told, put down as a picture."""

    def __init__(self) -> None:
        self.grants: dict[str, Grant] = {}
        self.states: dict[str, dict[str, State]] = {}
        self.named: dict[str, frozenset[str]] = {node: frozenset() for node in NODES}
        self.pods: dict[str, PodView] = {}

    def picture(self) -> Picture:
        return Picture(
            grants=tuple(self.grants.values()),
            nodes=tuple(
                NodeView(node, dict(states), self.named[node]) for node, states in self.states.items()
            ),
            pods=tuple(self.pods.values()),
        )


Step = Callable[[RunningAudit, Scene], tuple[Violation, ...]]


def granted(node: str, primary: str, ips: dict[str, str]) -> Step:
    grant = Grant(f"nc-{node}", node, "pods", primary, {f"{node}-{name}": ip for name, ip in ips.items()})

    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        scene.grants[grant.container] = grant
        return running.granted(grant)

    return tell


def ungranted(node: str) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        scene.grants.pop(f"nc-{node}", None)
        return running.ungranted(f"nc-{node}")

    return tell


def known(node: str, states: dict[str, State], name: str) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        scene.states[node] = dict(states)
        scene.named[node] |= {f"{node}-{name}"}
        return running.known(NodeView(node, states, frozenset({f"{node}-{name}"})))

    return tell


def unknown(node: str) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        scene.states.pop(node, None)
        running.unknown(node)
        return ()

    return tell


def moved(node: str, ip: str, state: State | None) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        if node not in scene.states:
            return ()
        scene.states[node].pop(ip, None)
        if state is not None:
            scene.states[node][ip] = state
        return running.moved(node, ip, state)

    return tell


def named(node: str, name: str) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        scene.named[node] |= {f"{node}-{name}"}
        running.named(node, [f"{node}-{name}"])
        return ()

    return tell


def pod_has(sandbox: str, node: str, ip: str) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        pod = scene.pods[sandbox] = PodView(f"pod of {sandbox}", node, (ip,))
        return running.pod_has(sandbox, pod)

    return tell


def pod_gone(sandbox: str) -> Step:
    def tell(running: RunningAudit, scene: Scene) -> tuple[Violation, ...]:
        scene.pods.pop(sandbox, None)
        running.pod_gone(sandbox)
        return ()

    return tell


_ips = st.sampled_from([f"10.0.0.{last}" for last in range(1, 6)])
_nodes = st.sampled_from(NODES)
_names = st.sampled_from(["1", "2", "3"])
_states = st.sampled_from(State)
_sandboxes = st.sampled_from(["s", "t"])
_steps = st.one_of(
    st.builds(granted, _nodes, _ips, st.dictionaries(_names, _ips)),
    st.builds(ungranted, _nodes),
    st.builds(known, _nodes, st.dictionaries(_ips, _states), _names),
    st.builds(unknown, _nodes),
    st.builds(moved, _nodes, _ips, st.none() | _states),
    st.builds(named, _nodes, _names),
    st.builds(pod_has, _sandboxes, _nodes, _ips),
    st.builds(pod_gone, _sandboxes),
)


@given(st.lists(_steps, max_size=15))
def test_on_any_story_it_finds_what_pictures_before_and_after_each_step_show(story: list[Step]) -> None:
    running, scene = RunningAudit(), Scene()
    for step in story:
        before = scene.picture()
        found = keys(step(running, scene))
        after = scene.picture()
        assert in_order(running.picture()) == in_order(after)
        wrong = keys(audit(after))
        assert wrong - keys(audit(before)) <= {key for key in found if key[0] != OF_CHANGES} <= wrong
        assert {key for key in found if key[0] == OF_CHANGES} == keys(audit_change(before, after))


def keys(violations: Iterable[Violation]) -> set[tuple[int, str]]:
    return {(each.invariant, each.subject) for each in violations}


def in_order(picture: Picture) -> Picture:
    return Picture(
        grants=tuple(sorted(picture.grants, key=lambda grant: grant.container)),
        nodes=tuple(sorted(picture.nodes, key=lambda view: view.node)),
        pods=tuple(sorted(picture.pods, key=lambda pod: pod.pod)),
    )
