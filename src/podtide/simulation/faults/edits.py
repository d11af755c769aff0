"""Edits by hand of what the programs tell each other by."""

from random import Random

from msgspec import structs

from podtide.cluster.port import AlreadyExists, Conflict, NotFound
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_EDITOR = "kubectl-edit"
_MOST_REQUESTED = 100


class RequestEdited(Mishap):
    """Somebody changes a node's `requestedIPCount`."""

    name = "request-edited"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Ask for any number."""
        config = await _any_config(scene, chance)
        if config is None:
            return ""
        number = chance.randint(0, _MOST_REQUESTED)
        await _edit(scene, config, structs.replace(config.spec, requested_ip_count=number))
        return f"{config.metadata.name} to {number}"


class ForeignNames(Mishap):
    """Somebody names addresses for release that are another node's, or nobody's."""

    name = "foreign-names"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Add names to a node's list."""
        config, other = await _any_config(scene, chance), await _any_config(scene, chance)
        if config is None or other is None or config.key == other.key:
            return ""
        theirs = [each.name for nc in other.status.network_containers for each in nc.ip_assignments]
        names = ["nobody's", *chance.sample(theirs, min(3, len(theirs)))]
        spec = structs.replace(config.spec, ips_not_in_use=[*config.spec.ips_not_in_use, *names])
        await _edit(scene, config, spec)
        return f"of {other.metadata.name} for {config.metadata.name}"


class ConfigDeleted(Mishap):
    """Somebody deletes a NodeNetworkConfig whose Node lives."""

    name = "config-deleted"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Delete it."""
        if scene.allocator.has_backup or await scene.allocator.is_of_the_past():
            return ""  # if both records of a grant go at once, only the node knows of it
        config = await _any_config(scene, chance)
        if config is None:
            return ""
        await scene.world.cluster.delete(NodeNetworkConfig, config.metadata.name, SYSTEM_NAMESPACE)
        return config.metadata.name


class ClusterSubnetDeleted(Mishap):
    """Somebody deletes the ClusterSubnet that says what is in force."""

    name = "cluster-subnet-deleted"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Delete it."""
        subnet = scene.pick_subnet(chance)
        try:
            await scene.world.cluster.delete(ClusterSubnet, subnet, SYSTEM_NAMESPACE)
        except NotFound:
            return ""
        return subnet


class ClusterSubnetMade(Mishap):
    """Somebody makes a ClusterSubnet where the controller knows none: it never gets a status, and says nothing."""

    name = "cluster-subnet-made"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Make it."""
        if scene.world.options.cluster_subnets:
            return ""
        subnet = scene.pick_subnet(chance)
        place = ObjectMeta(name=subnet, namespace=SYSTEM_NAMESPACE)
        try:
            await scene.world.cluster.create(ClusterSubnet(metadata=place), manager=_EDITOR)
        except AlreadyExists:
            return ""
        return subnet


async def _any_config(scene: Scene, chance: Random) -> NodeNetworkConfig | None:
    configs = (await scene.world.cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)).items
    return chance.choice(configs) if configs else None


async def _edit(scene: Scene, config: NodeNetworkConfig, spec: NodeNetworkConfigSpec) -> None:
    """Write the spec, unless somebody was quicker: then that is what happened."""
    try:
        await scene.world.cluster.replace(structs.replace(config, spec=spec), manager=_EDITOR)
    except (Conflict, NotFound):
        return
