"""Classic mode: one pool for all nodes, without a lease that the whole cluster queues for."""

import asyncio
from ipaddress import ip_network

import pytest

from agent.networks.network_bench import CLASSIC, SLICED, Bench, Machine, owner
from podtide.agent.networks.errors import NoSlice
from podtide.agent.port import NoAddress
from podtide.cluster.port import Conflict, NotFound, Unavailable
from podtide.core.errors import InvalidConfig, RangeFull
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec, IPPoolStatus
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.runtime.settings import Settings

POOL = "10.0.0.0-24"
WIDE = {"range": "10.0.0.0/22"}
UNGUARDED = CLASSIC | {"enable_overlapping_ranges": False}


async def test_a_shared_pool_counts_what_all_nodes_have_of_it() -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await one.add("a1", WIDE)
        await other.add("b1", WIDE)
    pool = await bench.cluster.get(IPPool, "10.0.0.0-22", SYSTEM_NAMESPACE)
    assert pool.status == IPPoolStatus(used=2, capacity=1022)


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("waves", [1, 40])
async def test_two_nodes_hammering_one_pool_with_200_parallel_adds_each_all_differ_and_all_are_recorded(
    guarded: bool, waves: int
) -> None:
    """All at the same instant, and in waves that come while others are being written."""
    bench = Bench()
    ipam = WIDE | {"enable_overlapping_ranges": guarded}
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        for node in (one, other):
            node.line.after["get IPPool"] = [0.01] * 1000
            node.line.before["replace IPPool"] = [0.01] * 1000

        async def add(node: Machine, number: int, sandbox: str) -> tuple[str, str]:
            await asyncio.sleep(number % waves * 0.005)
            return sandbox, (await node.add(sandbox, ipam))[0]

        adds = [add(one, number, f"a{number}") for number in range(200)]
        adds += [add(other, number, f"b{number}") for number in range(200)]
        given = dict(await asyncio.gather(*adds))
        assert len(given) == len(set(given.values())) == 400
        network = ip_network(WIDE["range"])
        recorded = {
            entry.id: f"{network[int(offset)]}/{network.prefixlen}"
            for offset, entry in (await bench.pool("10.0.0.0-22")).items()
        }
        assert recorded == given
        reserved = {
            f"{name}/{network.prefixlen}": podref for name, podref in (await bench.reserved()).items()
        }
        pods = {address: f"default/pod-of-{sandbox}" for sandbox, address in given.items()}
        assert reserved == (pods if guarded else {})
        assert one.networks.counts.conflicts + other.networks.counts.conflicts > 0, (
            "they were in each other's way"
        )
        writes = one.line.calls["replace IPPool"] + other.line.calls["replace IPPool"]
        assert writes < 100, "those who wait together are written together"


async def test_the_first_node_makes_the_pool_and_no_lease() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.networks.require_ready()
        node.line.forget()
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"]
        assert node.line.calls == {
            "get IPPool": 1,
            "get NodeSlicePool": 2,  # by the range's name and by the configuration's: it is not cut
            "create IPPool": 1,
            "create OverlappingRangeIPReservation": 1,
            "replace IPPool": 1,
        }
        node.line.forget()
        await node.add("c2", CLASSIC)
        assert node.line.calls == {"create OverlappingRangeIPReservation": 1, "replace IPPool": 1}
    assert (await bench.cluster.list(Lease)).items == []


async def test_a_pool_that_another_made_at_the_same_moment_is_used() -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        given = await asyncio.gather(one.add("c1", CLASSIC), other.add("c2", CLASSIC))
        assert sorted(given) == [["10.0.0.1/24"], ["10.0.0.2/24"]]


async def test_a_pool_that_whereabouts_wrote_meanwhile_is_respected() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", UNGUARDED)
        theirs = IPAllocation(id="w1", podref="default/w1", ifname="net1")
        await bench.edit(POOL, lambda entries: entries.update({"2": theirs}))
        assert await node.add("c2", UNGUARDED) == ["10.0.0.3/24"]
        assert (await bench.pool(POOL))["2"] == theirs


async def test_an_address_that_whereabouts_took_between_our_two_writes_is_left_to_it() -> None:
    """It looks for a reservation, then writes the pool, then reserves: both can come to want one address."""
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        node.line.before["replace IPPool"] = [0.5]
        adding = asyncio.create_task(node.add("c2", CLASSIC))
        await asyncio.sleep(0.2)
        assert "10.0.0.2" in await bench.reserved()
        theirs = IPAllocation(id="w1", podref="default/w1", ifname="net1")
        await bench.edit(POOL, lambda entries: entries.update({"2": theirs}))
        assert await adding == ["10.0.0.3/24"]
        assert (await bench.pool(POOL))["2"] == theirs


