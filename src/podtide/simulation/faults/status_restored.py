"""A status that comes back from the past."""

from random import Random

from msgspec import structs

from podtide.cluster.port import Conflict, NotFound
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.trace import ClusterWrite

_LATELY = 200


class StatusRestored(Mishap):
    """Somebody puts an older status of a NodeNetworkConfig back: from a backup, or from a file that was kept."""

    name = "status-restored"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Write one of the last statuses once more."""
        if scene.allocator.has_backup or await scene.allocator.is_of_the_past():
            return ""  # if both records of a grant go back at once, only the node knows of it
        written = [
            entry.item
            for entry in scene.world.trace.entries[-_LATELY:]
            if isinstance(entry, ClusterWrite)
            and entry.cluster == scene.world.name
            and isinstance(entry.item, NodeNetworkConfig)
        ]
        if not written:
            return ""
        older = chance.choice(written)
        place = older.metadata
        machine = scene.world.machines.get(place.name)
        if machine is None or machine.agent_program in scene.conditions.told_the_truth:
            return ""
        try:
            now = await scene.world.cluster.get(NodeNetworkConfig, place.name, place.namespace)
            if now.metadata.uid == place.uid:
                restored = structs.replace(now, status=older.status)
                await scene.world.cluster.replace_status(restored, manager="restore")
        except (Conflict, NotFound):
            return ""
        return f"of {place.name} from version {place.resource_version}"
