"""What a controller tells the allocator of itself weighs what its cluster does, and no more can refuse it than who it is."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from allocator.service.running import open_store, served
from controller.world import OPTIONS, WatchedAllocator, World, a_world, wish_of
from podtide.allocator.client import AllocatorAddress, HttpAllocator
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.limits import MOST_SEEN
from podtide.allocator.port import Allocator
from podtide.allocator.store import DatabaseAllocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import OpenedTerm, TermClaim
from podtide.controller.allocator_term import AllocatorTerm
from podtide.controller.fencing import GuardedAllocator
from podtide.core.subnet.cluster_identity import TERM_SECONDS
from podtide.resources.base import ObjectMeta
from podtide.resources.node_network_config import (
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
)
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

SUBNETS = MOST_SEEN + 1


class Claims(HttpAllocator):
    """The client, with the claims that it was asked to send."""

    def __init__(self, server: AllocatorAddress) -> None:
        super().__init__(server)
        self.sent: list[TermClaim] = []

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        self.sent.append(claim)
        return await super().open_term(claim)


def a_standing(world: World, allocator: Allocator, holder: str = "controller-1") -> AllocatorTerm:
    runtime = Runtime(
        clock=LoopClock(), randomness=seeded_randomness(1), log=make_logger(io.StringIO(), LoopClock())
    )
    return AllocatorTerm(world.cluster, allocator, OPTIONS, holder, runtime)


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
        async with served(store) as url, Claims(AllocatorAddress(url=url)) as client:
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
        guarded = GuardedAllocator(store, lambda: None, standing)
        await guarded.list_containers(cluster="east", more="")
        await guarded.quarantined(cluster="east")
        await standing._renew()
        followed = {each.subnet: each.version for each in standing._claim().seen}
        assert followed == {"pods": 0, "held": 1, "left": 2}
        world.cluster.close()


class Slow(WatchedAllocator):
    """Its answers to claims take a while."""

    seconds = 4.0

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        opened = await super().open_term(claim)
        await asyncio.sleep(self.seconds)
        return opened


async def test_a_controller_that_was_stopped_for_as_long_as_a_term_lasts_does_nothing_before_it_is_renewed() -> (
    None
):
    async with a_world() as world:
        foreign = await world.foreign_node("n1", 3, cluster="east", cluster_uid=await world.uid())
        original, clone = (a_standing(world, world.allocator, holder) for holder in ("original", "clone"))
        guarded = GuardedAllocator(world.allocator, lambda: None, original)
        await original._renew()
        await asyncio.sleep(TERM_SECONDS - 0.1)
        original.check()
        await asyncio.sleep(0.1)
        await clone._renew()
        clone.check()
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: guarded.delete_container(foreign, cluster="east"),
            lambda: guarded.put_container(wish_of("n2", 1, cluster="east")),
            lambda: guarded.move_container(wish_of("n2", 1, cluster="east")),
            lambda: guarded.end_quarantine(foreign, (), cluster="east", reason="looked"),
        )
        for call in calls:
            with pytest.raises(AllocatorUnavailable, match="was not renewed for 10 s"):
                await call()
        assert not world.allocator.calls
        await original._renew()
        assert "clone acts for the cluster" in original.objection


async def test_a_term_is_counted_from_when_it_was_asked_for_and_a_slow_answer_does_not_cost_it() -> None:
    async with a_world() as world:
        standing = a_standing(world, Slow(world.allocator))
        await standing.open()
        await asyncio.sleep(TERM_SECONDS - Slow.seconds - 0.1)
        standing.check()
        await asyncio.sleep(0.1)
        with pytest.raises(AllocatorUnavailable):
            standing.check()
        await standing._renew()
        keeping = asyncio.create_task(standing.keep())
        for _ in range(100):
            await asyncio.sleep(0.5)
            standing.check()
        keeping.cancel()


def a_config(network: str, subnet: str, version: int) -> NodeNetworkConfig:
    container = NetworkContainer(vnet_id=network, subnet_name=subnet, version=version)
    return NodeNetworkConfig(
        metadata=ObjectMeta(name="n1"), status=NodeNetworkConfigStatus(network_containers=[container])
    )
