"""A program's lines put on record what goes over them, and let nothing through when they are cut."""

from random import Random

import pytest

from podtide.allocator.containers import Wish
from podtide.allocator.errors import AllocatorUnavailable
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Unavailable
from podtide.resources.base import ObjectMeta
from podtide.resources.node import Node
from podtide.runtime.clock import LoopClock
from podtide.runtime.settings import Settings
from podtide.simulation.trace import Trace
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, opened_allocator
from podtide.simulation.world.recording import RecordingAllocator, RecordingCluster

CLOCK = LoopClock()


async def test_writes_and_watches_are_recorded_with_who_made_them_and_reads_are_not() -> None:
    trace = Trace()
    line = RecordingCluster(
        EmbeddedCluster(clock=CLOCK, randomness=Random(1)), "controller", clock=CLOCK, trace=trace
    )
    node = await line.create(Node(metadata=ObjectMeta(name="node-0")), manager="test")
    await line.get(Node, "node-0")
    page = await line.list(Node)
    events = line.watch(Node, resource_version=page.resource_version, fields="metadata.name=node-0")
    trace.mark()
    await line.replace(node, manager="test")
    await line.delete(Node, "node-0")
    await events.aclose()
    assert [str(entry) for entry in trace.entries] == [
        "controller: create Node node-0",
        "controller: watch Node metadata.name=node-0",
        "controller: replace Node node-0",
        "controller: delete Node node-0",
    ]
    assert [write.verb for write in trace.writes(Node)] == ["replace", "delete"]


async def test_nothing_gets_through_a_line_that_was_cut() -> None:
    trace = Trace()
    cluster = RecordingCluster(EmbeddedCluster(clock=CLOCK), "agent", clock=CLOCK, trace=trace)
    cluster.cut()
    with pytest.raises(Unavailable, match="agent has no connection"):
        await cluster.create(Node(metadata=ObjectMeta(name="node-0")), manager="test")
    with pytest.raises(Unavailable):
        cluster.watch(Node, resource_version="1")
    async with opened_allocator(("10.0.0.0/24",), Settings(), CLOCK) as store:
        allocator = RecordingAllocator(store, "controller", clock=CLOCK, trace=trace)
        allocator.cut()
        with pytest.raises(AllocatorUnavailable, match="controller has no connection"):
            await allocator.get_subnet(NETWORK, SUBNET)
    assert trace.entries == []


async def test_what_changes_something_at_the_allocator_is_recorded() -> None:
    trace = Trace()
    async with opened_allocator(("10.0.0.0/24",), Settings(), CLOCK) as store:
        allocator = RecordingAllocator(store, "controller", clock=CLOCK, trace=trace)
        wish = Wish(
            id="uid",
            network=NETWORK,
            subnet=SUBNET,
            cluster="east",
            node="node-0",
            request_uid="r",
            generation=1,
            count=4,
        )
        await allocator.put_container(wish)
        await allocator.get_container("uid", cluster="east")
        await allocator.delete_container("uid", cluster="east")
    assert [str(entry) for entry in trace.entries] == [
        "controller: put_container node-0",
        "controller: delete_container uid",
    ]
