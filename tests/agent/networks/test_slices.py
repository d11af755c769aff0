"""A node's own pool: written by this node alone, together for all who wait, before anybody is answered."""

import asyncio

import pytest
from msgspec import structs

from agent.networks.network_bench import NODE, SLICED, Bench, owner, ranges
from podtide.agent.networks.errors import NoSlice
from podtide.agent.networks.pool_object import copy_of
from podtide.cluster.port import Conflict, Unavailable
from podtide.core.errors import RangeFull
from podtide.core.networks import pool_copy
from podtide.core.networks.pool_copy import PoolTooLarge
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolStatus
from podtide.resources.metadata_keys import NODE_UID_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node import Node

POOL = "blue-node-a"


async def test_the_first_add_costs_four_calls_and_the_next_two() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.networks.require_ready()
        node.line.forget()
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert node.line.calls == {
            "get IPPool": 1,
            "create Lease": 1,
            "create OverlappingRangeIPReservation": 1,
            "replace IPPool": 1,
        }
        node.line.forget()
        assert await node.add("c2", SLICED) == ["10.0.3.2/16"]
        assert node.line.calls == {"create OverlappingRangeIPReservation": 1, "replace IPPool": 1}
        node.line.forget()
        assert await node.delete("c2", SLICED) == ["10.0.3.2"]
        assert node.line.calls == {"delete OverlappingRangeIPReservation": 1, "replace IPPool": 1}


async def test_what_is_written_says_who_has_the_address() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add(owner("c1", "web", uid="uid-1"), SLICED)
    entry = IPAllocation(id="c1", podref="default/web", ifname="net1", pod_uid="uid-1", configuration="mynet")
    assert await bench.pool(POOL) == {"1": entry}
    assert await bench.reserved() == {"blue-10.0.3.1": "default/web"}


async def test_a_pool_says_how_many_of_its_addresses_are_used_in_the_write_that_changes_them() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        for sandbox in ("c1", "c2"):
            await node.add(sandbox, SLICED)
        pool = await bench.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
        assert pool.status == IPPoolStatus(used=2, capacity=254)
        await node.delete("c1", SLICED)
        pool = await bench.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
        assert pool.status == IPPoolStatus(used=1, capacity=254)


async def test_a_pools_capacity_is_what_pods_may_have_of_the_slice() -> None:
    narrow = SLICED | {"exclude": ["10.0.3.0/25"]}
    bench = Bench()
    await bench.cut(narrow, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", narrow)
        pool = await bench.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
        assert pool.status == IPPoolStatus(used=1, capacity=127)


async def test_forty_adds_at_once_share_a_write_and_so_do_forty_dels() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c0", SLICED)
        node.line.forget()
        given = await asyncio.gather(*(node.add(f"c{number}", SLICED) for number in range(1, 41)))
        assert len({each[0] for each in given}) == 40
        assert node.line.calls == {"create OverlappingRangeIPReservation": 40, "replace IPPool": 1}
        assert len(await bench.pool(POOL)) == 41
        node.line.forget()
        await asyncio.gather(*(node.delete(f"c{number}", SLICED) for number in range(41)))
        assert node.line.calls == {"delete OverlappingRangeIPReservation": 41, "replace IPPool": 1}
        assert await bench.pool(POOL) == {}
        assert await bench.reserved() == {}


async def test_what_comes_while_a_write_is_in_the_air_gathers_for_the_next() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c0", SLICED)
        node.line.before["replace IPPool"] = [1.0]
        first = asyncio.create_task(node.add("c1", SLICED))
        await asyncio.sleep(0.5)
        node.line.forget()
        others = [asyncio.create_task(node.add(f"c{number}", SLICED)) for number in range(2, 12)]
        others.append(asyncio.create_task(node.delete("c0", SLICED)))
        await asyncio.sleep(0.4)
        assert not first.done()
        assert not node.line.calls, "a write is in the air"
        await asyncio.gather(first, *others)
        assert node.line.calls["replace IPPool"] == 1


async def test_no_answer_leaves_before_the_write_is_acknowledged() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        node.line.after["replace IPPool"] = [3.0]
        adding = asyncio.create_task(node.add("c1", SLICED))
        await asyncio.sleep(2.9)
        assert await bench.pool(POOL) != {}
        assert not adding.done()
        assert await adding == ["10.0.3.1/16"]


async def test_a_repeated_add_is_answered_the_same_and_writes_nothing() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        first = await node.add(owner("c1"), SLICED)
        node.line.forget()
        assert await node.add(owner("c1"), SLICED) == first
        assert not node.line.calls


async def test_an_add_repeated_while_the_first_still_waits_gets_the_same_address() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        node.line.before["create OverlappingRangeIPReservation"] = [Unavailable("lost")]
        both = await asyncio.gather(node.add("c1", SLICED), node.add("c1", SLICED))
        assert list(both) == [["10.0.3.1/16"]] * 2
        assert len(await bench.pool(POOL)) == 1


# Where the pool is


async def test_a_node_without_a_slice_is_told_the_numbers() -> None:
    bench = Bench()
    await bench.slices("blue", "10.0.0.0/16", "/24", node_b="10.0.0.0/24", free_1="10.0.1.0/24")
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match=r"no slice of 10\.0\.0\.0/16: 1 of 256 are assigned"):
            await node.add("c1", SLICED)
        assert await node.delete("c1", SLICED) == []


