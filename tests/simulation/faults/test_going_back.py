"""Seeded runs in which etcd is restored from backups, and in which one watch of one program is in trouble alone."""

import pytest
from msgspec import structs

from podtide.simulation.run.fault_plan import PlannedMishap, fault_plan_for
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.simulate import simulate


def report_of(seed: int, fault: str, networks: int) -> RunReport:
    faults = frozenset({fault})
    return simulate(fault_plan_for(seed, nodes=3, faults=faults, trouble_seconds=150.0, networks=networks))


@pytest.mark.parametrize(
    ("seed", "networks"),
    [(2, 0), pytest.param(3, 1, marks=pytest.mark.slow), pytest.param(55, 2, marks=pytest.mark.slow)],
)
def test_the_invariants_hold_when_etcd_is_restored_from_a_backup(seed: int, networks: int) -> None:
    report = report_of(seed, "etcd-restored", networks)
    assert report.failure == ""
    assert report.faults["etcd-restored"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("other", ["node-recreated", "machine-replaced"])
def test_the_invariants_hold_when_etcd_is_restored_to_before_nodes_went_or_came(other: str) -> None:
    for seed in range(3):
        plan = fault_plan_for(seed, nodes=3, faults=frozenset(), trouble_seconds=100.0)
        first, second = (PlannedMishap(30.0 + number, other, number) for number in (1, 2))
        backups = tuple(
            PlannedMishap(at, "etcd-restored", seed + number) for number, at in enumerate((20.0, 31.5))
        )
        report = simulate(structs.replace(plan, clusters=1, mishaps=(first, second, *backups)))
        assert report.failure == ""
        assert report.faults["etcd-restored"] == len(backups)


@pytest.mark.parametrize(("seed", "networks"), [(1, 0), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_the_invariants_hold_when_one_watch_alone_is_in_trouble(seed: int, networks: int) -> None:
    report = report_of(seed, "one-watch", networks)
    assert report.failure == ""
    assert report.faults["one-watch"] > 0


def test_there_is_no_watch_to_spoil_while_no_program_runs() -> None:
    plan = fault_plan_for(1, nodes=1, faults=frozenset(), trouble_seconds=60.0)
    gone = (PlannedMishap(10.0, "machine-replaced", 0), PlannedMishap(10.0, "controller-crash", 0))
    spoilt = tuple(PlannedMishap(11.0 + number, "one-watch", number) for number in range(40))
    report = simulate(structs.replace(plan, controllers=1, clusters=1, mishaps=(*gone, *spoilt)))
    assert report.failure == ""
    assert 0 < report.faults["one-watch"] < len(spoilt)
