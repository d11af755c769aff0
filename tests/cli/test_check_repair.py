"""`podtide check --repair` does what the controller's repair does, and nothing more."""

import io
from pathlib import Path

import pytest

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster
from cli.drawn_networks import draw_definition, draw_pool, draw_reservation, held_by
from podtide.cli.check.repair import RepairReport, repair_leaks
from podtide.cli.shell.exit_status import ExitStatus
from podtide.core.networks.leaks import LeakGrace
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import PodPhase
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

PATIENCE = LeakGrace(leak_grace_seconds=60.0, quarantine_seconds=360.0)


async def a_leaky_cluster() -> DrawnCluster:
    """An address of a pod that ended, one of a pod that is gone, and one of a living pod that is not reserved."""
    drawn = DrawnCluster()
    await drawn.node("a")
    await drawn.pod("web", "a", "10.1.0.1")
    await drawn.pod("done", "a", "10.1.0.2", phase=PodPhase.SUCCEEDED)
    await draw_definition(drawn, "shared", "10.8.0.0/24")
    held = {1: held_by("default/web"), 2: held_by("default/done"), 3: held_by("default/gone")}
    await draw_pool(drawn, "10.8.0.0-24", "10.8.0.0/24", held)
    await draw_reservation(drawn, "10.8.0.2", "default/done")
    await draw_reservation(drawn, "10.8.0.3", "default/gone")
    return drawn


async def repair(
    drawn: DrawnCluster, patience: LeakGrace = PATIENCE, *, dry_run: bool = False
) -> RepairReport:
    clock = LoopClock()
    runtime = Runtime(clock=clock, randomness=seeded_randomness(1), log=make_logger(io.StringIO(), clock))
    return await repair_leaks(
        drawn.cluster, SYSTEM_NAMESPACE, patience=patience, dry_run=dry_run, runtime=runtime
    )


async def state(drawn: DrawnCluster) -> tuple[set[str], set[str]]:
    pool = await drawn.cluster.get(IPPool, "10.8.0.0-24", SYSTEM_NAMESPACE)
    reserved = await drawn.cluster.list(OverlappingRangeIPReservation, SYSTEM_NAMESPACE)
    return set(pool.spec.allocations), {each.metadata.name for each in reserved.items}


async def test_what_the_grace_period_suffices_for_is_repaired_and_the_rest_is_left() -> None:
    drawn = await a_leaky_cluster()
    report = await repair(drawn)
    assert await state(drawn) == ({"1", "3"}, {"10.8.0.1", "10.8.0.3"})
    assert sorted(report.done) == [
        "create OverlappingRangeIPReservation kube-system/10.8.0.1",
        "delete OverlappingRangeIPReservation kube-system/10.8.0.2",
        "update IPPool kube-system/10.8.0.0-24",
    ]
    assert report.left == 2  # the address of the pod that is gone, and its reservation


async def test_with_the_quarantines_patience_a_gone_pods_address_is_repaired_too() -> None:
    drawn = await a_leaky_cluster()
    report = await repair(drawn, LeakGrace(leak_grace_seconds=360.0, quarantine_seconds=360.0))
    assert await state(drawn) == ({"1"}, {"10.8.0.1"})
    assert report.left == 0


async def test_a_dry_run_says_the_same_and_writes_nothing() -> None:
    drawn = await a_leaky_cluster()
    before = await state(drawn)
    report = await repair(drawn, dry_run=True)
    assert await state(drawn) == before
    assert "update IPPool kube-system/10.8.0.0-24" in report.done


async def test_where_nothing_leaks_nothing_is_waited_for_or_written() -> None:
    drawn = DrawnCluster()
    await drawn.node("a")
    assert await repair(drawn) == RepairReport(done=(), left=0, dry_run=False)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--dry-run",), "--dry-run and --grace are for --repair"),
        (("--repair", "--grace", "1s"), "--grace=1s is refused: a leak must last"),
    ],
)
def test_what_would_not_be_safe_is_refused(
    podtide: Run, tmp_path: Path, words: tuple[str, ...], error: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
    )
    outcome = podtide("check", "--kubeconfig", str(kubeconfig), *words)
    assert outcome.status == ExitStatus.BAD_INPUT
    assert error in outcome.err
