"""Seeded runs in which etcd is restored from backups, and in which one watch of one program is in trouble alone."""

import pytest

from podtide.simulation.plan import plan_for
from podtide.simulation.report import Report
from podtide.simulation.simulate import simulate


def report_of(seed: int, fault: str, networks: int) -> Report:
    faults = frozenset({fault})
    return simulate(plan_for(seed, nodes=3, faults=faults, trouble_seconds=150.0, networks=networks))


@pytest.mark.parametrize(("seed", "networks"), [(2, 0), (3, 1), (55, 2)])
def test_the_invariants_hold_when_etcd_is_restored_from_a_backup(seed: int, networks: int) -> None:
    report = report_of(seed, "etcd-restored", networks)
    assert report.failure == ""
    assert report.faults["etcd-restored"] > 0


@pytest.mark.parametrize(("seed", "networks"), [(1, 0), (2, 2)])
def test_the_invariants_hold_when_one_watch_alone_is_in_trouble(seed: int, networks: int) -> None:
    report = report_of(seed, "one-watch", networks)
    assert report.failure == ""
    assert report.faults["one-watch"] > 0