async def test_where_others_write_the_pool_is_read_first_until_they_stop() -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await one.add("a1", CLASSIC)
        await other.add("b1", CLASSIC)
        await one.add("a2", CLASSIC)
        assert one.networks.counts.conflicts == 1
        await other.add("b2", CLASSIC)
        one.line.forget()
        await one.add("a3", CLASSIC)
        assert one.line.calls["get IPPool"] == 1
        assert one.networks.counts.conflicts == 1, "it looked before it wrote"
        await one.add("a4", CLASSIC)
        one.line.forget()
        await one.add("a5", CLASSIC)
        assert one.line.calls["get IPPool"] == 0, "nobody else has written since"


async def test_a_del_that_finds_nothing_looks_at_the_pool_before_it_succeeds() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        earlier = IPAllocation(id="w1", podref="default/w1", ifname="net1")
        await bench.edit(POOL, lambda entries: entries.update({"9": earlier}))
        assert await node.delete("w1", CLASSIC) == ["10.0.0.9"]


async def test_a_del_makes_no_pool() -> None:
    bench = Bench()
    async with bench.machine() as node:
        assert await node.delete("c1", CLASSIC) == []
        assert node.line.calls == {"get IPPool": 1}


async def test_an_add_that_always_comes_too_late_says_so_when_its_time_is_over() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [Conflict("IPPool was changed by somebody else")] * 1000
        started = bench.clock.monotonic()
        with pytest.raises(NoAddress, match=r"within 10s: IPPool was changed by somebody else"):
            await node.add("c1", CLASSIC)
        assert bench.clock.monotonic() - started == pytest.approx(10.0)
        assert node.line.calls["replace IPPool"] < 60, "it waits longer each time"
        assert await bench.pool(POOL) == {}
        node.line.before.clear()
        await node.delete("c1", CLASSIC)
        assert await bench.reserved() == {}, "what it had reserved is given up by its DEL"


async def test_a_pool_of_another_range_under_the_same_name_is_a_mistake_in_the_configuration() -> None:
    bench = Bench()
    await bench.put_pool(POOL, "10.9.0.0/24")
    async with bench.machine() as node:
        with pytest.raises(InvalidConfig, match=r"is of 10\.9\.0\.0/24"):
            await node.add("c1", CLASSIC)


async def test_a_pool_whose_range_cannot_be_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server with another schema than ours lets anything pass."""
    bench = Bench()
    async with bench.machine() as node:
        await node.networks.require_ready()
        garbled = IPPool(spec=IPPoolSpec(range="nonsense", allocations={}))

        async def get(*_question: object) -> IPPool:
            return garbled

        monkeypatch.setattr(node.line, "get", get)
        with pytest.raises(InvalidConfig, match="has no valid range"):
            await node.add("c1", CLASSIC)


async def test_a_full_range_says_so_at_once() -> None:
    bench = Bench()
    tiny = {"range": "10.0.0.0/30"}
    async with bench.machine() as node:
        await asyncio.gather(node.add("c1", tiny), node.add("c2", tiny))
        started = bench.clock.monotonic()
        with pytest.raises(RangeFull, match="pods hold 2"):
            await node.add("c3", tiny)
        assert bench.clock.monotonic() - started < 0.1
        await node.delete("c1", tiny)
        assert await node.add("c3", tiny) == ["10.0.0.1/30"]


async def test_a_full_range_is_full_no_more_when_another_node_gave_something_back() -> None:
    small = {"range": "10.0.0.0/30"}
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await other.add("b1", small)
        await one.add("a1", small)
        await other.delete("b1", small)
        assert await one.add("a2", small) == ["10.0.0.1/30"]


async def test_a_pool_deleted_by_hand_is_made_again_and_what_sandboxes_have_is_given_to_nobody() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", UNGUARDED)
        await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
        assert await node.add("c2", UNGUARDED) == ["10.0.0.2/24"]


async def test_a_creation_whose_answer_was_lost_is_seen() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.after["create IPPool"] = [Unavailable("the answer was lost")]
        assert await node.add(owner("c1"), CLASSIC) == ["10.0.0.1/24"]


async def test_an_add_that_is_repeated_is_answered_by_the_pool_as_it_is_now() -> None:
    """Repair may have freed it, and another node have given it away."""
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", UNGUARDED)
        theirs = IPAllocation(id="w1", podref="default/w1", ifname="net1")
        await bench.edit(POOL, lambda entries: entries.update({"1": theirs}))
        assert await node.add("c1", UNGUARDED) == ["10.0.0.2/24"]


async def test_an_add_that_nobody_waits_for_any_more_is_not_written() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c0", CLASSIC)
        node.line.before["create OverlappingRangeIPReservation"] = [1.0]
        adding = asyncio.create_task(node.add("c1", CLASSIC))
        await asyncio.sleep(0.5)
        adding.cancel()
        await asyncio.sleep(2)
        assert [entry.id for entry in (await bench.pool(POOL)).values()] == ["c0"]
        await node.delete("c1", CLASSIC)
        assert set(await bench.reserved()) == {"10.0.0.1"}


async def test_writes_have_time_to_be_made_where_adds_are_to_wait_for_nothing() -> None:
    bench = Bench(Settings(add_wait_seconds=0.0))
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [1.0]
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"]


# Ranges that were cut into slices

NO_LONGER_CUT = {"range": "10.0.0.0/16", "network_name": "blue"}


@pytest.mark.parametrize("guarded", [True, False])
async def test_a_range_that_was_cut_is_not_shared_while_nodes_have_slices_of_it(guarded: bool) -> None:
    """Reservations are no help: those of the slices' addresses were never made, whatever the definition says today."""
    bench = Bench()
    was_cut = SLICED | {"enable_overlapping_ranges": False}
    await bench.slices("blue", "10.0.0.0/16", "/24", node_a="10.0.0.0/24")
    await bench.cut(was_cut, "10.0.0.0/24")
    async with bench.machine() as node:
        assert await node.add("earlier", was_cut) == ["10.0.0.1/16"]
        with pytest.raises(NoSlice, match="nodes still have some by NodeSlicePool kube-system/blue"):
            await node.add("later", NO_LONGER_CUT | {"enable_overlapping_ranges": guarded})


