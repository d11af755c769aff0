"""What an agent without contact must not do is found where it shows, and what it may do is not."""

import pytest
from msgspec import structs

from podtide.agent.request.readiness import Readiness
from podtide.core.audit.invariants import Violation
from podtide.core.pool.states import State
from podtide.simulation.checks.out_of_contact import ContactCheck
from podtide.simulation.faults.table import ALL, chosen_faults
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap, fault_plan_for
from podtide.simulation.run.simulate import simulate
from podtide.simulation.trace import PoolMove


def deaf_agents() -> FaultPlan:
    """Agents that hear nothing of their NodeNetworkConfigs for minutes, and may go on for half a minute only."""
    plan = fault_plan_for(3, nodes=2, faults=chosen_faults("deaf-agent"), trouble_seconds=260.0)
    return structs.replace(
        plan,
        subnet="10.0.0.0/25",
        pressure=0.25,
        mishaps=tuple(PlannedMishap(40.0 + number, "deaf-agent", number) for number in range(8)),
        contact_timeout_seconds=30.0,
        quarantine_seconds=160.0,
    )


def moved(state: State, at: float, node: str = "node-0") -> PoolMove:
    return PoolMove(at=at, node=node, ip="10.0.0.1", name="a", state=state, owner="default/pod")


@pytest.mark.parametrize(
    ("states", "at", "is_found"),
    [
        ((State.AVAILABLE, State.ASSIGNED), 391.0, True),
        ((State.AVAILABLE, State.ASSIGNED), 389.0, False),
        ((State.QUARANTINED, State.ASSIGNED), 1000.0, False),
        ((State.ORPHANED, State.ASSIGNED), 1000.0, False),
        ((State.ASSIGNED, State.AVAILABLE), 1000.0, False),
    ],
)
def test_a_free_address_that_is_given_without_contact_is_found(
    states: tuple[State, State], at: float, *, is_found: bool
) -> None:
    findings = list[Violation]()
    check = ContactCheck({"node-0": 30.0}.get, findings.append, contact_timeout_seconds=300.0)
    for state in states:
        check.move(moved(state, at))
        check.move(moved(state, at, "node-1"))
    assert bool(findings) == is_found
    if is_found:
        assert "10.0.0.1 was given to default/pod on node-0, whose agent had heard nothing" in str(
            findings[0]
        )


def test_agents_that_hear_nothing_of_their_configs_hand_out_nothing_new() -> None:
    report = simulate(deaf_agents())
    assert report.failure == ""
    assert report.faults["deaf-agent"] > 0


def test_agents_that_went_on_all_the_same_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Readiness, "is_in_contact", True)
    assert "whose agent had heard nothing of its NodeNetworkConfig" in simulate(deaf_agents()).failure


def test_a_fault_that_came_later_is_not_among_all_so_that_seeds_stay_what_they_are() -> None:
    assert "deaf-agent" not in chosen_faults(ALL)
    assert chosen_faults("deaf-agent") == {"deaf-agent"}
