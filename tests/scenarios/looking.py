"""Short ways to ask how a world is."""

from podtide.agent.program import NodeAgent
from podtide.allocator.subnets import Subnet
from podtide.core.pool.states import State
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import Condition
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.world.embedded_world import NETWORK, SUBNET
from podtide.simulation.world.world import World


async def config_of(world: World, node: str) -> NodeNetworkConfig:
    """The node's NodeNetworkConfig."""
    return await world.cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)


async def requested(world: World, node: str) -> int:
    return (await config_of(world, node)).spec.requested_ip_count


async def granted(world: World, node: str) -> int:
    return (await config_of(world, node)).status.assigned_ip_count


async def has_exactly(world: World, node: str, addresses: int) -> bool:
    """Whether the node asks for so many addresses, was granted them, and has them: nothing is on its way."""
    config = await config_of(world, node)
    counts = config.spec.requested_ip_count, config.status.assigned_ip_count, len(pool(world, node))
    return counts == (addresses,) * 3 and held(world, node) == addresses


async def cluster_subnet(world: World, name: str = SUBNET) -> ClusterSubnet:
    return await world.cluster.get(ClusterSubnet, name, SYSTEM_NAMESPACE)


async def says_exhausted(world: World) -> bool:
    """What the ClusterSubnetState says."""
    state = await world.cluster.get(ClusterSubnetState, SUBNET, SYSTEM_NAMESPACE)
    assert state.status is not None
    return state.status.exhausted


async def subnet(world: World, name: str = SUBNET) -> Subnet:
    """The subnet as the allocator has it."""
    return await world.allocator.get_subnet(NETWORK, name)


def agent_of(world: World, node: str) -> NodeAgent:
    """The agent that runs on the node."""
    agent = world.machines[node].agent
    assert agent is not None
    return agent


def pool(world: World, node: str) -> set[str]:
    """Every address of the node's pool, whatever its state."""
    return {address.ip for address in agent_of(world, node).addresses.all_addresses()}


def count(world: World, node: str, *states: State) -> int:
    """How many addresses of the node's pool are in one of these states."""
    return sum(address.state in states for address in agent_of(world, node).addresses.all_addresses())


def free(world: World, node: str) -> int:
    """Addresses that the node keeps beyond its pods'."""
    return count(world, node, State.AVAILABLE, State.PENDING_PROGRAMMING)


def held(world: World, node: str) -> int:
    """Addresses that the node has and does not give back."""
    return free(world, node) + count(world, node, State.ASSIGNED)


def addresses_of_pods(world: World) -> list[str]:
    """Every address that a pod has."""
    return [
        ip
        for machine in world.machines.values()
        for sandbox in machine.kubelet.sandboxes()
        for ip in sandbox.addresses
    ]


def condition(item: NodeNetworkConfig | ClusterSubnet, kind: str) -> Condition:
    """What the object says of one aspect."""
    (found,) = [each for each in item.status.conditions if each.type == kind]
    return found