async def test_a_slice_whose_pool_is_not_made_yet_is_worth_another_try() -> None:
    bench = Bench()
    await bench.slices("blue", "10.0.0.0/16", "/24", node_a="10.0.3.0/24")
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match=r"IPPool blue-node-a is not ready yet: try again"):
            await node.add("c1", SLICED)
        await bench.cut(SLICED, "10.0.3.0/24")
        node.line.forget()
        with pytest.raises(NoSlice):
            await node.add("c1", SLICED)
        assert not node.line.calls, "a NodeSlicePool is large: it is not read for every try"
        await asyncio.sleep(2)
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]


async def test_a_network_that_nobody_has_cut_says_so() -> None:
    bench = Bench()
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match="there is no NodeSlicePool kube-system/blue"):
            await node.add("c1", SLICED)
        assert node.line.calls["list NodeSlicePool"] == 0
        assert node.line.calls["get NodeSlicePool"] == 1


async def test_a_network_whose_pools_whereabouts_could_not_name_is_served_under_podtides_names() -> None:
    bench = Bench()
    long = SLICED | {"network_name": "b" * 240}
    await bench.slices("b" * 240, "10.0.0.0/16", "/24", node_a="10.0.3.0/24")
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match="is not ready yet: try again"):
            await node.add("c1", long)
        assert await node.delete("c1", long) == []
        await bench.cut(long, "10.0.3.0/24")
        await asyncio.sleep(2)
        assert await node.add("c1", long) == ["10.0.3.1/16"]


async def test_a_pool_under_the_name_of_whereabouts_is_found_by_the_slice() -> None:
    bench = Bench()
    unnamed = {"range": "10.0.0.0/16", "node_slice_size": "/24"}
    await bench.slices("mynet", "10.0.0.0/16", "/24", node_a="10.0.3.0/24")
    entry = IPAllocation(id="old", podref="default/old", ifname="net1")
    await bench.put_pool("node-a-10.0.3.0-24", "10.0.3.0/24", _1=entry)
    async with bench.machine() as node:
        assert await node.add("c1", unnamed) == ["10.0.3.2/16"]
        assert await node.delete("old", unnamed) == ["10.0.3.1"]


async def test_a_pool_that_is_another_nodes_by_a_coincidence_of_names_is_not_touched() -> None:
    """Network `a` on node `b-c` and network `a-b` on node `c` have pools of one name."""
    bench = Bench()
    ours = {"range": "10.1.0.0/16", "node_slice_size": "/24", "network_name": "a-b"}
    theirs = {"range": "10.0.0.0/16", "node_slice_size": "/24", "network_name": "a"}
    await bench.cut(theirs, "10.0.3.0/24", "b-c")
    async with bench.machine("c") as node:
        with pytest.raises(NoSlice):
            await node.add("c1", ours)
    assert await bench.pool("a-b-c") == {}


async def test_one_who_has_another_range_than_the_pool_is_refused_and_holds_up_nobody() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        wrong, right = await asyncio.gather(
            node.add("c1", SLICED | {"range": "10.9.0.0/16"}), node.add("c2", SLICED), return_exceptions=True
        )
        assert isinstance(wrong, NoSlice)
        assert "two networks of one name have different ranges" in str(wrong)
        assert right == ["10.0.3.1/16"]


async def test_a_range_that_grew_goes_on_with_the_pool_it_has() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    grown = SLICED | {"range": "10.0.0.0/15"}
    async with bench.machine() as node:
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert await node.add("c2", grown) == ["10.0.3.2/15"]
        assert await node.delete("c1", SLICED) == ["10.0.3.1"]
        assert node.line.calls["get IPPool"] == 1


async def test_a_new_node_under_an_old_name_has_no_part_in_the_old_ones_pool_but_its_dels_are_carried_out() -> (
    None
):
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await bench.cluster.delete(Node, NODE)
        new = await bench.join()
        await asyncio.sleep(1)
        with pytest.raises(NoSlice, match="was made for a Node with uid"):
            await node.add("c2", SLICED)
        assert await node.delete("c1", SLICED) == ["10.0.3.1"]
        pool = await bench.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
        annotations = pool.metadata.annotations | {NODE_UID_ANNOTATION: new.metadata.uid}
        metadata = structs.replace(pool.metadata, annotations=annotations)
        await bench.cluster.replace(structs.replace(pool, metadata=metadata), manager="podtide-controller")
        assert await node.add("c3", SLICED) == ["10.0.3.1/16"], "once it is the new one's, it is used"


