"""States are counted when they are visited, and what was never visited is told."""

from collections import Counter

from podtide.core.pool.states import State
from podtide.simulation.checks.reach import SOMETIMES, Reach, never
from podtide.simulation.trace import AllocatorCall, PluginCall, PoolMove


def move(state: State | None, node: str = "node-0", name: str = "a") -> PoolMove:
    return PoolMove(at=0.0, node=node, ip="10.0.0.1", name=name, state=state)


def in_force(batch: int, *, exhausted: bool = False, starved: bool = False) -> AllocatorCall:
    return AllocatorCall(
        at=0.0,
        program="controller",
        call="put_in_force",
        subject="pods",
        batch=batch,
        exhausted=exhausted,
        starved=starved,
    )


def test_a_transition_is_counted_by_both_states_and_each_node_for_itself() -> None:
    reach = Reach()
    for state in (State.PENDING_PROGRAMMING, State.AVAILABLE, State.AVAILABLE, State.ASSIGNED):
        reach.move(move(state))
    reach.move(move(State.QUARANTINED, node="node-1"))
    reach.move(move(None))
    assert reach.counts == {
        "address absent → PendingProgramming": 1,
        "address PendingProgramming → Available": 1,
        "address Available → Assigned": 1,
        "address absent → Quarantined": 1,
        "address Assigned → absent": 1,
    }


def test_steps_of_a_subnet_are_changes_and_not_values() -> None:
    reach = Reach()
    for entry in (
        in_force(16),
        in_force(8, exhausted=True),
        in_force(8, exhausted=True, starved=True),
        in_force(16),
    ):
        reach.hear(entry)
    assert {state: times for state, times in reach.counts.items() if not state.startswith("allocator")} == {
        "batch lowered": 1,
        "exhausted": 1,
        "starved": 1,
        "batch raised": 1,
        "not exhausted": 1,
        "not starved": 1,
    }


def test_an_error_code_is_counted_by_its_verb() -> None:
    reach = Reach()
    call = PluginCall(
        at=0.0, took_seconds=0.0, node="n", verb="ADD", pod="p", sandbox="s", ok=False, words="code 11: later"
    )
    reach.hear(call)
    assert reach.counts == {"ADD answers 11": 1}


def test_what_was_never_visited_is_told() -> None:
    assert never(Counter()) == sorted(SOMETIMES)
    some = Counter({"address Available → Assigned": 3, "starved": 1})
    assert set(never(some)) == SOMETIMES - some.keys()
