"""A Node that was deleted while its machine lives, and is back because etcd was restored: nothing it had is given twice.

Meanwhile its pods were removed, the quarantine ended, and another node has its addresses. What the restored objects say
of them is of the past, and so is the agent's own pool.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from podtide.cluster.embedded import EmbeddedCluster
from podtide.resources.config_confirmation import doubt_in
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.trace import ClusterWrite
from podtide.simulation.world.embedded_world import NETWORK, SUBNET
from podtide.simulation.world.world import World
from simulation.test_registered_again import NODE, PODS, QUARANTINE, a_full_subnet, addresses

OTHER = "node-1"


def cluster_of(world: World) -> EmbeddedCluster:
    assert isinstance(world.cluster, EmbeddedCluster)
    return world.cluster


async def remove_pods(world: World) -> None:
    for box in world.machines[NODE].kubelet.sandboxes():
        await world.workload.remove_pod(box.pod.rpartition("/")[2])


@asynccontextmanager
async def a_node_back(*, room: bool, controller: str, agent: str) -> AsyncIterator[tuple[World, Machine]]:
    """The moment after the restore. All that the node had is the other node's."""
    async with a_full_subnet() as world:
        machine = world.machines[NODE]
        uid, backup, had = machine.uid, cluster_of(world).snapshot(), addresses(world, NODE)
        await world.cluster.delete(Node, NODE, uid=uid)
        machine.uid = ""
        await world.pass_time(1)
        await remove_pods(world)
        await world.pass_time(3 * QUARANTINE)
        assert had < addresses(world, OTHER)
        if controller == "is away":
            await world.programs.kill("controller")
        if agent == "is restarted":
            await world.kill_agent(NODE)
        if room:
            await world.allocator.grow_subnet(NETWORK, SUBNET, ("10.0.1.0/24",))
        cluster_of(world).restore(backup)
        machine.uid = uid
        if agent == "is restarted":
            await world.start_agent(NODE)
        yield world, machine


@pytest.mark.parametrize("agent", [pytest.param("lives", marks=pytest.mark.slow), "is restarted"])
@pytest.mark.parametrize("controller", [pytest.param("lives", marks=pytest.mark.slow), "is away"])
@pytest.mark.parametrize("room", [True, False])
async def test_nothing_is_given_that_went_to_others(room: bool, controller: str, agent: str) -> None:
    async with a_node_back(room=room, controller=controller, agent=agent) as (world, _):
        for _look in range(60):
            await world.pass_time(0.5)
            assert not addresses(world, NODE) & addresses(world, OTHER)
        if controller == "is away":
            assert not addresses(world, NODE)
            world.start_controller("another")
        await world.pass_time(300)
        assert not addresses(world, NODE) & addresses(world, OTHER)
        assert len(addresses(world, NODE)) == (PODS if room else 0)
        await world.auditor.check()


async def test_once_there_is_room_the_node_goes_on() -> None:
    async with a_node_back(room=False, controller="lives", agent="lives") as (world, machine):
        await world.pass_time(60)
        shown = await world.cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        assert shown.status.network_containers == []
        await world.kill_agent(NODE)
        await world.start_agent(NODE)
        await world.allocator.grow_subnet(NETWORK, SUBNET, ("10.0.1.0/24",))
        await world.pass_time(300)
        assert len(addresses(world, NODE)) == PODS
        assert machine.agent is not None
        machine.agent.addresses.require_ready()
        await world.auditor.check()


async def test_a_status_from_before_that_is_put_back_later_changes_nothing() -> None:
    async with a_node_back(room=False, controller="lives", agent="lives") as (world, _):
        past = await world.cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        assert past.status.network_containers
        await world.pass_time(60)
        await world.programs.kill("controller")
        now = await world.cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        await world.cluster.replace_status(structs.replace(now, status=past.status), manager="restore")
        await world.pass_time(60)
        assert not addresses(world, NODE)


@pytest.mark.parametrize("agent", ["lives", "is restarted"])
async def test_a_node_whose_container_stayed_as_it_was_goes_on_after_one_question(agent: str) -> None:
    """The Node went and came back while no controller ran: the allocator never heard of it."""
    async with a_full_subnet() as world:
        await world.allocator.grow_subnet(NETWORK, SUBNET, ("10.0.1.0/24",))
        await world.pass_time(300)
        had = addresses(world, NODE)
        await world.programs.kill("controller")
        backup = cluster_of(world).snapshot()
        await world.cluster.delete(Node, NODE, uid=world.machines[NODE].uid)
        await world.pass_time(5)
        if agent == "is restarted":
            await world.kill_agent(NODE)
        cluster_of(world).restore(backup)
        if agent == "is restarted":
            await world.start_agent(NODE)
        await world.workload.add_pods(NODE, 1)
        await world.pass_time(5)
        assert addresses(world, NODE) == had
        world.start_controller("another")
        await world.pass_time(60)
        assert had < addresses(world, NODE)
        assert questions(world) == 1
        await world.auditor.check()
        quiet = len(world.trace.entries)
        await world.pass_time(60)
        assert not [each for each in world.trace.entries[quiet:] if isinstance(each, ClusterWrite)]


def questions(world: World) -> int:
    """How many different ones were asked."""
    return len(
        {
            doubt_in(each.item.metadata.annotations)
            for each in world.trace.entries
            if isinstance(each, ClusterWrite) and isinstance(each.item, NodeNetworkConfig)
        }
        - {""}
    )
