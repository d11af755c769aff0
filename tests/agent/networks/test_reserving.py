"""Addresses that ranges have in common: reserved before they are written down, given up after they are freed."""

import asyncio

import pytest

from agent.networks.network_bench import CLASSIC, SLICED, Bench, owner
from podtide.agent.networks.errors import StorageFailed
from podtide.cluster.port import Forbidden, Unavailable
from podtide.core.errors import RangeFull
from podtide.resources.ip_pool import IPAllocation
from podtide.resources.metadata_keys import NODE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

POOL = "10.0.0.0-24"


async def test_an_address_that_is_reserved_elsewhere_is_passed_over() -> None:
    bench = Bench()
    await bench.put_reservation("10.0.0.1", "other/pod")
    async with bench.machine() as node:
        assert await node.add("c1", CLASSIC) == ["10.0.0.2/24"]
        assert set(await bench.pool(POOL)) == {"2"}
        node.line.forget()
        await node.add("c2", CLASSIC)
        assert node.line.calls["create OverlappingRangeIPReservation"] == 1, "it is known by now"


async def test_a_reservation_says_which_node_made_it() -> None:
    bench = Bench()
    async with bench.machine("node-a") as node:
        await node.add("c1", CLASSIC)
        made = await bench.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert made.metadata.annotations == {NODE_ANNOTATION: "node-a"}


async def test_ranges_that_overlap_never_give_one_address_twice() -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        given = [(await one.add("a", {"range": "10.0.0.0/24"}))[0].partition("/")[0]]
        given.append((await other.add("b", {"range": "10.0.0.0/16"}))[0].partition("/")[0])
        assert given == ["10.0.0.1", "10.0.0.2"]


async def test_without_the_guard_nothing_is_reserved_and_nothing_asked() -> None:
    bench = Bench()
    unguarded = CLASSIC | {"enable_overlapping_ranges": False}
    await bench.put_reservation("10.0.0.1", "other/pod")
    async with bench.machine() as node:
        assert await node.add("c1", unguarded) == ["10.0.0.1/24"]
        await node.delete("c1", unguarded)
        assert not [call for call in node.line.calls if "OverlappingRange" in call]


async def test_what_was_reserved_elsewhere_is_tried_again_after_a_while() -> None:
    bench = Bench()
    tiny = {"range": "10.0.0.0/30"}
    await bench.put_reservation("10.0.0.1", "other/pod")
    async with bench.machine() as node:
        assert await node.add("c1", tiny) == ["10.0.0.2/30"]
        with pytest.raises(RangeFull, match="pods hold 1 and 1 are reserved elsewhere"):
            await node.add("c2", tiny)
        await bench.cluster.delete(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)

        await asyncio.sleep(60)
        assert await node.add("c2", tiny) == ["10.0.0.1/30"]


async def test_a_reservation_that_a_crash_left_is_taken_over_by_the_same_pod() -> None:
    bench = Bench()
    await bench.put_reservation("10.0.0.1", "default/web", ifname="net1", container_id="c1", pod_uid="uid-1")
    async with bench.machine() as node:
        assert await node.add(owner("c2", "web", uid="uid-1"), CLASSIC) == ["10.0.0.1/24"]
        taken = await bench.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert taken.spec.container_id == "c2"


@pytest.mark.parametrize(
    "spec",
    [
        {"podref": "default/web"},
        {"podref": "default/web", "ifname": "net1", "container_id": "c1", "pod_uid": "uid-0"},
        {"podref": "default/web", "ifname": "net2", "container_id": "c2", "pod_uid": "uid-1"},
    ],
    ids=["of an unknown pod of that name", "of an earlier pod of that name", "of another interface"],
)
async def test_a_reservation_that_may_be_anothers_is_not_taken_over(spec: dict[str, str]) -> None:
    bench = Bench()
    await bench.put_reservation("10.0.0.1", **spec)
    async with bench.machine() as node:
        assert await node.add(owner("c2", "web", uid="uid-1"), CLASSIC) == ["10.0.0.2/24"]
        assert (await bench.reserved())["10.0.0.1"] == "default/web"


async def test_a_reservation_by_whereabouts_is_the_pods_when_the_pool_says_so() -> None:
    bench = Bench()
    await bench.put_reservation("10.0.0.1", "default/web")
    entry = IPAllocation(id="c1", podref="default/web", ifname="net1")
    await bench.put_pool(POOL, "10.0.0.0/24", _1=entry)
    async with bench.machine() as node:
        assert await node.add(owner("c1", "web"), CLASSIC) == ["10.0.0.1/24"]
        assert await node.delete(owner("c1", "web"), CLASSIC) == ["10.0.0.1"]
        assert await bench.reserved() == {}


async def test_an_allocation_that_lacks_its_reservation_gets_one_with_the_next_add() -> None:
    bench = Bench()
    entry = IPAllocation(id="c1", podref="default/web", ifname="net1")
    await bench.put_pool(POOL, "10.0.0.0/24", _1=entry)
    async with bench.machine() as node:
        assert await node.add(owner("c1", "web"), CLASSIC) == ["10.0.0.1/24"]
        assert await bench.reserved() == {"10.0.0.1": "default/web"}


