"""Faults of the stores behind the programs: the allocator's database and etcd are restarted or restored from backups.

A grant is recorded in both. They are never restored to older states at the same time: then only the node would have a
record of the grant.
"""

from random import Random

from podtide.cluster.embedded.store import StoreSnapshot
from podtide.cluster.port import Conflict, NotFound
from podtide.resources.ip_pool import IPPool
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.faults.agenda import Act
from podtide.simulation.faults.edits import ConfigDeleted, StatusRestored, apply_again
from podtide.simulation.faults.machines import plan_registration
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.nodes.machine import Machine, node_info
from podtide.simulation.trace import Trouble

_NEWEST_DATABASE_SECONDS = 5.0
_OLDEST_DATABASE_SECONDS = 60.0
_HEALED_WITHIN_SECONDS = 100.0
_MOMENTS = 12
_LONGEST_REPLICA_AWAY_SECONDS = 15.0
_OF_STATUSES = (StatusRestored.name, ConfigDeleted.name)
_NEWEST_ETCD_SECONDS = 2.0
_OLDEST_ETCD_SECONDS = 90.0
_APART_SECONDS = 120.0
"""Between two restores every agent has time to put back what its sandboxes have; one that is slower is not protected."""
_UNDER_WAY_SECONDS = 20.0
"""For as long as a request about a Node's deletion may be in flight, the server is not back: restoring takes longer."""
_KUBELET_TELLS_SECONDS = 10.0
"""How often a kubelet checks its Node's status."""
_MISSED_SECONDS = (5.0, 60.0)
"""How long until the Node of a machine that does not exist any more is deleted, by a cloud's controller or a person."""
_SHORTEST_UNCOLLECTED_SECONDS = 10.0
_LONGEST_UNCOLLECTED_SECONDS = 90.0


class AllocatorRestart(Mishap):
    """The allocator's process ends and another begins, with nothing but the database."""

    name = "allocator-restart"
    every_seconds = 100.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Restart it."""
        del chance
        await scene.allocator.restart()
        return "on its database"


class ReplicaKilled(Mishap):
    """One of the allocator's replicas is killed within a call, at any of its awaits, and started again later.

    What it carried out last may be in the database although no caller got the answer; the other goes on meanwhile.
    """

    name = "replica-killed"
    every_seconds = 20.0
    only_by_name = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Kill one at one of the next moments in which it carries something out."""
        replicas = scene.allocator.replicas
        if replicas is None or not (running := replicas.running):
            return ""
        number = chance.choice(running)
        replicas.kill_in(chance.randint(1, _MOMENTS), number)

        async def start() -> None:
            if not scene.allocator.is_away:
                await replicas.start(number)

        scene.plan(chance.uniform(0.0, _LONGEST_REPLICA_AWAY_SECONDS), start)
        return f"replica {number} of the allocator"


class AllocatorRestored(Mishap):
    """The allocator's database is replaced by a backup from a while ago. The mark file beside it stays."""

    name = "allocator-restored"
    every_seconds = 150.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Take a backup now, and put it back later."""
        own = scene.world.options.cluster
        clusters = {own, *(machine.cluster or own for machine in scene.world.site.machines.values())}
        known = [await scene.allocator.knows(name) for name in sorted(clusters)]
        if scene.allocator.has_backup or not all(known):
            return ""  # in a backup without the clusters' uids, any cluster could be the first to use a name
        since = (
            scene.clock.monotonic() - scene.conditions.restored_at
        )  # of any cluster: they share the allocator
        if _is_status_old(scene) or since < _HEALED_WITHIN_SECONDS:
            return ""  # if both records of a grant go back at once, only the node knows of it
        age = chance.uniform(_NEWEST_DATABASE_SECONDS, _OLDEST_DATABASE_SECONDS)
        scene.allocator.take_backup()

        async def restore() -> None:
            before = await scene.allocator.list_subnets()
            await scene.allocator.restore_backup()
            for subnet in before:  # administrators repeat what they added since
                await scene.allocator.grow_subnet(subnet.network, subnet.name, subnet.cidrs)

        scene.plan(age, restore)
        return f"from {age:.0f} s ago"


def _is_status_old(scene: FaultScene) -> bool:
    """Whether an old status was put back or deleted lately, so that no controller may have repaired it yet."""
    since = scene.clock.monotonic() - _HEALED_WITHIN_SECONDS
    return any(
        isinstance(entry, Trouble) and entry.fault in _OF_STATUSES and entry.at > since
        for entry in scene.world.trace.entries
    )


class EtcdRestored(Mishap):
    """Every object, and the counter of versions, is as it was at the time of a backup; nothing outside etcd is.

    Pods created since are gone, and their kubelets end them; those deleted since are back. A Node that was deleted since
    is back with its uid, and belongs to the machine that has its name now: kubelets get their Nodes by name, and write
    into them which machine they run on. One that was created since is gone until its kubelet registers it again; one
    without a machine is deleted again. Definitions of networks that the backup lacks are applied again.
    """

    name = "etcd-restored"
    every_seconds = 120.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Take a backup, and restore it later."""
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

        seconds = chance.uniform(_NEWEST_ETCD_SECONDS, _OLDEST_ETCD_SECONDS)
        scene.plan(seconds, restore)
        return f"to version {backup.version} in {seconds:.1f} s"


