"""A subnet that grows under load."""

from random import Random

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.world.embedded_world import NETWORK


class SubnetGrown(Mishap):
    """Somebody adds a CIDR to the subnet that runs low."""

    name = "subnet-grown"
    every_seconds = 200.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Add a few addresses."""
        cidr = f"10.1.{chance.randrange(256)}.0/28"
        subnet = scene.pick_subnet(chance)
        await scene.allocator.grow_subnet(NETWORK, subnet, (cidr,))
        return f"{subnet} by {cidr}"
