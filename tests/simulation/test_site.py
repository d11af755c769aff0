"""Clusters that share a subnet: each has its own nodes and pods, and their addresses are looked at together."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from io import StringIO

import pytest
from msgspec import structs

from podtide.cluster.embedded import EmbeddedCluster
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.settings import Settings
from podtide.simulation.checks.audit_loop import InvariantBroken
from podtide.simulation.nodes.kubelet import Sandbox
from podtide.simulation.run.settling import unsettled
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, opened_allocator, options_for
from podtide.simulation.world.site import Site
from podtide.simulation.world.world import World

CIDR = "10.0.0.0/24"
NODE = "node-0"


@asynccontextmanager
async def two_clusters(pods: int) -> AsyncIterator[tuple[World, World]]:
    """East and west, each with a node of the same name and so many pods on it."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock)
    async with opened_allocator((CIDR,), Settings(), clock) as allocator, AsyncExitStack() as stack:
        site = Site(allocator, NETWORK)
        worlds = []
        for name in ("east", "west"):
            cluster = EmbeddedCluster(clock=clock, randomness=seeded_randomness(f"{name}/cluster"))
            stack.callback(cluster.close)
            options = options_for((CIDR,), cluster=name)
            world = World(cluster, allocator, options, site=site, name=name, clock=clock, seed=name, log=log)
            worlds.append(await stack.enter_async_context(world))
            world.start_controller(f"{name}/controller")
            await world.add_node(NODE)
            await world.workload.add_pods(NODE, pods)
        east, west = worlds
        await east.until(lambda: east.running_pods() == west.running_pods() == pods, within=60)
        yield east, west


def sandboxes(world: World) -> tuple[Sandbox, ...]:
    return world.machines[NODE].kubelet.sandboxes()


async def test_nodes_of_one_name_in_two_clusters_have_addresses_of_their_own() -> None:
    async with two_clusters(20) as (east, west):
        had = [{ip for sandbox in sandboxes(world) for ip in sandbox.addresses} for world in (east, west)]
        assert list(map(len, had)) == [20, 20]
        assert not had[0] & had[1]
        assert set(east.site.machines) == {"east/node-0", "west/node-0"}
        reserved = (await east.allocator.get_subnet(NETWORK, SUBNET)).reserved
        picture = await east.site.picture()
        assert reserved == sum(1 + len(grant.addresses) for grant in picture.grants)
        assert {pod.pod.partition("/")[0] for pod in picture.pods} == {"east", "west"}
        assert len(picture.nodes) == 2
        await west.auditor.check()


async def test_the_book_of_two_clusters_says_what_a_whole_reading_shows() -> None:
    async with two_clusters(20) as (east, west):
        await west.kill_agent(NODE)
        await west.start_agent(NODE)
        await west.workload.add_pods(NODE, 20)
        await east.workload.remove_pod("pod-3")
        await east.pass_time(60)
        book, read = east.book.picture(), await east.site.picture()
        assert sorted(book.pods, key=str) == sorted(read.pods, key=str)
        assert sorted(book.grants, key=str) == sorted(read.grants, key=str)
        assert {view.node: dict(view.states) for view in book.nodes} == {
            view.node: dict(view.states) for view in read.nodes
        }
        await east.auditor.check()


async def test_an_address_that_pods_of_two_clusters_have_is_found() -> None:
    async with two_clusters(1) as (east, west):
        (stolen,) = sandboxes(east)
        (sandbox,) = sandboxes(west)
        assert stolen.pod == sandbox.pod  # the clusters know nothing of each other
        machine = west.machines[NODE]
        west.book.sandbox_changed(machine, sandbox, structs.replace(sandbox, addresses=stolen.addresses))
        with pytest.raises(InvariantBroken, match=r"invariant 1: .*east/default/pod-0.*west/default/pod-0"):
            await east.auditor.look()


async def test_a_node_that_leaves_one_cluster_leaves_that_of_its_name_in_the_other_alone() -> None:
    async with two_clusters(5) as (east, west):
        await west.remove_node(NODE)
        await east.pass_time(1200)
        assert set(east.site.machines) == {"east/node-0"}
        assert east.running_pods() == 5
        await east.auditor.check()
        assert await unsettled((east, west)) == []


async def test_a_pod_without_an_address_in_one_of_the_clusters_is_missed() -> None:
    async with two_clusters(5) as (east, west):
        await east.pass_time(60)
        assert await unsettled((east, west)) == []
        await west.programs.stop("west/controller")
        await west.workload.add_pods(NODE, 30)
        await west.pass_time(600)
        complaints = await unsettled((east, west))
        assert any("of 40 pods that fit have an address, west/default/pod-" in each for each in complaints)


async def test_what_programs_do_bears_the_name_of_their_cluster() -> None:
    async with two_clusters(1) as (east, _west):
        told = [str(entry) for entry in east.trace.entries]
        for words in (
            "agent west/node-0: apply NodeNetworkConfig node-0",
            "east/controller: put_container node-0",
            "ADD for default/pod-0 on west/node-0: ",
        ):
            assert any(each.startswith(words) for each in told)
