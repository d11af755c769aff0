"""A failing plan is made smaller as long as it fails in the same way."""

from msgspec import structs

from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import FaultPlan, fault_plan_for
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.shrinking import Shrinking, kind_of_failure


def report(plan: FaultPlan, failure: str) -> RunReport:
    return RunReport(
        plan=plan,
        trace_hash="",
        entries=0,
        simulated_seconds=0.0,
        pods=0,
        steps=0,
        faults={},
        failure=failure,
    )


def big_plan() -> FaultPlan:
    plan = fault_plan_for(1, nodes=8, faults=frozenset(FAULTS), trouble_seconds=600)
    return structs.replace(plan, clusters=2, agents=("cns-v2",))


def fails_with_delay_and_two_crashes(plan: FaultPlan) -> RunReport:
    """A bug that needs one fault on the lines, two mishaps and two nodes; others make it fail in another way."""
    crashes = [each for each in plan.mishaps if each.fault == "agent-crash"]
    if "delay" in plan.line_faults and len(crashes) >= 2 and plan.nodes >= 2:
        return report(plan, f"invariant 1: 10.0.0.{plan.nodes} is assigned to both a and b")
    return report(plan, "invariant 6: 3 of 4 pods that fit have an address")


def test_what_is_left_is_what_the_failure_needs() -> None:
    failed = fails_with_delay_and_two_crashes(big_plan())
    smallest = Shrinking(failed, fails_with_delay_and_two_crashes, most_runs=500).shrink()
    assert smallest.plan.line_faults == ("delay",)
    assert [each.fault for each in smallest.plan.mishaps] == ["agent-crash", "agent-crash"]
    assert smallest.plan.nodes == 2
    assert smallest.plan.clusters == 1
    assert smallest.plan.agents == ()
    assert smallest.plan.trouble_seconds < 600


def test_it_gives_up_after_so_many_runs_with_the_smallest_it_found() -> None:
    runs = []

    def run(plan: FaultPlan) -> RunReport:
        runs.append(plan)
        return fails_with_delay_and_two_crashes(plan)

    failed = run(big_plan())
    smallest = Shrinking(failed, run, most_runs=5).shrink()
    assert len(runs) == 1 + 5
    assert kind_of_failure(smallest.failure) == "invariant 1"


def test_two_failures_are_the_same_when_they_break_the_same_invariant() -> None:
    assert kind_of_failure("invariant 4: 10.0.0.1 is gone") == kind_of_failure(
        "invariant 4: 10.0.0.2 is gone"
    )
    assert kind_of_failure("agent node-1 ended by BrokenPool: x") != kind_of_failure("invariant 4: x")
    assert kind_of_failure("") == ""
