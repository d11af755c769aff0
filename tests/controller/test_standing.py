"""What a controller tells the allocator of itself weighs what its cluster does, and no more can refuse it than who it is."""

import io
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from allocator.service.running import open_store, served
from controller.world import OPTIONS, World, wish_of
from podtide.allocator.client import HttpAllocator, Server
from podtide.allocator.limits import MOST_SEEN
from podtide.allocator.port import Allocator, SubnetSpec
from podtide.allocator.store import DatabaseAllocator
from podtide.allocator.terms import OpenedTerm, TermClaim
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.counts import ControllerCounts
from podtide.controller.guard import GuardedAllocator
from podtide.controller.standing import Standing
from podtide.resources.base import ObjectMeta
from podtide.resources.node_network_config import (
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
)
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger

SUBNETS = MOST_SEEN + 1


class Claims(HttpAllocator):
    """The client, with the claims that it was asked to send."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.sent: list[TermClaim] = []

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        self.sent.append(claim)
        return await super().open_term(claim)


def a_standing(world: World, allocator: Allocator) -> Standing:
    return Standing(
        world.cluster,
        allocator,
        OPTIONS,
        "controller-1",
        reports=WorkQueue[int](),
        counts=ControllerCounts(),
        log=make_logger(io.StringIO(), LoopClock()),
    )


@asynccontextmanager
async def many_subnets() -> AsyncIterator[tuple[World, DatabaseAllocator, Claims]]:
    """An allocator with more subnets than one request may name, over HTTP, and a cluster that uses one of them."""
    async with await open_store() as store:
        for number in range(SUBNETS):
            network = "blue" if number % 20 == 0 else f"network-{number % 20}"
            cidr = f"10.{number // 256}.{number % 256}.0/24"
            await store.add_subnet(SubnetSpec(network=network, name=f"s{number}", cidrs=(cidr,)))
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.200.0.0/24",)))
        world = World(store)
        async with served(store) as url, Claims(Server(url=url)) as client:
            yield world, store, client
        world.cluster.close()


@pytest.mark.real_time
async def test_more_subnets_at_the_allocator_than_a_request_names_refuse_no_controller() -> None:
    async with many_subnets() as (world, store, client):
        standing = a_standing(world, client)
        await standing._renew()
        granted = await store.put_container(standing.stamped(wish_of("n1", 3, cluster="east")))
        for _ in range(2):
            await standing._renew()
        assert standing.objection == ""
        assert [[(each.subnet, each.version) for each in claim.seen] for claim in client.sent] == [
            [("pods", 0)],
            [("pods", 0)],
            [("pods", granted.version)],
        ]


@pytest.mark.real_time
async def test_a_cluster_with_containers_in_more_subnets_than_a_request_names_is_not_refused() -> None:
    async with many_subnets() as (world, store, client):
        standing = a_standing(world, client)
        await standing._renew()
        for number in range(SUBNETS):
            standing.see(a_config("blue", f"s{number}", 0))
        await standing._renew()
        await standing._renew()
        assert standing.objection == ""
        assert len(client.sent[-1].seen) == SUBNETS + 1
        standing.see(a_config("blue", "pods", 7))  # it sorts before all others, and is sent first
        await standing._renew()
        assert (await store.list_clusters()).recovering


@pytest.mark.parametrize("network", ["/subscriptions/1/virtualNetworks/blue", "blue " * 100])
async def test_a_status_that_names_what_is_no_network_refuses_no_controller(network: str) -> None:
    async with await open_store(LoopClock()) as store:
        world = World(store)
        standing = a_standing(world, store)
        standing.see(a_config(network, "pods", 3))
        await standing._renew()
        assert standing.objection == ""
        world.cluster.close()


async def test_subnets_are_followed_in_which_the_cluster_has_something_that_no_status_shows() -> None:
    async with await open_store(LoopClock()) as store:
        for number, name in enumerate(("held", "left", "foreign")):
            await store.add_subnet(SubnetSpec(network="blue", name=name, cidrs=(f"10.1.{number}.0/24",)))
        world = World(store)
        uid = await world.uid()
        for name, cluster in (("held", "east"), ("left", "east"), ("foreign", "west")):
            wish = structs.replace(wish_of(name, 1, cluster=cluster), subnet=name, cluster_uid=uid)
            await store.put_container(wish)
        await store.delete_container("uid-left", cluster="east", cluster_uid=uid)
        standing = a_standing(world, store)
        await standing._renew()
        guarded = GuardedAllocator(store, lambda: None, Counter(), standing)
        await guarded.list_containers(cluster="east", more="")
        await guarded.quarantined(cluster="east")
        await standing._renew()
        followed = {each.subnet: each.version for each in standing._claim().seen}
        assert followed == {"pods": 0, "held": 1, "left": 2}
        world.cluster.close()


def a_config(network: str, subnet: str, version: int) -> NodeNetworkConfig:
    container = NetworkContainer(vnet_id=network, subnet_name=subnet, version=version)
    return NodeNetworkConfig(
        metadata=ObjectMeta(name="n1"), status=NodeNetworkConfigStatus(network_containers=[container])
    )
