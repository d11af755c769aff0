"""What people set in a ClusterSubnet is valid, of every kind, and taken back in the end or left."""

from random import Random

import pytest
from msgspec import structs

from podtide.resources.cluster_subnet import ScalerOverride
from podtide.simulation.faults.subnets import drawn_override
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap, fault_plan_for
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.simulate import simulate


def quiet_plan(fault: str, *, cluster_subnets: bool) -> FaultPlan:
    """Nothing goes wrong but this, once each ten seconds."""
    plan = fault_plan_for(3, nodes=2, faults=frozenset(), trouble_seconds=90.0)
    mishaps = tuple(PlannedMishap(10.0 * number, fault, number) for number in range(1, 9))
    return structs.replace(
        plan, subnet="10.0.0.0/25", cluster_subnets=cluster_subnets, mishaps=mishaps, clusters=1
    )


def run(fault: str, *, cluster_subnets: bool) -> RunReport:
    return simulate(quiet_plan(fault, cluster_subnets=cluster_subnets))


def test_every_part_of_an_override_is_set_now_and_then_and_none_too() -> None:
    chance = Random(1)
    drawn = [drawn_override(chance) for _ in range(300)]
    for part in structs.fields(ScalerOverride):
        assert any(getattr(each, part.name) is not None for each in drawn)
    assert ScalerOverride() in drawn


def test_no_override_is_drawn_that_contradicts_itself() -> None:
    chance = Random(2)
    for each in (drawn_override(chance) for _ in range(300)):
        assert each.fixed is None or (each.batch is None and each.min_batch is None)
        assert each.batch is None or each.min_batch is None or each.min_batch < each.batch
        assert each.thresholds is None or 0 < each.thresholds.lower < each.thresholds.upper < 1


def test_overrides_are_set_where_there_are_cluster_subnets_and_nothing_breaks() -> None:
    report = run("override", cluster_subnets=True)
    assert report.failure == ""
    assert report.faults["override"] > 5


def test_where_there_is_no_cluster_subnet_nobody_overrides_it() -> None:
    report = run("override", cluster_subnets=False)
    assert report.failure == ""
    assert report.faults == {}


@pytest.mark.parametrize(("cluster_subnets", "made"), [(False, {"cluster-subnet-made": 1}), (True, {})])
def test_a_cluster_subnet_is_made_by_hand_only_where_the_controller_knows_none(
    cluster_subnets: bool, made: dict[str, int]
) -> None:
    report = run("cluster-subnet-made", cluster_subnets=cluster_subnets)
    assert report.failure == ""
    assert report.faults == made
