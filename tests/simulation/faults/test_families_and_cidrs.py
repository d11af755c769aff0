"""Runs in which pods have addresses of two families, and in which CIDRs come and go."""

import pytest
from msgspec import structs

from podtide.simulation.faults.table import chosen_faults
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap, fault_plan_for
from podtide.simulation.run.simulate import simulate


def quiet_plan(*mishaps: PlannedMishap) -> FaultPlan:
    plan = fault_plan_for(3, nodes=3, faults=frozenset(), trouble_seconds=90.0)
    return structs.replace(
        plan, subnet="10.0.0.0/26", clusters=1, agents=(), mishaps=mishaps, cluster_subnets=True, subnet_v6=""
    )


@pytest.mark.slow
def test_a_run_with_two_families_comes_to_rest() -> None:
    report = simulate(structs.replace(quiet_plan(), subnet_v6="fd00:9::/112"))
    assert report.failure == ""
    assert report.pods > 10


def test_a_run_in_which_cidrs_drain_comes_to_rest() -> None:
    mishaps = (PlannedMishap(15.0 + 20 * number, "subnet-shrunk", number) for number in range(4))
    report = simulate(quiet_plan(*mishaps))
    assert report.failure == ""
    assert report.faults["subnet-shrunk"] >= 2
    assert "subnet-shrunk" in chosen_faults("all")
