"""What a node event costs beside 5,000 nodes in 65,536 slices: one write of one list, and less when more nodes come.

A network's list is one object, whose format is Whereabouts' (design W12), so one write is all of it: a third of a
megabyte. What can be held to is that nobody but the controller receives it, that one event is never two writes, and
that many events share one.
"""

import asyncio

import pytest

from busy_api_server import Call
from controller.slices.network_world import a_network_world, conf, ipam, moment
from network_fleet import AGENTS, CONTROLLER, NetworkFleet, network_text
from podtide.controller.slices.program import ENTRIES_A_SECOND, GATHER_SECONDS, RequeueDelay
from podtide.core.networks.slice_list import LARGEST_BYTES
from podtide.resources.codec import encode
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.clock import LoopClock

NODES = 5_000
WITH_AGENT = 50
"""As good as all: what one agent watches does not depend on the others."""
REST_SECONDS = NODES / ENTRIES_A_SECOND
LIST_WRITE = Call(CONTROLLER, "replace", "NodeSlicePool")


async def a_large_fleet() -> NetworkFleet:
    fleet = NetworkFleet([network_text("blue", range="10.0.0.0/8", node_slice_size="/24")])
    names = [f"node-{number:04}.example.com" for number in range(NODES)]
    await fleet.open(names[:WITH_AGENT])
    for name in names[WITH_AGENT:]:
        await fleet.register(name)
    await fleet.until_pools(NODES)
    await asyncio.sleep(60)
    fleet.traffic.clear()
    return fleet


async def the_list(fleet: NetworkFleet) -> NodeSlicePool:
    return await fleet.server.cluster.get(NodeSlicePool, "blue", SYSTEM_NAMESPACE)


@pytest.mark.slow
async def test_a_node_that_comes_or_goes_beside_5000_is_one_write_of_the_list_that_only_the_controller_receives() -> (
    None
):
    fleet = await a_large_fleet()
    traffic = fleet.traffic
    for change, nodes in ((fleet.join, NODES + 1), (fleet.leave, NODES)):
        traffic.clear()
        await change("late.example.com")
        await fleet.until_pools(nodes, look_every_seconds=60)
        await asyncio.sleep(60)
        pool = await the_list(fleet)
        assert pool.status is not None
        assert (pool.status.assigned, pool.status.total) == (nodes, 65_536)
        size = len(encode(pool))
        assert size < 350_000
        assert traffic.calls.count(LIST_WRITE) == 1
        assert traffic.written_by(CONTROLLER)["NodeSlicePool"] == pytest.approx(size, rel=0.01)
        watched = traffic.watched_by(CONTROLLER)
        assert watched["NodeSlicePool"] == pytest.approx(size, rel=0.01)
        assert watched.total() < size + 10_000, "all else is small"
        assert traffic.watched_by(AGENTS).total() == 0
    await fleet.close()


@pytest.mark.slow
async def test_nodes_that_keep_coming_beside_5000_share_writes_of_the_list_and_none_waits_long() -> None:
    fleet = await a_large_fleet()
    for number in range(60):
        await fleet.join(f"late-{number:02}.example.com")
        await asyncio.sleep(1)
    await asyncio.sleep(REST_SECONDS + 2)
    assert await fleet.pools() == NODES + 60
    assert fleet.traffic.calls.count(LIST_WRITE) <= 60 / REST_SECONDS + 2
    per_node = fleet.traffic.watched_by(CONTROLLER)["NodeSlicePool"] / 60
    assert per_node < 85_000, "of a list of 330 kB"
    await fleet.close()


@pytest.mark.slow
async def test_where_a_list_would_exceed_an_object_of_1500_kb_the_nodes_beyond_wait_and_are_told() -> None:
    names = [f"{'long-' * 47}{number:04}" for number in range(5_500)]
    async with a_network_world(*names) as world:
        await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/8")))
        await world.start()
        await moment(60)
        pool = await world.slice_pool("blue")
        assert pool.status is not None
        assert pool.status.assigned is not None
        waiting = len(names) - pool.status.assigned
        assert 0 < waiting < 500
        assert LARGEST_BYTES - 20_000 < len(encode(pool)) < LARGEST_BYTES
        assert len(await world.names(IPPool)) == pool.status.assigned
        served = await world.condition("blue", "Served")
        assert served is not None
        assert (served.status, served.reason) == ("False", "ObjectTooLarge")
        assert f"{waiting} of 5500 nodes wait for a slice of 10.0.0.0/8" in served.message
        assert f"limited to 1.5 MB and cannot list more than the {pool.status.assigned}" in served.message
        assert await world.events(NodeSlicePool, "blue") == [("ObjectTooLarge", served.message)]


async def test_a_network_that_was_left_alone_is_looked_at_after_a_moment_however_long_its_list() -> None:
    delay = RequeueDelay(LoopClock())
    assert delay.seconds_until_due("blue") == GATHER_SECONDS
    delay.note_reconcile("blue", 20_000)
    await asyncio.sleep(20)
    assert delay.seconds_until_due("blue") == GATHER_SECONDS


async def test_a_network_that_was_just_looked_at_rests_the_longer_the_longer_its_list_is() -> None:
    delay = RequeueDelay(LoopClock())
    delay.note_reconcile("small", 3)
    delay.note_reconcile("large", 5_000)
    assert delay.seconds_until_due("small") == GATHER_SECONDS
    assert delay.seconds_until_due("large") == pytest.approx(5)
    await asyncio.sleep(2)
    assert delay.seconds_until_due("large") == pytest.approx(3)


async def test_a_network_whose_list_is_gone_does_not_rest() -> None:
    delay = RequeueDelay(LoopClock())
    delay.note_reconcile("blue", 5_000)
    delay.note_reconcile("blue", 0)
    assert delay.seconds_until_due("blue") == GATHER_SECONDS
