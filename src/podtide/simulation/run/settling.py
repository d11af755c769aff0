"""What must hold once the faults have stopped: invariants 5 and 6 (design I5 and I6).

Every pod that fits has an address, in whichever cluster of the subnet it is, nothing is leaked, and then nothing is written
any more but the leader's Lease. Agents that do not see waiting pods (see `other_agents`) promise neither to serve theirs nor
to keep no spare addresses: what they keep is not available to others, and what they do not request is not owed to them. How
long that may take is bounded by the longest waits: quarantine, the grace of leaks, a claim.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from podtide.controller.program import LEASE
from podtide.core.errors import StopError
from podtide.core.pool.states import State
from podtide.resources.container_ids import node_uid
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.nodes.other_agents import sees_pods
from podtide.simulation.nodes.pods import is_terminal
from podtide.simulation.run.settled_networks import unsettled_networks
from podtide.simulation.run.settled_placement import replace_waiting_pods, unsettled_placement
from podtide.simulation.trace import ClusterWrite, Entry
from podtide.simulation.world.embedded_world import NETWORK
from podtide.simulation.world.site import Site
from podtide.simulation.world.world import World

_AT_MOST_SECONDS = 3600.0
_LOOK_EVERY_SECONDS = 20.0
_QUIET_SECONDS = 300.0
_LAST_ARRIVALS_SECONDS = 300.0
"""By then every call that was in flight when the faults stopped has arrived."""


class NotSettled(StopError):
    """Long after the last fault something is still not settled. The message says what."""


async def settle(worlds: Sequence[World]) -> None:
    """Let time pass until everything is settled; NotSettled if that takes too long, or does not last.

    The worlds are all clusters of one site.
    """
    await worlds[0].pass_time(
        _LAST_ARRIVALS_SECONDS
    )  # a late call undoes what was settled, and that is not a fault of a program
    if worlds[0].scheduler is not None:
        await replace_waiting_pods(worlds)
    if complaints := await _come_to_rest(worlds):
        raise NotSettled(f"invariant 6: it was settled, and then {'; '.join(complaints)}")


async def _come_to_rest(worlds: Sequence[World]) -> list[str]:
    """Wait until everything is settled, and then until nothing is written for a while. Returns what is wrong after that."""
    clock, pass_time = worlds[0].clock, worlds[0].pass_time
    deadline = clock.monotonic() + _AT_MOST_SECONDS
    while complaints := await unsettled(worlds):
        if clock.monotonic() > deadline:
            raise NotSettled(
                f"invariant 6: {_AT_MOST_SECONDS:.0f} s after the last fault {'; '.join(complaints)}"
            )
        await pass_time(_LOOK_EVERY_SECONDS)
    while noise := await _noise(worlds[0]):
        if clock.monotonic() > deadline:
            raise NotSettled(f"invariant 5: nothing is to be done, and still there is {'; '.join(noise[:5])}")
    return await unsettled(worlds)


async def _noise(world: World) -> list[str]:
    """What programs write, in all clusters, in a while in which nothing happens."""
    world.trace.mark()
    await world.pass_time(_QUIET_SECONDS)
    return [
        f"{entry} at {entry.at:.3f}"
        for entry in world.trace.since_mark()
        if isinstance(entry, ClusterWrite) and not is_leaders_lease(entry)
    ]


def is_leaders_lease(entry: Entry) -> bool:
    """Whether it is a renewal of the leader's Lease, which never ends."""
    return isinstance(entry, ClusterWrite) and (entry.kind, entry.name) == (Lease.api.kind, LEASE.name)


async def unsettled(worlds: Sequence[World]) -> list[str]:
    """What is not settled yet, in sentences."""
    site = worlds[0].site
    waiting = await _waiting_for_room(worlds)
    complaints = [
        each
        for name, machine in site.machines.items()
        if name not in waiting
        for each in _differences(machine)
    ]
    if await site.is_of_the_past():
        complaints.append("the allocator's store went back, and does not grant again")
    complaints += await _without_address(worlds)
    complaints += await _left_behind(worlds, len(waiting))
    for world in worlds:
        if world.networks:
            complaints += await unsettled_networks(world.cluster, world.network_book)
    if worlds[0].scheduler is not None:
        complaints += await unsettled_placement(worlds)
    for machines in _by_subnet(worlds).values():
        short = waiting & {machine.full_name for machine in machines}
        # What the pool of one that waits shows it had as a former Node: it is others' by now, and it gives none of it away.
        begun = [machine for machine in machines if machine.full_name not in short]
        spare = sum(_spare(machine) > 0 for machine in begun if sees_pods(machine.policy))
        if short and spare:
            complaints.append(
                f"{min(short)} cannot begin for want of an address, and {spare} nodes have one to spare"
            )
    return complaints


def _by_subnet(worlds: Sequence[World]) -> dict[str, list[Machine]]:
    """The machines by the subnets of their pods' first addresses."""
    machines = defaultdict[str, list[Machine]](list)
    for world in worlds:
        for name, machine in world.machines.items():
            machines[world.subnet_of(name)].append(machine)
    return machines


async def _waiting_for_room(worlds: Sequence[World]) -> set[str]:
    """Nodes that joined when every address of their subnet was used: there is not even a primary for them."""
    allocator = worlds[0].site.allocator
    begun = {container.id for container in (await allocator.list_containers(network=NETWORK)).items}
    waiting = set[str]()
    for name, machines in _by_subnet(worlds).items():
        subnet = await allocator.get_subnet(NETWORK, name)
        if subnet.reserved >= subnet.capacity:
            waiting |= {machine.full_name for machine in machines if machine.uid not in begun}
    return waiting