async def test_a_pool_that_is_being_deleted_gives_nothing_new() -> None:
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.3.0/24")
    kept = structs.replace(pool, metadata=structs.replace(pool.metadata, finalizers=["example.io/keep"]))
    await bench.cluster.replace(kept, manager="test")
    await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match="is being deleted"):
            await node.add("c1", SLICED)


async def test_a_pool_that_was_deleted_and_made_again_is_read_again() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
        with pytest.raises(NoSlice):
            await node.add("c2", SLICED)
        assert [await node.delete(each, SLICED) for each in ("c1", "c2")] == [[], []]
        assert await bench.reserved() == {}, "what was reserved is given up, though the pool is gone"
        await bench.cut(SLICED, "10.0.7.0/24")
        await asyncio.sleep(2)
        assert await node.add("c3", SLICED) == ["10.0.7.1/16"]


# Bounds


async def test_start_end_excludes_and_gateway_hold_within_a_slice() -> None:
    bench = Bench()
    narrow = SLICED | {
        "range_start": "10.0.3.5",
        "range_end": "10.0.3.10",
        "exclude": ["10.0.3.6/31"],
        "gateway": "10.0.3.9",
    }
    await bench.cut(narrow, "10.0.3.0/24")
    async with bench.machine() as node:
        given = [(await node.add(f"c{number}", narrow))[0] for number in range(3)]
        assert given == ["10.0.3.5/16", "10.0.3.8/16", "10.0.3.10/16"]
        with pytest.raises(RangeFull, match="of 3 that may be handed out, pods hold 3"):
            await node.add("c3", narrow)


async def test_a_slices_first_and_last_address_are_never_handed_out() -> None:
    bench = Bench()
    small = {"range": "10.0.0.0/24", "node_slice_size": "/30"}
    await bench.cut(small, "10.0.0.4/30")
    async with bench.machine() as node:
        assert [await node.add(each, small) for each in ("c1", "c2")] == [["10.0.0.5/24"], ["10.0.0.6/24"]]
        with pytest.raises(RangeFull):
            await node.add("c3", small)


async def test_configurations_of_one_network_share_a_pool_each_within_its_own_bounds() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    upper = SLICED | {"range_start": "10.0.3.100"}
    async with bench.machine() as node:
        assert await node.add("c1", SLICED, "one") == ["10.0.3.1/16"]
        assert await node.add("c2", upper, "two") == ["10.0.3.100/16"]
        assert await node.add("c3", SLICED, "one") == ["10.0.3.2/16"]
        assert node.line.calls["get IPPool"] == 1


DUAL = {
    "network_name": "blue",
    "ipRanges": [
        {"range": "10.0.0.0/16", "node_slice_size": "/24"},
        {"range": "fd00:1::/48", "node_slice_size": "/64", "range_start": "fd00:1:0:5::100"},
    ],
}


async def test_each_range_has_a_pool_of_its_own_and_a_pod_gets_one_address_from_each() -> None:
    bench = Bench()
    await bench.cut(DUAL, "10.0.3.0/24")
    await bench.cut(DUAL, "fd00:1:0:5::/64", place=1)
    async with bench.machine() as node:
        assert await node.add("c1", DUAL) == ["10.0.3.1/16", "fd00:1:0:5::100/48"]
        assert set(await bench.pool("blue-fd00-1---48-node-a")) == {"256"}
        assert await node.delete("c1", DUAL) == ["10.0.3.1", "fd00:1:0:5::100"]


async def test_an_add_that_fails_in_one_range_keeps_nothing_of_the_other() -> None:
    bench = Bench()
    await bench.cut(DUAL, "10.0.3.0/24")
    async with bench.machine() as node:
        with pytest.raises(NoSlice):
            await node.add("c1", DUAL)
        assert await bench.pool(POOL) == {}
        assert await bench.reserved() == {}


async def test_an_offset_beyond_64_bits_is_written_and_read_exactly() -> None:
    bench = Bench()
    wide = {"range": "fd00::/32", "node_slice_size": "/40", "range_start": "fd00:0:0:5::1"}
    await bench.cut(wide, "fd00::/40")
    async with bench.machine() as node:
        assert await node.add("c1", wide) == ["fd00:0:0:5::1/32"]
    assert set(await bench.pool(ranges(wide)[0].node_pool_name(NODE, ranges(wide)[0].addresses.network))) == {
        str(5 * 2**64 + 1)
    }
    async with bench.machine() as node:
        assert await node.delete("c1", wide) == ["fd00:0:0:5::1"]