async def test_an_empty_shared_pool_that_a_late_request_made_is_not_begun_with_while_nodes_have_slices() -> (
    None
):
    bench = Bench()
    was_cut = SLICED | {"enable_overlapping_ranges": False}
    await bench.slices("blue", "10.0.0.0/16", "/24", node_a="10.0.0.0/24")
    await bench.cut(was_cut, "10.0.0.0/24")
    async with bench.machine() as node:
        assert await node.add("earlier", was_cut) == ["10.0.0.1/16"]
        await bench.put_pool("blue-10.0.0.0-16", "10.0.0.0/16")
        with pytest.raises(NoSlice, match="nodes still have some by NodeSlicePool kube-system/blue"):
            await node.add("later", NO_LONGER_CUT)
        assert await bench.pool("blue-10.0.0.0-16") == {}


async def test_a_range_that_was_cut_is_shared_when_no_node_has_a_slice_any_more() -> None:
    bench = Bench()
    await bench.slices("blue", "10.0.0.0/16", "/24", free="10.0.0.0/24")
    async with bench.machine() as node:
        assert await node.add("later", NO_LONGER_CUT) == ["10.0.0.1/16"]


async def test_slices_under_the_name_that_whereabouts_gives_them_are_in_the_way_of_a_shared_pool_too() -> (
    None
):
    bench = Bench()
    await bench.slices("10.0.0.0-24", "10.0.0.0/24", "/26", free="10.0.0.0/26")
    await bench.slices("mynet", "10.0.0.0/24", "/26", node_b="10.0.0.64/26")
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match="by NodeSlicePool kube-system/mynet"):
            await node.add("c1", CLASSIC)


async def test_slices_of_other_addresses_under_the_configurations_name_are_another_networks() -> None:
    bench = Bench()
    await bench.slices("mynet", "10.9.0.0/16", "/24", node_a="10.9.0.0/24")
    async with bench.machine() as node:
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"]


async def test_a_slice_that_cannot_be_read_may_have_addresses_of_the_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server with another schema than ours lets anything pass."""
    bench = Bench()
    assigned = NodeSliceAllocation(node_name="node-a", slice_range="nonsense")
    garbled = NodeSlicePool(
        metadata=ObjectMeta(name="blue", namespace=SYSTEM_NAMESPACE),
        spec=NodeSlicePoolSpec(range="10.0.0.0/16", slice_size="/24"),
        status=NodeSlicePoolStatus(allocations=[assigned]),
    )
    async with bench.machine() as node:
        await node.networks.require_ready()

        async def get(kind: type[Resource], name: str, _namespace: str) -> NodeSlicePool:
            if kind is NodeSlicePool:
                return garbled
            raise NotFound(name)

        monkeypatch.setattr(node.line, "get", get)
        with pytest.raises(NoSlice, match="nodes still have some"):
            await node.add("c1", NO_LONGER_CUT)
