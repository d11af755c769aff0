"""What befell an address, or a slice, of a secondary network is in the report of a run that failed."""

from random import Random

import pytest
from msgspec import structs

from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import PlannedMishap, fault_plan_for
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.simulate import simulate
from podtide.simulation.world.recording import RecordingCluster


def someone(scene: FaultScene) -> RecordingCluster:
    world = scene.world
    return RecordingCluster(world.cluster, "somebody", clock=world.clock, trace=world.trace)


class ReservationDeleted(Mishap):
    """Somebody deletes a reservation that a pod needs."""

    name = "reservation-deleted"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        del chance
        first = (await scene.world.cluster.list(OverlappingRangeIPReservation)).items[0]
        await someone(scene).delete(type(first), first.metadata.name, first.metadata.namespace)
        return first.metadata.name


class SliceFreed(Mishap):
    """Somebody frees the node's IPv6 slice, which has a pool."""

    name = "slice-freed"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        del chance
        for pool in (await scene.world.cluster.list(NodeSlicePool)).items:
            if pool.status is not None and ":" in pool.spec.range:
                freed = [structs.replace(each, node_name="") for each in pool.status.allocations]
                status = structs.replace(pool.status, allocations=freed)
                await someone(scene).replace(structs.replace(pool, status=status), manager="somebody")
                return pool.metadata.name
        return ""


@pytest.fixture(autouse=True)
def _more_mishaps(monkeypatch: pytest.MonkeyPatch) -> None:
    for mishap in (ReservationDeleted(), SliceFreed()):
        monkeypatch.setitem(FAULTS, mishap.name, mishap)


def run_with(mishap: str, *, networks: int) -> RunReport:
    """One node, and nothing goes wrong but the mishap."""
    plan = fault_plan_for(3, nodes=1, faults=frozenset(), trouble_seconds=30.0, networks=networks)
    return simulate(structs.replace(plan, controllers=1, mishaps=(PlannedMishap(25.0, mishap, 0),)))


def test_a_reservation_that_was_taken_away_is_in_the_history_of_its_address() -> None:
    report = run_with(ReservationDeleted.name, networks=2)
    assert report.failure.startswith("invariant 2: 10.")
    told = report.last_states
    assert [
        line for line in told if "create OverlappingRangeIPReservation" in line and "reserved for" in line
    ]
    assert [line for line in told if "replace IPPool" in line and ": held by default/pod-" in line]
    assert "somebody: delete OverlappingRangeIPReservation" in told[-1]
    assert ": no longer reserved for default/pod-" in told[-1]


def test_a_slice_that_was_freed_too_early_has_its_history_told_in_either_family() -> None:
    report = run_with(SliceFreed.name, networks=3)
    assert report.failure.startswith("invariant 1: fd00:30::/120 is freed, and pool ")
    made, listed, no_longer, pooled, freed = report.last_states
    assert made.endswith(": a pool of fd00:30::/120, inert")
    assert no_longer.endswith(": no longer a pool of fd00:30::/120, inert")
    assert listed.endswith(": slice fd00:30::/120 of node-0")
    assert pooled.endswith(": a pool of fd00:30::/120")
    assert "somebody: replace NodeSlicePool" in freed
    assert freed.endswith(": no longer slice fd00:30::/120 of node-0")