# Others write the pool


async def test_after_repair_wrote_the_pool_it_is_read_again_and_decided_anew() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await node.add("c2", SLICED)
        await bench.edit(POOL, lambda entries: entries.__delitem__("1"))
        assert await node.delete("c2", SLICED) == ["10.0.3.2"]
        assert await bench.pool(POOL) == {}, "what repair took out stays out"
        assert node.networks.counts.conflicts == 1


async def test_a_full_slice_is_full_no_more_when_repair_made_room_in_it() -> None:
    tiny = {"range": "10.0.0.0/24", "node_slice_size": "/30", "enable_overlapping_ranges": False}
    bench = Bench()
    pool = await bench.cut(tiny, "10.0.0.4/30")
    async with bench.machine() as node:
        given = [await node.add(sandbox, tiny) for sandbox in ("c1", "c2")]
        with pytest.raises(RangeFull):
            await node.add("c3", tiny)
        await bench.edit(pool.metadata.name, lambda entries: entries.clear())
        with pytest.raises(RangeFull):
            await node.add("c4", tiny)
        await asyncio.sleep(bench.settings.quarantine_seconds)
        assert [await node.add(sandbox, tiny) for sandbox in ("c4", "c5")] == given


async def test_a_del_of_what_repair_freed_already_succeeds() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await bench.edit(POOL, lambda entries: entries.clear())
        assert await node.delete("c1", SLICED) == []
        assert await bench.reserved() == {}


async def test_unknown_entries_and_annotations_of_others_survive_a_write() -> None:
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.3.0/24")
    entry = IPAllocation(id="x", podref="ns/x")
    await bench.edit(POOL, lambda entries: entries.update({"not an offset": entry}))
    async with bench.machine() as node:
        await node.add("c1", SLICED)
    assert (await bench.pool(POOL))["not an offset"] == entry
    after = await bench.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
    assert after.metadata.annotations == pool.metadata.annotations


@pytest.mark.parametrize(
    "fault", [Unavailable("cut off"), Conflict("somebody was faster")], ids=["unavailable", "conflict"]
)
async def test_a_write_that_fails_is_tried_again_and_answered_when_it_is_in_the_pool(
    fault: Exception,
) -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [fault, fault]
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert set(await bench.pool(POOL)) == {"1"}
        assert await bench.reserved() == {"blue-10.0.3.1": "default/pod-of-c1"}


async def test_a_write_whose_answer_was_lost_is_seen_in_the_pool_and_not_made_twice() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        node.line.after["replace IPPool"] = [Unavailable("the answer was lost")]
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert node.line.calls["replace IPPool"] == 1
        node.line.after["replace IPPool"] = [Unavailable("the answer was lost")]
        await node.delete("c1", SLICED)
        assert await bench.pool(POOL) == {}
        assert await bench.reserved() == {}


# How large an object may be


async def test_a_pool_as_large_as_an_object_may_be_says_so_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_copy, "MOST_BYTES", 2_000)
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        outcomes = await asyncio.gather(
            *(node.add(f"c{number}", SLICED) for number in range(30)), return_exceptions=True
        )
        refused = [each for each in outcomes if isinstance(each, PoolTooLarge)]
        held = len(await bench.pool(POOL))
        assert held == 30 - len(refused)
        assert refused
        assert f"for {held} addresses, and Kubernetes stores no object of more than 2000" in str(refused[0])
        assert "node_slice_size" in str(refused[0])
        assert node.line.calls["create OverlappingRangeIPReservation"] == held, "nothing is reserved in vain"
        await node.delete("c0", SLICED)
        assert await node.add("after", SLICED) == ["10.0.3.1/16"]


async def test_a_new_sandbox_whose_pod_has_an_address_is_refused_where_its_entry_would_grow_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To forget the earlier sandbox instead would free the address by one DEL, while the other may live."""
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add(owner("c1", "web"), SLICED)
        stored = await bench.cluster.get(IPPool, pool.metadata.name, SYSTEM_NAMESPACE)
        monkeypatch.setattr(pool_copy, "MOST_BYTES", copy_of(stored).size + 20)
        with pytest.raises(PoolTooLarge, match="for 1 addresses"):
            await node.add(owner("c2", "web"), SLICED)
        assert [entry.id for entry in (await bench.pool(POOL)).values()] == ["c1"]
        assert await node.delete(owner("c1", "web"), SLICED) == ["10.0.3.1"]
        assert await node.add(owner("c2", "web"), SLICED) == ["10.0.3.1/16"]


async def test_what_a_sandbox_has_in_a_pool_that_is_too_large_already_is_answered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        monkeypatch.setattr(pool_copy, "MOST_BYTES", 1)
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
