"""Where there is no ClusterSubnet, agents go by the ClusterSubnetState of their own subnet, and by no other."""

import pytest
from msgspec import structs

from burst_story import requests_of
from podtide.cluster.interceptor import ClusterInterceptor
from podtide.cluster.port import Cluster, NotFound, R
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus, ScalerInForce
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.simulation.trace import ClusterWatch
from podtide.simulation.world.embedded_world import SUBNET
from podtide.simulation.world.world import PortWrappers, World
from scenarios.looking import agent_of, has_exactly, held
from scenarios.stage import Stage

NODE = "node-0"
PODS = 5
NORMAL = 15


class SilentOnExhaustion(ClusterInterceptor):
    """What a controller sees that has no say about exhaustion: its ClusterSubnetStates are lost."""

    async def replace_status(self, item: R, *, manager: str) -> R:
        if isinstance(item, ClusterSubnetState | ClusterSubnet):
            return item
        return await super().replace_status(item, manager=manager)


async def a_node_with_five_pods(world: World) -> None:
    def silent(_program: str, line: Cluster) -> Cluster:
        return SilentOnExhaustion(line)

    world.wrappers = PortWrappers(cluster=silent)
    world.start_controller()
    world.wrappers = PortWrappers()
    await world.add_node(NODE)
    await world.workload.add_pods(NODE, PODS)
    await world.until(lambda: world.running_pods() == PODS, within=60)
    await world.until(lambda: has_exactly(world, NODE, NORMAL), within=60)
    await world.until(lambda: has_a_state(world), within=60)


async def has_a_state(world: World) -> bool:
    """Whether the subnet has its ClusterSubnetState, though nothing is in it."""
    try:
        await world.cluster.get(ClusterSubnetState, SUBNET, SYSTEM_NAMESPACE)
    except NotFound:
        return False
    return True


async def say(world: World, *, exhausted: bool) -> None:
    """Whether the subnet is exhausted, as somebody else says."""
    state = await world.cluster.get(ClusterSubnetState, SUBNET, SYSTEM_NAMESPACE)
    status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp="2025-06-15T15:06:40Z")
    await world.cluster.replace_status(structs.replace(state, status=status), manager="somebody")


async def test_a_flip_of_the_subnets_state_alone_brings_a_node_to_one_address_beyond_its_pods(
    stage: Stage,
) -> None:
    async with stage.world("10.0.0.0/24", controller=False, cluster_subnets=False) as world:
        await a_node_with_five_pods(world)
        await say(world, exhausted=True)
        await world.until(lambda: held(world, NODE) == PODS + 1, within=stage.within(10))
        await world.pass_time(stage.seconds(120))
        assert held(world, NODE) == PODS + 1

        await say(world, exhausted=False)
        await world.until(lambda: held(world, NODE) == NORMAL, within=stage.within(10))


async def test_a_state_that_is_deleted_is_as_good_as_not_exhausted(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24", controller=False, cluster_subnets=False) as world:
        await a_node_with_five_pods(world)
        await say(world, exhausted=True)
        await world.until(lambda: held(world, NODE) == PODS + 1, within=stage.within(10))
        await world.cluster.delete(ClusterSubnetState, SUBNET, SYSTEM_NAMESPACE)
        await world.until(lambda: held(world, NODE) == NORMAL, within=stage.within(10))


@pytest.mark.parametrize("cluster_subnets", [True, False])
async def test_the_state_of_another_subnet_is_none_of_a_nodes_business(
    stage: Stage, cluster_subnets: bool
) -> None:
    async with stage.world("10.0.0.0/24", controller=False, cluster_subnets=cluster_subnets) as world:
        await a_node_with_five_pods(world)
        world.trace.mark()
        metadata = ObjectMeta(name="another", namespace=SYSTEM_NAMESPACE)
        made = await world.cluster.create(ClusterSubnetState(metadata=metadata), manager="somebody")
        status = ClusterSubnetStateStatus(exhausted=True, timestamp="2025-06-15T15:06:40Z")
        await world.cluster.replace_status(structs.replace(made, status=status), manager="somebody")
        await world.pass_time(stage.seconds(120))
        assert held(world, NODE) == NORMAL
        assert requests_of(world) == ()


async def test_a_cluster_subnet_takes_the_states_place_and_its_end_gives_it_back(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24", controller=False, cluster_subnets=False) as world:
        await a_node_with_five_pods(world)
        watched = watches_of_the_state(world)
        assert watched == 1

        metadata = ObjectMeta(name=SUBNET, namespace=SYSTEM_NAMESPACE)
        made = await world.cluster.create(ClusterSubnet(metadata=metadata), manager="somebody")
        in_force = ClusterSubnetStatus(scaler=ScalerInForce(batch=8, buffer=0.5))
        await world.cluster.replace_status(structs.replace(made, status=in_force), manager="somebody")
        await world.until(lambda: has_batch(world, 8), within=60)
        await say(world, exhausted=True)
        await world.pass_time(stage.seconds(60))
        assert held(world, NODE) == 15  # 8·⌈½ + 5/8⌉ - 1
        assert watches_of_the_state(world) == watched

        await world.cluster.delete(ClusterSubnet, SUBNET, SYSTEM_NAMESPACE)
        # for half a minute the node goes by what it saw last: the object may be made again
        await world.until(lambda: held(world, NODE) == PODS + 1, within=30 + stage.within(10))
        assert watches_of_the_state(world) == watched + 1


def watches_of_the_state(world: World) -> int:
    """How often the node's agent began to watch the ClusterSubnetState."""
    program, kind = world.machines[NODE].agent_program, ClusterSubnetState.api.kind
    begun = (entry for entry in world.trace.since_mark() if isinstance(entry, ClusterWatch))
    return sum((entry.program, entry.kind) == (program, kind) for entry in begun)


def has_batch(world: World, batch: int) -> bool:
    """Whether this batch is in force, as the node's agent sees it."""
    scaler = agent_of(world, NODE).addresses.state().scaler
    return scaler is not None and scaler.batch == batch
