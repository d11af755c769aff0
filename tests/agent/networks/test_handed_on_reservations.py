"""A reservation that has passed to another sandbox, or that somebody wrote since, is not given up by what memory has of it."""

import pytest
from msgspec import structs

from agent.networks.network_bench import SLICED, Bench, owner
from podtide.agent.networks.errors import StorageFailed
from podtide.cluster.port import Conflict
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

NAME = "blue-10.0.0.1"
CLASSIC_NOW = {"range": "10.0.0.0/16", "network_name": "blue"}
"""The same network after its definition lost the slice size."""


async def correct(bench: Bench, **spec: str) -> None:
    """Repair lets the reservation say something else."""
    found = await bench.cluster.get(OverlappingRangeIPReservation, NAME, SYSTEM_NAMESPACE)
    changed = structs.replace(found, spec=structs.replace(found.spec, **spec))
    await bench.cluster.replace(changed, manager="podtide-controller")


async def test_the_del_of_a_sandbox_leaves_the_reservation_that_the_pods_next_one_took_over_for_another_pool() -> (
    None
):
    bench = Bench()
    await bench.cut(SLICED, "10.0.0.0/24")
    async with bench.machine() as node:
        assert await node.add(owner("c1", "web"), SLICED) == ["10.0.0.1/16"]
        assert await node.add(owner("c2", "web"), CLASSIC_NOW) == ["10.0.0.1/16"]
        await node.delete(owner("c1", "web"), SLICED)
        assert await bench.pool("blue-node-a") == {}
        assert await bench.reserved() == {NAME: "default/web"}, "the new sandbox has the address"
        await node.delete(owner("c2", "web"), CLASSIC_NOW)
        assert await bench.reserved() == {}


async def test_one_that_was_written_since_and_is_still_the_sandboxs_goes_with_its_del() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.0.0/24")
    async with bench.machine() as node:
        await node.add(owner("c1", "web"), SLICED)
        await correct(bench, pod_uid="")
        await node.delete(owner("c1", "web"), SLICED)
        assert await bench.reserved() == {}


async def test_one_that_somebody_made_anew_for_the_sandbox_goes_with_its_del() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.0.0/24")
    async with bench.machine() as node:
        await node.add(owner("c1", "web"), SLICED)
        await bench.cluster.delete(OverlappingRangeIPReservation, NAME, SYSTEM_NAMESPACE)
        await bench.put_reservation(NAME, "default/web", ifname="net1", container_id="c1")
        await node.delete(owner("c1", "web"), SLICED)
        assert await bench.reserved() == {}


async def test_one_that_is_anothers_by_now_stays() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.0.0/24")
    async with bench.machine() as node:
        await node.add(owner("c1", "web"), SLICED)
        await correct(bench, podref="other/pod", container_id="x", pod_uid="y")
        await node.delete(owner("c1", "web"), SLICED)
        assert await bench.reserved() == {NAME: "other/pod"}


async def test_one_that_is_written_at_every_look_is_an_error_and_the_next_del_finishes() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.0.0/24")
    async with bench.machine() as node:
        await node.add(owner("c1", "web"), SLICED)
        node.line.before["delete OverlappingRangeIPReservation"] = [Conflict("changed")] * 2
        with pytest.raises(StorageFailed, match="a reservation could not be deleted"):
            await node.delete(owner("c1", "web"), SLICED)
        await node.delete(owner("c1", "web"), SLICED)
        assert await bench.reserved() == {}
