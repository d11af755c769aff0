"""Edits by hand of the objects through which the programs communicate, and older states of them put back."""

from contextlib import suppress
from random import Random

from msgspec import structs

from podtide.cluster.port import AlreadyExists, Conflict, NotFound
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.nodes.pods import MANAGER, NAMESPACE
from podtide.simulation.trace import ClusterWrite

_EDITOR = "kubectl-edit"
_MOST_REQUESTED = 100
_LAST_ENTRIES = 200
_LONGEST_ABSENCE_SECONDS = 30.0


class RequestEdited(Mishap):
    """A person changes a node's `requestedIPCount`."""

    name = "request-edited"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Set any number."""
        config = await _any_config(scene, chance)
        if config is None:
            return ""
        number = chance.randint(0, _MOST_REQUESTED)
        await _edit(scene, config, structs.replace(config.spec, requested_ip_count=number))
        return f"{config.metadata.name} to {number}"


class ForeignNames(Mishap):
    """A person names addresses for release that are another node's, or do not exist."""

    name = "foreign-names"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Add names to a node's list."""
        config, other = await _any_config(scene, chance), await _any_config(scene, chance)
        if config is None or other is None or config.key == other.key:
            return ""
        theirs = [each.name for nc in other.status.network_containers for each in nc.ip_assignments]
        names = ["never-granted", *chance.sample(theirs, min(3, len(theirs)))]
        spec = structs.replace(config.spec, ips_not_in_use=[*config.spec.ips_not_in_use, *names])
        await _edit(scene, config, spec)
        return f"of {other.metadata.name} for {config.metadata.name}"


class ConfigDeleted(Mishap):
    """A person deletes a NodeNetworkConfig whose Node exists."""

    name = "config-deleted"
    every_seconds = 150.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Delete it."""
        if scene.allocator.has_backup or await scene.allocator.is_of_the_past():
            return ""  # if both records of a grant go at once, only the node knows of it
        config = await _any_config(scene, chance)
        if config is None:
            return ""
        await scene.world.cluster.delete(NodeNetworkConfig, config.metadata.name, SYSTEM_NAMESPACE)
        return config.metadata.name


class ClusterSubnetDeleted(Mishap):
    """A person deletes the ClusterSubnet that shows what is in force."""

    name = "cluster-subnet-deleted"
    every_seconds = 150.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Delete it."""
        subnet = scene.pick_subnet(chance)
        try:
            await scene.world.cluster.delete(ClusterSubnet, subnet, SYSTEM_NAMESPACE)
        except NotFound:
            return ""
        return subnet


class ClusterSubnetMade(Mishap):
    """A person creates a ClusterSubnet where the controller uses none: it never gets a status."""

    name = "cluster-subnet-made"
    every_seconds = 150.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Create it."""
        if scene.world.options.cluster_subnets:
            return ""
        subnet = scene.pick_subnet(chance)
        place = ObjectMeta(name=subnet, namespace=SYSTEM_NAMESPACE)
        try:
            await scene.world.cluster.create(ClusterSubnet(metadata=place), manager=_EDITOR)
        except AlreadyExists:
            return ""
        return subnet


class StatusRestored(Mishap):
    """A person puts an older status of a NodeNetworkConfig back: from a backup, or from a file that was kept."""

    name = "status-restored"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Write one of the last statuses again."""
        if scene.allocator.has_backup or await scene.allocator.is_of_the_past():
            return ""  # if both records of a grant go back at once, only the node knows of it
        written = [
            entry.item
            for entry in scene.world.trace.entries[-_LAST_ENTRIES:]
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


class DefinitionRecreated(Mishap):
    """A NetworkAttachmentDefinition is deleted, and applied again later, as deployment tools do.

    Pods keep their addresses of the network, and runtimes go on calling for it: they have read it before.
    """

    name = "definition-recreated"
    every_seconds = 90.0
    of_networks = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Delete it, and create it again later."""
        world = scene.world
        if not world.networks:
            return ""
        definition = chance.choice(world.networks)
        try:
            await world.cluster.delete(NetworkAttachmentDefinition, definition.name, NAMESPACE)
        except NotFound:
            return ""  # it is away already

        apply_again(scene, definition, chance)
        return definition.name


def apply_again(scene: FaultScene, definition: Definition, chance: Random) -> None:
    """Plan that the definition is applied some time from now, whether or not it exists by then."""

    async def apply() -> None:
        with suppress(AlreadyExists):
            await scene.world.cluster.create(definition.attachment(), manager=MANAGER)

    scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), apply)


async def _any_config(scene: FaultScene, chance: Random) -> NodeNetworkConfig | None:
    configs = (await scene.world.cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)).items
    return chance.choice(configs) if configs else None


async def _edit(scene: FaultScene, config: NodeNetworkConfig, spec: NodeNetworkConfigSpec) -> None:
    """Write the spec, unless the object has changed or is deleted since."""
    try:
        await scene.world.cluster.replace(structs.replace(config, spec=spec), manager=_EDITOR)
    except (Conflict, NotFound):
        return
