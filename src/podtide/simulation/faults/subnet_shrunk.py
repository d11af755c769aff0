"""A subnet that loses a range under load."""

from random import Random

from podtide.core.errors import InvalidInput
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.world.embedded_world import NETWORK, SUBNET


class SubnetShrunk(Mishap):
    """Somebody lets one of the subnet's CIDRs drain, and half of the time thinks better of it later.

    Where it is the only one, it is to be replaced: the subnet grows by another one first.
    """

    name = "subnet-shrunk"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
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