def _may_go_back(scene: FaultScene, nodes: dict[str, Node]) -> bool:
    """Whether the programs can still tell the machines apart once these Nodes are restored."""
    machines = scene.world.machines
    if scene.world.networks and not all(_is_in_contact(scene, machine) for machine in machines.values()):
        # Such an agent has seen no version that is lost, and does not wait until others have put back theirs.
        return False
    if {name: machine.uid for name, machine in machines.items()} == {
        name: node.metadata.uid for name, node in nodes.items()
    }:
        return True
    if scene.world.networks or scene.clock.monotonic() - scene.node_gone_at < _UNDER_WAY_SECONDS:
        return False
    # Without records an agent can only rely on the cluster, and that shows an older state.
    return all(
        _has_records(scene, machine)
        for machine in machines.values()
        if machine.name in nodes and nodes[machine.name].metadata.uid != machine.uid
    )


def _is_in_contact(scene: FaultScene, machine: Machine) -> bool:
    return machine.agent is not None and machine.agent_program not in scene.conditions.cut_off


def _has_records(scene: FaultScene, machine: Machine) -> bool:
    agent = machine.agent
    is_new = agent is None or not agent.synced.is_set()
    return not is_new and machine.agent_program not in scene.conditions.told_the_truth


def _be_who_was(scene: FaultScene, nodes: dict[str, Node], chance: Random) -> None:
    """Give every machine the restored Node of its name; plan to register those without, and to delete Nodes without machine."""
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


def _shown_version(scene: FaultScene, node: str) -> int:
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
    """The highest version that its agent has seen."""
    pool = machine.agent.pool if machine.agent is not None else None
    return max(map(pool.version, pool.containers()), default=-1) if pool is not None else -1


def _teller(scene: FaultScene, machine: Machine) -> Act:
    async def tell() -> None:
        if scene.world.machines.get(machine.name) is machine:
            await scene.world.tell_machine(machine.name, machine.identity)

    return tell


def _remover(scene: FaultScene, node: Node) -> Act:
    async def remove() -> None:
        name = node.metadata.name
        if name in scene.world.machines:
            return  # another machine has the name by now
        try:
            await scene.world.cluster.delete(Node, name, uid=node.metadata.uid)
        except (NotFound, Conflict):
            return
        await scene.world.workload.clear_node(name)

    return remove


def _restore(scene: FaultScene, backup: StoreSnapshot) -> None:
    scene.cluster.restore(backup)
    scene.world.auditor.begin_anew()  # what a restored Node held before its deletion is not a finding
    scene.restored_at = scene.conditions.restored_at = scene.clock.monotonic()
    scene.world.network_book.restored(
        item
        for kind in (OverlappingRangeIPReservation, NodeSlicePool, IPPool)
        for item in scene.cluster.items(kind)
    )


class CollectorDown(Mishap):
    """The cluster's garbage collector is down for a while: objects without their owner stay."""

    name = "collector-down"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Stop it, and start it again later."""
        housekeeping = scene.cluster.server.housekeeping
        if not housekeeping.is_collecting:
            return ""
        housekeeping.is_collecting = False

        async def tidy_up() -> None:
            housekeeping.is_collecting = True

        scene.plan(chance.uniform(_SHORTEST_UNCOLLECTED_SECONDS, _LONGEST_UNCOLLECTED_SECONDS), tidy_up)
        return "for what has lost its owner"
