"""An allocator whose database is put back to an older day."""

from random import Random

from podtide.simulation.faults.edits import ConfigDeleted
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.faults.status_restored import StatusRestored
from podtide.simulation.trace import Trouble

_SHORTEST_SECONDS = 5.0
_LONGEST_SECONDS = 60.0
_HEALED_WITHIN_SECONDS = 100.0
_OF_STATUSES = (StatusRestored.name, ConfigDeleted.name)


class AllocatorRestored(Mishap):
    """Somebody puts a backup from a while ago in the place of the allocator's database. The mark beside it stays."""

    name = "allocator-restored"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Take a backup now, and put it back later."""
        own = scene.world.options.cluster
        clusters = {own, *(machine.cluster or own for machine in scene.world.site.machines.values())}
        known = [await scene.allocator.knows(name) for name in sorted(clusters)]
        if scene.allocator.has_backup or not all(known):
            return ""  # on a day on which it knew nobody, anybody might be the first to use a name
        if _is_status_old(scene) or scene.clock.monotonic() - scene.restored_at < _HEALED_WITHIN_SECONDS:
            return ""  # if both records of a grant go back at once, only the node knows of it
        age = chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS)
        scene.allocator.take_backup()

        async def restore() -> None:
            before = await scene.allocator.list_subnets()
            await scene.allocator.restore_backup()
            for subnet in before:  # people know which CIDRs they added
                await scene.allocator.grow_subnet(subnet.network, subnet.name, subnet.cidrs)

        scene.plan(age, restore)
        return f"from {age:.0f} s ago"


def _is_status_old(scene: Scene) -> bool:
    """Whether somebody put an old status back or deleted one, and no controller may have mended that yet."""
    since = scene.clock.monotonic() - _HEALED_WITHIN_SECONDS
    return any(
        isinstance(entry, Trouble) and entry.fault in _OF_STATUSES and entry.at > since
        for entry in scene.world.trace.entries
    )
