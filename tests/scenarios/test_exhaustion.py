"""A subnet runs low, and recovers: the flag has hysteresis, and the nodes' pools follow it."""

import pytest

from podtide.cluster.port import NotFound
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.world.world import World
from scenarios.looking import cluster_subnet, free, held, requested, says_exhausted, subnet
from scenarios.stage import Stage

CIDR = "10.0.0.0/25"
"""125 addresses: exhausted above 112, and no longer below 100."""


async def is_exhausted(world: World) -> bool:
    """Whether both objects say so; they are written one after the other."""
    try:
        return (await cluster_subnet(world)).status.exhausted and await says_exhausted(world)
    except NotFound:  # the controller has not come to it yet
        return False


async def is_at_ease(world: World) -> bool:
    """Whether both objects say so."""
    return not (await cluster_subnet(world)).status.exhausted and not await says_exhausted(world)


async def keep_one_free(world: World, reserved: int) -> bool:
    """Whether every node has one free address and no more, and the subnet has lent that many in all."""
    one_each = all(free(world, node) == 1 for node in world.machines)
    return one_each and (await subnet(world)).reserved == reserved


async def test_exhaustion_goes_on_and_off_with_hysteresis_and_the_batch_comes_back(stage: Stage) -> None:
    async with stage.world(CIDR) as world:
        for node in ("node-0", "node-1"):
            await world.add_node(node)
        pods = [*await world.workload.add_pods("node-0", 70), *await world.workload.add_pods("node-1", 42)]
        await world.until(lambda: is_exhausted(world), within=60)
        await world.until(lambda: world.running_pods() == len(pods), within=60)
        await world.until(lambda: keep_one_free(world, len(pods) + 4), within=60)

        # Between the thresholds nothing flips, however long it stays there.
        for name in pods[:6]:
            await world.workload.remove_pod(name)
        del pods[:6]
        await world.until(lambda: keep_one_free(world, 110), within=60)
        world.trace.mark()
        await world.pass_time(stage.quiet_seconds)
        assert world.trace.writes(ClusterSubnetState) == []
        assert await is_exhausted(world)
        assert [free(world, node) for node in world.machines] == [1, 1]

        # Below the lower one it ends.
        for name in pods[:12]:
            await world.workload.remove_pod(name)
        del pods[:12]
        await world.until(lambda: is_at_ease(world), within=60)
        assert (await subnet(world)).reserved < 100
        await world.pass_time(stage.quiet_seconds)
        assert await is_at_ease(world)

        # With room enough for it, the batch is what it was configured to be.
        for name in pods[:70]:
            await world.workload.remove_pod(name)
        await world.until(lambda: has_batch(world, 16), within=600)
        await world.until(lambda: all_ask_for_whole_batches(world), within=60)
        flips = [write.item.status.exhausted for write in world.trace.writes(ClusterSubnetState)]  # type: ignore[union-attr]  # a status write has an item
        assert flips == [False]


async def has_batch(world: World, batch: int) -> bool:
    scaler = (await cluster_subnet(world)).status.scaler
    return scaler is not None and scaler.batch == batch


async def all_ask_for_whole_batches(world: World) -> bool:
    return [(await requested(world, node) + 1) % 16 for node in world.machines] == [0, 0]


@pytest.mark.parametrize(
    "cluster_subnets", [True, False], ids=["told by the ClusterSubnet", "told one by one"]
)
async def test_nodes_keep_no_free_address_while_starved(stage: Stage, cluster_subnets: bool) -> None:
    async with stage.world(CIDR, cluster_subnets=cluster_subnets) as world:
        for node in ("node-0", "node-1"):
            await world.add_node(node)
        await world.workload.add_pods("node-0", 80)
        await world.workload.add_pods("node-1", 44)
        await world.until(lambda: world.running_pods() == 123, within=120)
        await world.pass_time(stage.seconds(60))
        assert [free(world, node) for node in world.machines] == [0, 0]
        assert sum(held(world, node) for node in world.machines) == 123


async def test_a_node_that_joins_a_subnet_with_3_addresses_left_starts_and_serves_pods(stage: Stage) -> None:
    async with stage.world("10.0.0.0/26") as world:
        await world.add_node("node-0")
        await world.workload.add_pods("node-0", 56)
        await world.until(lambda: world.running_pods() == 56, within=60)
        # With its primary, and the one that it keeps free, that is all but 3 of 61.
        await world.until(lambda: keep_one_free(world, 58), within=60)
        there = await subnet(world)
        assert there.capacity - there.reserved == 3
        world.trace.mark()

        await world.add_node("node-1")
        await world.until(lambda: free(world, "node-1") == 1, within=stage.within(10))
        await world.pass_time(stage.seconds(60))
        first = world.trace.writes(NodeNetworkConfig, "apply", name="node-1")
        assert [write.item.spec.requested_ip_count for write in first] == [1]  # type: ignore[union-attr]  # an apply has an item

        await world.workload.add_pods("node-1", 2)
        await world.until(lambda: world.running_pods("node-1") == 2, within=60)
        # The third takes the one that node-0 kept, and the last address of the subnet.
        await world.workload.add_pods("node-1", 1)
        await world.until(lambda: world.running_pods("node-1") == 3, within=60)
        assert (await subnet(world)).reserved == there.capacity
