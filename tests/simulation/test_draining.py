"""A CIDR drains in a whole cluster: pods keep what they have, the rest goes back by itself, and the CIDR leaves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.run.settling import unsettled
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, open_embedded_world
from podtide.simulation.world.world import World
from simulated_cluster import attend

FIRST, LATER = "10.0.0.0/25", "10.9.0.0/24"
NODES = ("node-0", "node-1", "node-2")


@asynccontextmanager
async def a_grown_cluster(pods_each: int) -> AsyncIterator[World]:
    """Nodes with pods, all of the first CIDR, in a subnet that has grown by another."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    async with open_embedded_world(FIRST, clock=clock, seed=1, log=log) as world:
        world.programs.start("auditor", attend(world.auditor, world.trace))
        world.start_controller()
        for node in NODES:
            await world.add_node(node)
            await world.workload.add_pods(node, pods_each)
        await world.until(lambda: world.running_pods() == len(NODES) * pods_each, within=60)
        await world.allocator.grow_subnet(NETWORK, SUBNET, (LATER,))
        yield world
        await world.auditor.check()
        assert not world.book.findings


def on_pods(world: World) -> set[str]:
    sandboxes = [sandbox for machine in world.machines.values() for sandbox in machine.kubelet.sandboxes()]
    return {ip for sandbox in sandboxes for ip in sandbox.addresses}


def of_first(ips: set[str]) -> set[str]:
    return {ip for ip in ips if ip.startswith("10.0.")}


async def test_what_no_pod_has_goes_back_and_the_cidr_leaves_with_its_last_pod() -> None:
    async with a_grown_cluster(5) as world:
        before = on_pods(world)
        await world.allocator.shrink_subnet(NETWORK, SUBNET, (FIRST,))
        await world.pass_time(60)
        assert on_pods(world) == before, "an address on a pod stays"
        subnet = await world.allocator.get_subnet(NETWORK, SUBNET)
        assert (subnet.draining, subnet.draining_reserved) == ((FIRST,), 15), (
            "and all else went back, primaries too"
        )
        shown = (await world.cluster.get(ClusterSubnet, SUBNET, SYSTEM_NAMESPACE)).status
        assert [(each.cidr, each.gateway, each.draining) for each in shown.cidrs] == [
            (FIRST, "10.0.0.1", True),
            (LATER, "10.9.0.1", False),
        ]
        config = await world.cluster.get(NodeNetworkConfig, NODES[0], SYSTEM_NAMESPACE)
        [container] = config.status.network_containers
        assert (container.subnet_address_space, container.default_gateway) == (LATER, "10.9.0.1")
        assert [each.cidr for each in container.cidrs] == [LATER, FIRST]
        assert config.spec.ips_not_in_use == []

        for number in range(15):
            await world.workload.remove_pod(f"pod-{number}")
        for node in NODES:
            await world.workload.add_pods(node, 5)
        await world.until(lambda: world.running_pods() == 15, within=120)
        await world.pass_time(120)
        assert not of_first(on_pods(world))
        subnet = await world.allocator.get_subnet(NETWORK, SUBNET)
        assert (subnet.cidrs, subnet.gateways) == ((LATER,), ("10.9.0.1",))
        assert await unsettled([world]) == []


async def test_a_drain_of_a_cidr_that_is_needed_makes_nodes_hold_less_and_takes_nothing_from_pods() -> None:
    async with a_grown_cluster(20) as world:
        await world.allocator.grow_subnet(NETWORK, SUBNET, ("10.8.0.0/26",))
        await world.allocator.shrink_subnet(NETWORK, SUBNET, (LATER,))
        await world.pass_time(60)
        before = on_pods(world)
        await world.allocator.shrink_subnet(
            NETWORK, SUBNET, (FIRST,)
        )  # 61 addresses stay, for 60 pods on three nodes
        await world.pass_time(600)
        assert on_pods(world) == before
        subnet = await world.allocator.get_subnet(NETWORK, SUBNET)
        assert subnet.in_force.exhausted, "what stays is too little for what is reserved"
        for number in range(60):
            await world.workload.remove_pod(f"pod-{number}")
        await world.pass_time(30)
        for node in NODES:
            await world.workload.add_pods(node, 18)
        await world.until(lambda: world.running_pods() == 54, within=300)
        await world.pass_time(600)
        subnet = await world.allocator.get_subnet(NETWORK, SUBNET)
        assert subnet.cidrs == ("10.8.0.0/26",)
        assert await unsettled([world]) == []