def _spare(machine: Machine) -> int:
    """How many addresses a machine holds without a pod; pods' second addresses are not counted."""
    addresses = machine.agent.addresses.all_addresses() if machine.agent else ()
    return sum(
        address.state is State.AVAILABLE and node_uid(address.container) == address.container
        for address in addresses
    )


def _differences(machine: Machine) -> Iterator[str]:
    """The differences between the machine's agent and its sandboxes, in sentences."""
    agent = machine.agent
    if agent is None or not agent.synced.is_set():
        yield f"the agent of {machine.full_name} is not at work"
        return
    addresses = tuple(agent.addresses.all_addresses())
    used = {ip for sandbox in machine.kubelet.sandboxes() for ip in sandbox.addresses}
    assigned = {address.ip for address in addresses if address.state is State.ASSIGNED}
    for ip in sorted(assigned - used):
        yield f"{ip} is assigned on {machine.full_name}, and no sandbox has it"
    for address in addresses:
        if address.state is State.ORPHANED and address.ip in used:
            continue  # a pod outlived its Node, and what it had could not move: it keeps it for as long as it lives
        if address.state not in (State.ASSIGNED, State.AVAILABLE):
            yield f"{address.ip} of {machine.full_name} is still {address.state}"
    target, requested = agent.requester.target, agent.addresses.state().requested
    if target is not None and target.request != requested:
        yield f"{machine.full_name} asks for {requested}, and needs {target.request}"


async def _without_address(worlds: Sequence[World]) -> list[str]:
    """Pods that have no address, although they fit."""
    site, families = worlds[0].site, _families(worlds)
    wanting = {
        full_name(world.name, str(pod.key)): world.machines.get(pod.spec.node_name)
        for world in worlds
        for pod in (await world.cluster.list(Pod)).items
        if not is_terminal(pod) and not pod.metadata.deletion_timestamp and not pod.spec.host_network
    }
    served = {
        full_name(machine.cluster, sandbox.pod)
        for machine in site.machines.values()
        for sandbox in machine.kubelet.sandboxes()
        if sandbox.addresses
    }
    complaints = [
        f"{pod} does not exist any more, and has a sandbox" for pod in sorted(served - wanting.keys())
    ]
    complaints += [
        f"{sandbox.pod} has {len(sandbox.addresses)} addresses of {families} families"
        for machine in site.machines.values()
        for sandbox in machine.kubelet.sandboxes()
        if len(sandbox.addresses) not in (0, families)
    ]
    for name, machines in _by_subnet(worlds).items():
        capacity = (await site.allocator.get_subnet(NETWORK, name)).capacity
        theirs = {pod: machine for pod, machine in wanting.items() if machine in machines}
        unseen = {pod for pod, machine in theirs.items() if not sees_pods(machine.policy)} - served
        kept = sum(_spare(machine) for machine in machines if not sees_pods(machine.policy))
        fitting = min(len(theirs) - len(unseen), capacity - len(machines) - kept)
        rightly_served = served & theirs.keys()
        if len(rightly_served) < fitting:
            missing = sorted(theirs.keys() - served - unseen)
            complaints.append(
                f"{len(rightly_served)} of {fitting} pods that fit have an address, {missing[0]} has none"
            )
    return complaints


def _families(worlds: Sequence[World]) -> int:
    """How many addresses every pod has, which is how many containers every node has."""
    return 2 if worlds[0].options.subnet_v6 else 1


async def _left_behind(worlds: Sequence[World], waiting: int) -> list[str]:
    """What is left of deleted nodes, and what is missing of present ones."""
    allocator = worlds[0].site.allocator
    nodes = {node.metadata.uid for world in worlds for node in (await world.cluster.list(Node)).items}
    containers = (await allocator.list_containers(network=NETWORK)).items
    complaints = [
        f"{each.node} is gone, and has a container" for each in containers if node_uid(each.id) not in nodes
    ]
    configs = [
        config
        for world in worlds
        for config in (await world.cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)).items
    ]
    families = _families(worlds)
    if len(configs) != len(nodes) or len(containers) + waiting != families * len(nodes):
        complaints.append(
            f"there are {len(nodes)} nodes, {len(configs)} NodeNetworkConfigs and {len(containers)} containers"
        )
    for subnet in await allocator.list_subnets(NETWORK):
        held = sum(1 + len(each.addresses) for each in containers if each.subnet == subnet.name)
        outlived = await _in_quarantine_for_pods(worlds[0].site, subnet.name)
        if subnet.reserved != held + outlived:
            unowned = subnet.reserved - held - outlived
            complaints.append(f"{unowned} addresses of {subnet.name} are reserved for no node")
    return complaints


async def _in_quarantine_for_pods(site: Site, subnet: str) -> int:
    """How many addresses are in quarantine because of pods that outlived their Nodes."""
    used = {
        ip
        for machine in site.machines.values()
        for sandbox in machine.kubelet.sandboxes()
        for ip in sandbox.addresses
    }
    left = (await site.allocator.quarantined()).items
    return len(used.intersection(ip for each in left if each.subnet == subnet for ip in each.addresses))
