"""What people set in a ClusterSubnet's spec, and take back or leave."""

from random import Random

from msgspec import structs

from podtide.cluster.port import Conflict, NotFound
from podtide.resources.cluster_subnet import (
    ClusterSubnet,
    ClusterSubnetSpec,
    ScalerOverride,
    ThresholdsOverride,
)
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_EDITOR = "kubectl-edit"
_BATCHES = (1, 2, 4, 8, 16, 32)
_BUFFERS = (0.0, 0.25, 0.5, 1.0)
_THRESHOLDS = ((0.5, 0.6), (0.6, 0.9), (0.8, 0.95))
_TAKEN_BACK = 0.5
_SHORTEST_SECONDS = 5.0
_LONGEST_SECONDS = 120.0


class Override(Mishap):
    """Somebody sets a subnet's batch, its bounds, its buffer or its thresholds; it is taken back later, or stays."""

    name = "override"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Set any of them, or none."""
        override = drawn_override(chance)
        subnet = scene.pick_subnet(chance)
        if not await _set(scene, subnet, override):
            return ""

        async def take_back() -> None:
            await _set(scene, subnet, ScalerOverride())

        if chance.random() < _TAKEN_BACK:
            scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS), take_back)
        words = ", ".join(f"{name} {value}" for name, value in structs.asdict(override).items() if value)
        return words or "none"


def drawn_override(chance: Random) -> ScalerOverride:
    """Any that is valid."""
    lower, upper = chance.choice(_THRESHOLDS)
    smaller, larger = sorted(chance.sample(_BATCHES, 2))
    return chance.choice(
        (
            ScalerOverride(),
            ScalerOverride(batch=larger),
            ScalerOverride(min_batch=smaller),
            ScalerOverride(batch=larger, min_batch=smaller),
            ScalerOverride(fixed=smaller),
            ScalerOverride(buffer=chance.choice(_BUFFERS)),
            ScalerOverride(batch=larger, buffer=chance.choice(_BUFFERS)),
            ScalerOverride(thresholds=ThresholdsOverride(lower=lower, upper=upper)),
        )
    )


async def _set(scene: Scene, subnet: str, override: ScalerOverride) -> bool:
    """Write it; False where there is no ClusterSubnet, or somebody was quicker."""
    cluster = scene.world.cluster
    try:
        found = await cluster.get(ClusterSubnet, subnet, SYSTEM_NAMESPACE)
        spec = ClusterSubnetSpec(scaler=override)
        await cluster.replace(structs.replace(found, spec=spec), manager=_EDITOR)
    except (Conflict, NotFound):
        return False
    return True
