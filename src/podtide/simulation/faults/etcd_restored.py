"""An etcd that is restored from a backup: the whole cluster is as it was, and goes on from there."""

from random import Random

from podtide.cluster.embedded.store import Snapshot
from podtide.resources.ip_pool import IPPool
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.faults.definitions import apply_again
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_YOUNGEST_SECONDS = 2.0
_OLDEST_SECONDS = 90.0
_APART_SECONDS = 120.0
"""Between two restores every agent has time to put back what its sandboxes have: who is late is not protected."""


class EtcdRestored(Mishap):
    """Every object, and the counter of versions, is as it was at the time of a backup; nothing else in the world is.

    Pods made since are gone, and their kubelets end them; those deleted since are back. Nodes are the same: one that came
    or went since the backup is the other faults' business. Definitions of networks that the backup lacks are applied
    again, by whoever applied them since.
    """

    name = "etcd-restored"
    every_seconds = 120.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Make a backup, and restore it later."""
        backup, nodes = scene.cluster.snapshot(), await _nodes(scene)

        async def restore() -> None:
            if scene.allocator.has_backup or await scene.allocator.is_of_the_past():
                return  # if both records of a grant go back at once, only the node knows of it
            since = scene.clock.monotonic() - scene.restored_at
            if scene.conditions.is_bad and since > _APART_SECONDS and await _nodes(scene) == nodes:
                _restore(scene, backup)
                for network in scene.world.networks:
                    apply_again(scene, network, chance)

        seconds = chance.uniform(_YOUNGEST_SECONDS, _OLDEST_SECONDS)
        scene.plan(seconds, restore)
        return f"to version {backup.version} in {seconds:.1f} s"


async def _nodes(scene: Scene) -> set[str]:
    return {node.metadata.uid for node in (await scene.cluster.list(Node)).items}


def _restore(scene: Scene, backup: Snapshot) -> None:
    scene.cluster.restore(backup)
    scene.restored_at = scene.clock.monotonic()
    scene.world.network_book.restored(
        item
        for kind in (OverlappingRangeIPReservation, NodeSlicePool, IPPool)
        for item in scene.cluster.items(kind)
    )
