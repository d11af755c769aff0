"""Changes of a subnet under load: CIDRs added and drained, and overrides in its ClusterSubnet's spec."""

from random import Random

from msgspec import structs

from podtide.cluster.port import Conflict, NotFound
from podtide.core.errors import InvalidInput
from podtide.resources.cluster_subnet import (
    ClusterSubnet,
    ClusterSubnetSpec,
    ScalerOverride,
    ThresholdsOverride,
)
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.world.embedded_world import NETWORK, SUBNET

_EDITOR = "kubectl-edit"
_BATCHES = (1, 2, 4, 8, 16, 32)
_BUFFERS = (0.0, 0.25, 0.5, 1.0)
_THRESHOLDS = ((0.5, 0.6), (0.6, 0.9), (0.8, 0.95))
_TAKEN_BACK = 0.5
_SHORTEST_OVERRIDE_SECONDS = 5.0
_LONGEST_OVERRIDE_SECONDS = 120.0


class SubnetGrown(Mishap):
    """An administrator adds a CIDR to the subnet that runs low."""

    name = "subnet-grown"
    every_seconds = 200.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Add a few addresses."""
        cidr = f"10.1.{chance.randrange(256)}.0/28"
        subnet = scene.pick_subnet(chance)
        await scene.allocator.grow_subnet(NETWORK, subnet, (cidr,))
        return f"{subnet} by {cidr}"


class SubnetShrunk(Mishap):
    """An administrator drains one of the subnet's CIDRs, and half of the time cancels that later.

    Where it is the only CIDR, it is to be replaced: another one is added first.
    """

    name = "subnet-shrunk"
    every_seconds = 150.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Let a CIDR drain."""
        cidrs, other = (await scene.allocator.get_subnet(NETWORK, SUBNET)).cidrs, chance.randrange(256)
        if len(cidrs) == 1:
            await scene.allocator.grow_subnet(NETWORK, SUBNET, (f"10.3.{other}.0/26",))
        cidr, is_cancelled, after = (
            chance.choice(cidrs),
            chance.choice((True, False)),
            chance.uniform(1.0, 90.0),
        )
        try:
            await scene.allocator.shrink_subnet(NETWORK, SUBNET, (cidr,))
        except InvalidInput:
            return ""  # all others drain

        async def cancel() -> None:
            there = await scene.allocator.get_subnet(NETWORK, SUBNET)
            if cidr in there.draining:
                await scene.allocator.grow_subnet(NETWORK, SUBNET, (cidr,))

        if is_cancelled:
            scene.plan(after, cancel)
        return f"by {cidr}, for {after:.0f} s" if is_cancelled else f"by {cidr}"


class Override(Mishap):
    """An administrator sets a subnet's batch, its bounds, its buffer or its thresholds, for a while or for good."""

    name = "override"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Set any of them, or none."""
        override = drawn_override(chance)
        subnet = scene.pick_subnet(chance)
        if not await _set(scene, subnet, override):
            return ""

        async def take_back() -> None:
            await _set(scene, subnet, ScalerOverride())

        if chance.random() < _TAKEN_BACK:
            scene.plan(chance.uniform(_SHORTEST_OVERRIDE_SECONDS, _LONGEST_OVERRIDE_SECONDS), take_back)
        words = ", ".join(f"{name} {value}" for name, value in structs.asdict(override).items() if value)
        return words or "none"


def drawn_override(chance: Random) -> ScalerOverride:
    """Any valid override."""
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


async def _set(scene: FaultScene, subnet: str, override: ScalerOverride) -> bool:
    """Write the override; False where there is no ClusterSubnet, or on a conflict."""
    cluster = scene.world.cluster
    try:
        found = await cluster.get(ClusterSubnet, subnet, SYSTEM_NAMESPACE)
        spec = ClusterSubnetSpec(scaler=override)
        await cluster.replace(structs.replace(found, spec=spec), manager=_EDITOR)
    except (Conflict, NotFound):
        return False
    return True
