"""An etcd that is restored from a backup: the whole cluster is as it was, and goes on from there."""

from random import Random

from podtide.cluster.embedded.store import StoreSnapshot
from podtide.cluster.port import Conflict, NotFound
from podtide.resources.ip_pool import IPPool
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.faults.agenda import Act
from podtide.simulation.faults.definitions import apply_again
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.nodes import plan_registration
from podtide.simulation.faults.scene import Scene
from podtide.simulation.nodes.machine import Machine, node_info

_YOUNGEST_SECONDS = 2.0
_OLDEST_SECONDS = 90.0
_APART_SECONDS = 120.0
"""Between two restores every agent has time to put back what its sandboxes have: who is late is not protected."""
_UNDER_WAY_SECONDS = 20.0
"""For as long as a request about a Node's end may be under way, the server is not back yet: restoring takes longer."""
_KUBELET_TELLS_SECONDS = 10.0
"""How often a kubelet looks whether its Node says what is so."""
_MISSED_SECONDS = (5.0, 60.0)
"""How long until somebody deletes a Node whose machine is gone for good: a cloud's controller, or a person."""


class EtcdRestored(Mishap):
    """Every object, and the counter of versions, is as it was at the time of a backup; nothing else in the world is.

    Pods made since are gone, and their kubelets end them; those deleted since are back. A Node that was deleted since
    is back with its uid, and is that of whichever machine bears the name now: kubelets ask for their Nodes by name, and
    say in them what they run on. One that was made since is gone until its kubelet registers it again; one whose machine
    is gone for good is deleted again. Definitions of networks that the backup lacks are applied again, by whoever applied
    them since.
    """

    name = "etcd-restored"
    every_seconds = 120.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Make a backup, and restore it later."""
        backup = scene.cluster.snapshot()
        nodes = {node.metadata.name: node for node in (await scene.cluster.list(Node)).items}

        async def restore() -> None:
            if scene.allocator.has_backup or await scene.allocator.is_of_the_past():
                return  # if both records of a grant go back at once, only the node knows of it
            since = scene.clock.monotonic() - scene.restored_at
            if not scene.conditions.is_bad or since <= _APART_SECONDS:
                return
            if not _may_go_back(scene, nodes):
                return
            _restore(scene, backup)
            _be_who_was(scene, nodes, chance)
            for network in scene.world.networks:
                apply_again(scene, network, chance)

        seconds = chance.uniform(_YOUNGEST_SECONDS, _OLDEST_SECONDS)
        scene.plan(seconds, restore)
        return f"to version {backup.version} in {seconds:.1f} s"


def _may_go_back(scene: Scene, nodes: dict[str, Node]) -> bool:
    """Whether no program is misled by what it cannot know, should these be the Nodes again."""
    machines = scene.world.machines
    if scene.world.networks and not all(_is_in_contact(scene, machine) for machine in machines.values()):
        return (
            False  # it knows of no version that is lost, and does not wait until others have put back theirs
        )
    if {name: machine.uid for name, machine in machines.items()} == {
        name: node.metadata.uid for name, node in nodes.items()
    }:
        return True
    if scene.world.networks or scene.clock.monotonic() - scene.node_gone_at < _UNDER_WAY_SECONDS:
        return False
    # Without records an agent has but the cluster's word, and that is of the past.
    return all(
        _has_records(scene, machine)
        for machine in machines.values()
        if machine.name in nodes and nodes[machine.name].metadata.uid != machine.uid
    )


def _is_in_contact(scene: Scene, machine: Machine) -> bool:
    return machine.agent is not None and machine.agent_program not in scene.conditions.cut_off


def _has_records(scene: Scene, machine: Machine) -> bool:
    agent = machine.agent
    is_new = agent is None or not agent.synced.is_set()
    return not is_new and machine.agent_program not in scene.conditions.told_the_truth


def _be_who_was(scene: Scene, nodes: dict[str, Node], chance: Random) -> None:
    """Every machine has the Node of its name, if there is one; who has none registers, and Nodes of nobody go again."""
    world = scene.world
    for machine in world.machines.values():
        node = nodes.pop(machine.name, None)
        if node is None:
            if machine.uid:
                machine.uid = ""
                plan_registration(scene, machine, chance)
            continue
        if machine.uid != node.metadata.uid:
            machine.past_version = max(_shown_version(scene, machine.name), _known_version(machine))
        machine.uid = node.metadata.uid
        if node.status.node_info != node_info(machine.identity):
            scene.plan(chance.uniform(0.0, _KUBELET_TELLS_SECONDS), _teller(scene, machine))
    for node in nodes.values():
        scene.plan(chance.uniform(*_MISSED_SECONDS), _remover(scene, node))


def _shown_version(scene: Scene, node: str) -> int:
    """The highest version that the node's NodeNetworkConfig shows now."""
    return max(
        (
            container.version
            for config in scene.cluster.items(NodeNetworkConfig)
            if config.metadata.name == node
            for container in config.status.network_containers
        ),
        default=-1,
    )


def _known_version(machine: Machine) -> int:
    """The highest version that its agent knows."""
    pool = machine.agent.pool if machine.agent is not None else None
    return max(map(pool.version, pool.containers()), default=-1) if pool is not None else -1


def _teller(scene: Scene, machine: Machine) -> Act:
    async def tell() -> None:
        if scene.world.machines.get(machine.name) is machine:
            await scene.world.tell_machine(machine.name, machine.identity)

    return tell


def _remover(scene: Scene, node: Node) -> Act:
    async def remove() -> None:
        name = node.metadata.name
        if name in scene.world.machines:
            return  # another machine has it by now
        try:
            await scene.world.cluster.delete(Node, name, uid=node.metadata.uid)
        except (NotFound, Conflict):
            return
        await scene.world.workload.clear_node(name)

    return remove


def _restore(scene: Scene, backup: StoreSnapshot) -> None:
    scene.cluster.restore(backup)
    scene.world.auditor.begin_anew()  # a Node that is back did not keep what it had all the while
    scene.restored_at = scene.clock.monotonic()
    scene.world.network_book.restored(
        item
        for kind in (OverlappingRangeIPReservation, NodeSlicePool, IPPool)
        for item in scene.cluster.items(kind)
    )
