"""A restored allocator and a second cluster under one name break nothing; without the rules against them, they do."""

import pytest
from msgspec import structs

from podtide.allocator.store import container_writes, continuity_check, registry
from podtide.allocator.store.tables.transaction_context import TransactionContext
from podtide.controller.nodes import sweep
from podtide.core.subnet.cluster_identity import ContainerOwner
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap, fault_plan_for
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.simulate import simulate

RESTORED, STRANGER = "allocator-restored", "second-cluster"


def plan_with(fault: str, seed: int, clusters: int = 1) -> FaultPlan:
    """A busy small subnet in which one thing goes wrong again and again."""
    plan = fault_plan_for(seed, nodes=4, faults=frozenset(), trouble_seconds=100.0)
    times = range(20, 90, 25)
    mishaps = tuple(PlannedMishap(float(at), fault, number) for number, at in enumerate(times))
    return structs.replace(plan, subnet="10.0.0.0/27", clusters=clusters, agents=(), mishaps=mishaps)


def run(fault: str, seed: int, clusters: int = 1) -> RunReport:
    report = simulate(plan_with(fault, seed, clusters))
    assert report.faults.get(fault)
    return report


@pytest.mark.parametrize(("seed", "clusters"), [(1, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_an_allocator_that_is_restored_gives_nothing_twice(seed: int, clusters: int) -> None:
    assert run(RESTORED, seed, clusters).failure == ""


@pytest.mark.slow
def test_without_its_rule_a_restored_allocator_gives_addresses_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuity_check, "doubt_about", lambda *_: "")
    monkeypatch.setattr(container_writes, "is_behind", lambda *_: False)
    monkeypatch.setattr(registry, "is_behind", lambda *_: False)
    failures = [run(RESTORED, seed).failure for seed in (1, 2)]
    assert any("invariant" in failure for failure in failures), failures


@pytest.mark.parametrize(("seed", "clusters"), [(1, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_a_second_cluster_under_the_same_name_retires_nobody(seed: int, clusters: int) -> None:
    assert run(STRANGER, seed, clusters).failure == ""


@pytest.mark.slow
def test_without_its_rule_a_second_cluster_retires_the_first_ones_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TransactionContext, "refuse_another_cluster", lambda *_: None)
    monkeypatch.setattr(registry, "may_open_term", lambda *_: True)
    monkeypatch.setattr(registry, "is_anothers", lambda *_: False)
    monkeypatch.setattr(sweep, "owner_of", lambda *_: ContainerOwner.THIS_CLUSTER)
    failures = [run(STRANGER, 2).failure]
    assert any("invariant" in failure for failure in failures), failures
