"""The book follows every address, agrees with what a whole reading shows, and finds what breaks the moment it does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from random import Random

import pytest
from msgspec import structs

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.core.audit.invariants import Picture
from podtide.core.machine_identity import UNKNOWN_MACHINE
from podtide.resources.node import Node
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.checks.audit_loop import InvariantBroken
from podtide.simulation.run.churn import Churn
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.recording import RecordingAllocator
from podtide.simulation.world.world import World
from simulated_cluster import attend

NODES = ("node-0", "node-1", "node-2")
PODS_EACH = 5


@asynccontextmanager
async def a_cluster(*, seed: int = 1) -> AsyncIterator[World]:
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    async with open_embedded_world("10.0.0.0/24", clock=clock, seed=seed, log=log) as world:
        world.programs.start("auditor", attend(world.auditor, world.trace))
        world.start_controller()
        for node in NODES:
            await world.add_node(node)
            await world.workload.add_pods(node, PODS_EACH)
        await world.until(lambda: world.running_pods() == len(NODES) * PODS_EACH, within=60)
        yield world


def in_order(picture: Picture) -> Picture:
    return Picture(
        grants=tuple(sorted(picture.grants, key=lambda grant: grant.container)),
        nodes=tuple(sorted(picture.nodes, key=lambda view: view.node)),
        pods=tuple(sorted(picture.pods, key=lambda pod: pod.pod)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_after_any_story_the_book_says_what_a_whole_reading_shows(seed: int) -> None:
    chance = Random(seed)
    async with a_cluster(seed=seed) as world:
        churn = asyncio.create_task(Churn([world], most_pods=60, chance=chance).run())
        for _ in range(12):
            await world.pass_time(chance.uniform(0.0, 60.0))
            node = chance.choice(NODES)
            match chance.choice(("restart", "crash", "new disk", "replace")):
                case "restart":
                    await world.kill_agent(node)
                    await world.start_agent(node)
                case "crash":
                    await world.crash_machine(node)
                case "new disk":
                    await world.kill_agent(node)
                    world.lose_disk(node)
                    await world.start_agent(node)
                case "replace":
                    await world.remove_node(node)
                    await world.add_node(node)
        churn.cancel()
        await world.pass_time(900)
        assert in_order(world.book.picture()) == structs.replace(
            in_order(await world.site.picture()), ledgers=()
        )
        assert not world.book.findings


async def test_an_address_that_is_freed_under_a_pod_is_found_at_once() -> None:
    async with a_cluster() as world:
        agent = world.machines["node-1"].agent
        assert agent is not None
        (sandbox, interface), (address,) = next(iter(agent.pool.owners().items()))
        agent.pool.free(sandbox, interface, world.clock.monotonic())
        (found,) = world.book.findings
        assert f"{address.ip} is used by pod" in found.words


async def test_an_address_that_is_taken_from_a_node_unnamed_is_found_at_once() -> None:
    async with a_cluster() as world:
        container = await container_of(world, "node-2")
        line = RecordingAllocator(world.allocator, "somebody", clock=world.clock, trace=world.trace)
        lost = container.addresses[-1]
        await line.put_container(wish(container, release=(lost.name,)))
        assert f"{lost.ip} ({lost.name}) left node node-2" in world.book.findings[0].words
        with pytest.raises(InvariantBroken, match="had not named it"):
            await world.auditor.look()


async def test_the_end_of_a_quarantine_takes_nothing_from_a_container_that_lives() -> None:
    async with a_cluster() as world:
        container = await container_of(
            world, "node-2"
        )  # of which a store that went back may have put something aside
        line = RecordingAllocator(world.allocator, "somebody", clock=world.clock, trace=world.trace)
        await line.end_quarantine(
            container.id, (container.primary,), cluster=container.cluster, reason="no pod shows it"
        )
        assert not world.book.findings
        containers = [await container_of(world, name) for name in NODES]
        assert world.book.held("pods") == sum(1 + len(each.addresses) for each in containers)


async def test_what_the_allocator_does_for_a_caller_that_died_meanwhile_is_in_the_book() -> None:
    async with a_cluster() as world:
        container = await container_of(world, "node-0")
        line = RecordingAllocator(world.allocator, "somebody", clock=world.clock, trace=world.trace)
        calling = asyncio.create_task(line.put_container(wish(container, count=container.wanted + 4)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.sleep(0.001)
        assert calling.cancelled()
        assert in_order(world.book.picture()).grants == in_order(await world.site.picture()).grants


async def test_what_pods_have_of_a_former_node_is_not_the_present_one_s_though_no_record_tells_it() -> None:
    async with a_cluster() as world:
        machine = world.machines["node-1"]
        await world.kill_agent("node-1")
        world.lose_disk("node-1")
        await world.cluster.delete(Node, "node-1", uid=machine.uid)
        machine.uid = (await world.create_node("node-1", identity=UNKNOWN_MACHINE)).metadata.uid
        agent = await world.start_agent("node-1")
        await world.until(agent.synced.is_set, within=60)
        in_use = {ip for sandbox in machine.kubelet.sandboxes() for ip in sandbox.addresses}
        assert len(in_use) == PODS_EACH
        assert in_use.isdisjoint(address.ip for address in agent.pool.addresses())
        await world.auditor.check()


async def container_of(world: World, node: str) -> AllocatedContainer:
    (container,) = (await world.allocator.list_containers(node=node)).items
    return container


def wish(container: AllocatedContainer, *, count: int | None = None, release: tuple[str, ...] = ()) -> Wish:
    return Wish(
        id=container.id,
        network=container.network,
        subnet=container.subnet,
        cluster=container.cluster,
        node=container.node,
        request_uid=container.request_uid,
        generation=container.generation + 1,
        count=container.wanted if count is None else count,
        release=release,
        cluster_uid=container.cluster_uid,
    )
