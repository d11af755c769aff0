"""What thousands of nodes ask for: lists that stay small, and few writes."""

import pytest

from controller.slices.network_world import a_network_world, conf, ipam, moment
from podtide.resources.codec import encode
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_slice_pool import NodeSlicePool


async def test_a_thousand_nodes_in_65536_slices_are_a_few_writes_of_a_small_list() -> None:
    async with a_network_world() as world:
        await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/8")))
        replica = await world.start()
        for batch in range(4):
            await world.add_nodes(*(f"node-{batch}-{number:03}.example.com" for number in range(250)))
            await moment(0.25)
        await moment()
        assert len(replica.cluster.about("NodeSlicePool")) <= 4
        pool = await world.slice_pool("blue")
        assert pool.status is not None
        assert (pool.status.assigned, pool.status.total) == (1000, 65536)
        assert len(pool.status.allocations) == 1000
        assert len(encode(pool)) < 100_000
        assert len(await world.names(IPPool)) == 1000


async def test_nodes_beyond_what_one_object_can_list_wait_and_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("podtide.core.networks.slice_list.LARGEST_BYTES", 16_100)  # room for two
    async with a_network_world("n1", "n2", "n3") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        served = await world.condition("blue", "Served")
        assert served is not None
        assert (served.status, served.reason) == ("False", "ObjectTooLarge")
        assert "1 of 3 nodes wait" in served.message
        assert "cannot list more than the 2 that are assigned" in served.message
        assert await world.events(NodeSlicePool, "blue") == [("ObjectTooLarge", served.message)]
