"""Once all has come to rest nothing is written any more but the leader's Lease."""

import asyncio
from random import Random

import pytest
from msgspec import structs

from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import PlannedMishap, fault_plan_for
from podtide.simulation.run.simulate import simulate
from podtide.simulation.world.recording import RecordingCluster


class RestlessLease(Mishap):
    """A program begins that renews the Lease of a pool though nobody writes the pool."""

    name = "restless-lease"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        del chance
        world = scene.world
        line = RecordingCluster(world.cluster, "restless", clock=world.clock, trace=world.trace)
        world.programs.start("restless", self._renew(line), line)
        return "restless"

    async def _renew(self, line: RecordingCluster) -> None:
        place = ObjectMeta(name="sliced-node-0", namespace=SYSTEM_NAMESPACE)
        lease = await line.create(Lease(metadata=place, spec=LeaseSpec()), manager="restless")
        while True:
            await asyncio.sleep(60.0)
            lease = await line.replace(lease, manager="restless")


@pytest.mark.slow
def test_a_lease_that_is_not_the_leaders_is_not_renewed_where_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FAULTS, RestlessLease.name, RestlessLease())
    plan = fault_plan_for(3, nodes=1, faults=frozenset(), trouble_seconds=10.0)
    assert simulate(plan).failure == ""
    restless = structs.replace(plan, mishaps=(PlannedMishap(1.0, RestlessLease.name, 0),))
    words = simulate(restless).failure
    assert words.startswith(
        "invariant 5: nothing is to be done, and still there is restless: replace Lease sliced-node-0"
    )