async def test_an_allocation_whose_address_is_reserved_for_another_pod_is_given_up_for_a_new_one() -> None:
    bench = Bench()
    await bench.put_reservation("10.0.0.1", "other/pod")
    entry = IPAllocation(id="c1", podref="default/web", ifname="net1")
    await bench.put_pool(POOL, "10.0.0.0/24", _1=entry)
    async with bench.machine() as node:
        assert await node.add(owner("c1", "web"), CLASSIC) == ["10.0.0.2/24"]
        assert set(await bench.pool(POOL)) == {"2"}
        [said] = [line for line in bench.journal.lines() if "giving another one" in line["event"]]
        assert (said["address"], said["pod"]) == ("10.0.0.1", "default/web")


async def test_a_reservation_whose_answer_was_lost_is_seen_to_be_ours() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.after["create OverlappingRangeIPReservation"] = [Unavailable("the answer was lost")]
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"]
        assert await bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}


async def test_one_who_cannot_reserve_does_not_hold_up_the_others() -> None:

    bench = Bench()
    async with bench.machine() as node:
        node.line.before["create OverlappingRangeIPReservation"] = [Unavailable("no"), None, None]
        given = await asyncio.gather(*(node.add(f"c{number}", CLASSIC) for number in range(3)))
        assert len({each[0] for each in given}) == 3
        assert len(await bench.pool(POOL)) == 3


async def test_one_who_may_not_reserve_is_told_so_and_has_nothing() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["create OverlappingRangeIPReservation"] = [Forbidden("not for you")]
        with pytest.raises(StorageFailed, match=r"10\.0\.0\.1 cannot be reserved: not for you"):
            await node.add("c1", CLASSIC)
        assert await bench.pool(POOL) == {}


async def test_a_dels_reservation_is_given_up_after_the_pools_write_and_not_before() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        node.line.before["replace IPPool"] = [Forbidden("read-only")]
        with pytest.raises(StorageFailed, match="read-only"):
            await node.delete("c1", CLASSIC)
        assert await bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}
        assert await node.delete("c1", CLASSIC) == ["10.0.0.1"]
        assert await bench.reserved() == {}


async def test_a_reservation_that_cannot_be_given_up_fails_the_del_until_it_is() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        node.line.before["delete OverlappingRangeIPReservation"] = [Unavailable("away")]
        with pytest.raises(StorageFailed, match="could not be deleted: away"):
            await node.delete("c1", CLASSIC)
        assert await node.add("c2", CLASSIC) == ["10.0.0.2/24"], "nobody gets it while it is reserved"
        await node.delete("c1", CLASSIC)
        assert await bench.reserved() == {"10.0.0.2": "default/pod-of-c2"}
        assert await node.add("c3", CLASSIC) == ["10.0.0.1/24"]


async def test_a_del_after_a_restart_gives_up_what_the_pool_says_was_reserved() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
    async with bench.machine() as node:
        assert await node.delete("c1", SLICED) == ["10.0.3.1"]
        assert await bench.reserved() == {}


async def test_a_reservation_that_became_anothers_is_not_given_up() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        ours = await bench.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        await bench.cluster.delete(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        await bench.put_reservation("10.0.0.1", "other/pod")
        await node.delete("c1", CLASSIC)
        assert await bench.reserved() == {"10.0.0.1": "other/pod"}, "by uid, it is another one"
    async with bench.machine() as node:
        await bench.edit(
            POOL, lambda entries: entries.update({"1": IPAllocation(id="c1", podref=ours.spec.podref)})
        )
        await node.delete(owner("c1", ifname=""), CLASSIC)
        assert await bench.reserved() == {"10.0.0.1": "other/pod"}, "by its pod, it is another's"


async def test_an_add_after_a_del_that_came_to_nothing_keeps_its_reservation() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        node.line.before["replace IPPool"] = [Forbidden("read-only")]
        with pytest.raises(StorageFailed):
            await node.delete("c1", CLASSIC)
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"]
        await node.delete("c2", CLASSIC)
        assert await bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}
        await node.delete("c1", CLASSIC)
        assert await bench.reserved() == {}


async def test_what_repair_took_back_is_to_be_had_again_once_no_sandbox_can_have_it() -> None:
    """Who struck it off need not have been repair: the pool may be of before the address was given."""
    small = {"range": "10.0.0.0/30"}
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", small)
        await bench.edit("10.0.0.0-30", lambda entries: entries.clear())
        await bench.cluster.delete(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert await node.add("c2", small) == ["10.0.0.2/30"]
        with pytest.raises(RangeFull):
            await node.add("c3", small)
        await asyncio.sleep(bench.settings.quarantine_seconds)
        assert await node.add("c3", small) == ["10.0.0.1/30"]


async def test_a_reservation_that_vanished_while_it_was_looked_at_is_tried_again() -> None:
    bench = Bench()
    await bench.put_reservation("10.0.0.1", "other/pod")
    async with bench.machine() as node:
        node.line.before["get OverlappingRangeIPReservation"] = [0.5]

        adding = asyncio.create_task(node.add("c1", CLASSIC))
        await asyncio.sleep(0.2)
        await bench.cluster.delete(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert await adding == ["10.0.0.1/24"]
