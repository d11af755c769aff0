"""What must hold for placement once the faults have stopped: no pod waits while an address can be had, and few hang.

    a pod that is not bound     no address can be had for it, or the nodes it fits on are full otherwise
    a Node                      publishes at least what the pods bound to it request
    pods without an address     at most one per node are bound to one, where all pods request an address

Pods that were bound while faults struck may hang. A node publishes no less than its pods request, those among them: so when one
ends, another that waits takes its place, and as many hang as before for as long as pods wait. So first all that hang or wait
are deleted, as when somebody scales down, and once Nodes publish what is left there, as many are created at once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from podtide.cluster.port import NotFound
from podtide.core.subnet.placement import LOWER_EVERY_SECONDS
from podtide.resources.metadata_keys import IPV4_RESOURCE
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.resources.quantity import read_count
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.nodes.node_fit import NodeUse, is_counted
from podtide.simulation.nodes.pods import is_terminal, only_node
from podtide.simulation.run.placement_tally import pods_without_address
from podtide.simulation.scheduling.address_policy import PolicyReach
from podtide.simulation.world.embedded_world import NETWORK
from podtide.simulation.world.world import World

_LOWERED_WITHIN_SECONDS = 4 * LOWER_EVERY_SECONDS
"""By then agents have stated what is left of their pods, and Nodes publish it."""


class _PlacedWorld(Struct, frozen=True):
    """A world with its pods and Nodes of one instant."""

    world: World
    nodes: dict[str, Node]
    bound: dict[str, list[Pod]]
    """By node."""
    unplaced: list[Pod]
    hanging: list[Pod]


async def replace_waiting_pods(worlds: Sequence[World]) -> None:
    """Delete pods that have no address, bound or not, and later create another for each."""
    replaced = list[tuple[World, Pod]]()
    for world in worlds:
        unbound = [pod for pod in (await world.cluster.list(Pod)).items if not pod.spec.node_name]
        for pod in (*await pods_without_address(world), *unbound):
            with suppress(NotFound):
                await world.workload.remove_pod(pod.metadata.name)
                replaced.append((world, pod))
    await worlds[0].pass_time(_LOWERED_WITHIN_SECONDS)
    for world, pod in replaced:
        await world.workload.add_unbound_pods(1, only_on=only_node(pod))


async def unsettled_placement(worlds: Sequence[World]) -> list[str]:
    """What is not settled yet, in sentences."""
    placed = [await _look_at(world) for world in worlds]
    complaints = [each for world in placed for each in _published_too_little(world)]
    for subnet in sorted({world.subnet_of(name) for world in worlds for name in world.machines}):
        available = await _available(placed, subnet)
        complaints += [each for world in placed for each in _needlessly_unplaced(world, subnet, available)]
        complaints += _hanging_beyond_one(placed, subnet)
    return complaints


async def _look_at(world: World) -> _PlacedWorld:
    pods = [pod for pod in (await world.cluster.list(Pod)).items if not is_terminal(pod)]
    bound = defaultdict[str, list[Pod]](list)
    for pod in filter(is_counted, pods):
        bound[pod.spec.node_name].append(pod)
    return _PlacedWorld(
        world,
        {node.metadata.name: node for node in (await world.cluster.list(Node)).items},
        bound,
        [pod for pod in pods if not pod.spec.node_name],
        await pods_without_address(world),
    )


def _machines(placed: _PlacedWorld, subnet: str) -> list[Machine]:
    world = placed.world
    return [machine for name, machine in world.machines.items() if world.subnet_of(name) == subnet]


async def _available(placed: Sequence[_PlacedWorld], subnet: str) -> int:
    """How many more pods can have an address of the subnet, if nodes keep none to spare."""
    state = await placed[0].world.allocator.get_subnet(NETWORK, subnet)
    machines = [(each, machine) for each in placed for machine in _machines(each, subnet)]
    pods = sum(len(each.bound.get(machine.name, ())) for each, machine in machines)
    return state.capacity - state.quarantined - len(machines) - pods


def _needlessly_unplaced(placed: _PlacedWorld, subnet: str, available: int) -> Iterator[str]:
    """Pods that are not bound, although a node of the subnet could take them and have an address for them."""
    if available <= 0:
        return
    for machine in _machines(placed, subnet):
        node = placed.nodes.get(machine.name)
        if node is None or node.spec.unschedulable:
            continue
        pods = len(placed.bound.get(machine.name, ()))
        most = placed.world.defaults.pods_per_node
        if pods >= machine.settings.max_ips or (most is not None and pods >= most):
            continue
        for pod in placed.unplaced:
            if only_node(pod) in {"", machine.name}:
                name = full_name(placed.world.name, str(pod.key))
                yield f"{name} is bound to no node, and {machine.full_name} could have {available} more addresses"
                return


def _published_too_little(placed: _PlacedWorld) -> Iterator[str]:
    for name, node in placed.nodes.items():
        requested = NodeUse(placed.bound.get(name, ())).requested(IPV4_RESOURCE)
        published = read_count(node.status.allocatable.get(IPV4_RESOURCE, "")) or 0
        if requested > published:
            yield f"pods request {requested} addresses of {name}, which publishes {published}"


def _hanging_beyond_one(placed: Sequence[_PlacedWorld], subnet: str) -> Iterator[str]:
    hanging = Counter[str]()
    for each in placed:
        policy = each.world.workload.policy
        if policy is None or policy.reach is not PolicyReach.ALL:
            return  # pods that request nothing are bound anywhere
        names = {machine.name for machine in _machines(each, subnet)}
        hanging.update(pod.spec.node_name for pod in each.hanging if pod.spec.node_name in names)
    machines = sum(len(_machines(each, subnet)) for each in placed)
    if hanging.total() > machines:
        yield f"{hanging.total()} pods without an address are bound to {machines} nodes of {subnet}"
