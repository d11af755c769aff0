"""DEL and GC: everything of a sandbox's interface goes, wherever it is, and nothing else; failures are told."""

import asyncio

import pytest

from agent.networks.network_bench import CLASSIC, SLICED, Bench, owner, understood
from podtide.agent.networks.errors import StorageFailed
from podtide.agent.port import NotAssigned, NotReady, Overtaken
from podtide.cluster.port import NotFound, Throttled, Unavailable
from podtide.core.pool.pool import Owner
from podtide.resources.ip_pool import IPAllocation

POOL = "10.0.0.0-24"
TWO_RANGES = {"ipRanges": [{"range": "10.0.0.0/24"}, {"range": "10.1.0.0/24"}, {"range": "fd00::/64"}]}


async def test_a_del_goes_through_all_ranges_though_one_has_nothing() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", TWO_RANGES)
        await bench.edit(POOL, lambda entries: entries.clear())
        assert await node.delete("c1", TWO_RANGES) == ["10.1.0.1", "fd00::1"]
        assert await bench.pool("fd00---64") == {}
        assert await bench.reserved() == {}


async def test_a_del_of_the_unknown_succeeds() -> None:
    bench = Bench()
    async with bench.machine() as node:
        assert await node.delete("c9", TWO_RANGES) == []
        await node.add("c1", CLASSIC)
        assert await node.delete(owner("c1", ifname="net2"), CLASSIC) == []
        assert await node.delete(owner("c2"), CLASSIC) == []
        assert len(await bench.pool(POOL)) == 1


async def test_a_del_frees_what_memory_knows_of_though_the_configuration_changed() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        assert await node.delete("c1", {"range": "10.7.0.0/24"}) == ["10.0.0.1"]


async def test_a_del_without_a_usable_configuration_frees_what_memory_knows_of() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", TWO_RANGES)
        assert await node.delete("c1", None) == ["10.0.0.1", "10.1.0.1", "fd00::1"]
        assert await bench.reserved() == {}
        assert await node.delete("c1", None) == []


async def test_a_late_del_of_a_replaced_sandbox_takes_nothing_from_the_new_one() -> None:
    bench = Bench()
    async with bench.machine() as node:
        first = await node.add(owner("c1", "web", uid="u"), CLASSIC)
        assert await node.add(owner("c2", "web", uid="u"), CLASSIC) == first
        assert await node.delete(owner("c1", "web", uid="u"), CLASSIC) == []
        assert (await bench.pool(POOL))["1"].id == "c2"
        assert set(await bench.reserved()) == {"10.0.0.1"}
        assert await node.delete(owner("c2", "web", uid="u"), CLASSIC) == ["10.0.0.1"]
        assert await bench.reserved() == {}


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_add_that_comes_late_and_its_del_take_nothing_from_the_sandbox_that_lives(
    restarted: bool,
) -> None:
    bench = Bench()
    living, late = (owner(sandbox, "web", uid="u") for sandbox in ("living", "late"))
    async with bench.machine() as first_agent, bench.machine() as next_agent:
        given = await first_agent.add(living, CLASSIC)
        assert await first_agent.add(late, CLASSIC) == given
        node = next_agent if restarted else first_agent
        assert await node.networks.check(living, understood(CLASSIC)), "it has its address all the time"
        assert await node.delete(late, CLASSIC) == []
        assert (await bench.pool(POOL))["1"] == IPAllocation(
            id="living", podref="default/web", ifname="net1", pod_uid="u"
        )
        assert set(await bench.reserved()) == {"10.0.0.1"}
        assert await node.delete(living, CLASSIC) == ["10.0.0.1"]
        assert await bench.reserved() == {}


async def test_of_two_sandboxes_of_a_pod_that_ask_at_once_neither_takes_the_address_from_the_other() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["create OverlappingRangeIPReservation"] = [Unavailable("away")]
        late, living = (owner(sandbox, "web", uid="u") for sandbox in ("late", "living"))
        given = await asyncio.gather(node.add(late, CLASSIC), node.add(living, CLASSIC))
        assert [*given[0], *given[1]] == ["10.0.0.1/24", "10.0.0.1/24"]
        assert await node.delete(late, CLASSIC) == []
        assert (await bench.pool(POOL))["1"].id == "living"


async def test_a_del_together_with_the_next_sandboxs_add_leaves_that_one_its_reservation() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add(owner("c1", "web", uid="u"), CLASSIC)
        _, given = await asyncio.gather(
            node.delete(owner("c1", "web", uid="u"), CLASSIC), node.add(owner("c2", "web", uid="u"), CLASSIC)
        )
        held = await bench.pool(POOL)
        assert [entry.id for entry in held.values()] == ["c2"]
        assert [f"{name}/24" for name in await bench.reserved()] == given


@pytest.mark.parametrize("fault", [Unavailable("no connection"), Throttled("too many", 0.1)])
async def test_a_storage_error_on_del_is_tried_again_and_then_told(fault: Exception) -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        node.line.before["replace IPPool"] = [fault]
        assert await node.delete("c1", CLASSIC) == ["10.0.0.1"]
        await node.add("c2", CLASSIC)
        node.line.before["replace IPPool"] = [fault] * 1000
        with pytest.raises(StorageFailed, match=rf"could not be freed within 10s: {fault}"):
            await node.delete("c2", CLASSIC)
        assert len(await bench.pool(POOL)) == 1


async def test_a_storage_error_that_somebody_has_to_see_to_is_told_at_once() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["create IPPool"] = [NotFound("the server does not know IPPool")]
        started = bench.clock.monotonic()
        with pytest.raises(
            StorageFailed, match="could not be read or written: the server does not know IPPool"
        ):
            await node.add("c1", CLASSIC)
        assert bench.clock.monotonic() - started < 1.0


# DEL beats ADD


async def test_a_del_cancels_an_add_that_waits_and_frees_what_it_was_about_to_get() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [2.0]
        adding = asyncio.create_task(node.add("c1", CLASSIC))
        await asyncio.sleep(1.0)
        assert await node.delete("c1", CLASSIC) == ["10.0.0.1"]
        with pytest.raises(Overtaken, match="was deleted while its ADD waited"):
            await adding
        assert await bench.pool(POOL) == {}
        assert await bench.reserved() == {}


async def test_an_add_that_arrived_before_its_del_and_comes_after_it_is_void() -> None:
    bench = Bench()
    async with bench.machine() as node:
        arrived = bench.clock.monotonic()
        await asyncio.sleep(0.1)
        await node.delete("c1", CLASSIC)
        with pytest.raises(Overtaken, match="was deleted before its ADD was carried out"):
            await node.networks.add(owner("c1"), understood(CLASSIC), arrived=arrived)
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"], "one that arrives later is not"


async def test_an_add_whose_caller_went_away_takes_nothing() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c0", CLASSIC)
        node.line.before["replace IPPool"] = [1.0]
        first = asyncio.create_task(node.add("c1", CLASSIC))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(node.add("c2", CLASSIC))
        await asyncio.sleep(0.1)
        second.cancel()
        await first
        await asyncio.sleep(1)
        assert {entry.id for entry in (await bench.pool(POOL)).values()} == {"c0", "c1"}


# GC


async def test_gc_frees_what_is_not_alive_of_its_own_network_alone() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        for sandbox, network in (("a1", "one"), ("a2", "one"), ("b1", "two")):
            await node.add(owner(sandbox, network=network), SLICED, network)
        freed = await node.networks.collect_garbage(understood(SLICED, "one"), frozenset({("a1", "net1")}))
        assert freed == 1
        assert {entry.id for entry in (await bench.pool("blue-node-a")).values()} == {"a1", "b1"}
        assert set(await bench.reserved()) == {"blue-10.0.3.1", "blue-10.0.3.3"}


async def test_gc_lets_be_what_other_nodes_and_earlier_agents_wrote() -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await one.add("a", CLASSIC)
        await other.add("b", CLASSIC)
        assert await one.networks.collect_garbage(understood(CLASSIC), frozenset()) == 1
        assert {entry.id for entry in (await bench.pool(POOL)).values()} == {"b"}
    async with bench.machine("node-b") as other:
        assert await other.networks.collect_garbage(understood(CLASSIC), frozenset()) == 0
        whom = owner("b")
        await other.networks.check(whom, understood(CLASSIC))
        assert await other.networks.collect_garbage(understood(CLASSIC), frozenset()) == 1, (
            "a CHECK told whose it is"
        )


# CHECK


async def test_check_tells_what_each_range_has_and_asks_nobody_if_it_knows() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", TWO_RANGES)
        node.line.forget()
        held = await node.networks.check(owner("c1"), understood(TWO_RANGES))
        assert [str(each) for each in held] == ["10.0.0.1", "10.1.0.1", "fd00::1"]
        assert not node.line.calls
    async with bench.machine() as node:
        assert len(await node.networks.check(owner("c1"), understood(TWO_RANGES))) == 3


async def test_check_of_what_lacks_an_address_of_one_range_fails() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        with pytest.raises(NotAssigned, match=r"has no address of 10\.1\.0\.0/24"):
            await node.networks.check(owner("c1"), understood(TWO_RANGES))


# The end


async def test_whoever_waits_when_the_agent_ends_is_told_to_come_again() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [5.0]
        adding = asyncio.create_task(node.add("c1", CLASSIC))
        await asyncio.sleep(1.0)
    with pytest.raises(NotReady, match="the agent stops"):
        await adding
    with pytest.raises(NotReady, match="the agent stops"):
        await node.delete("c1", CLASSIC)
    await asyncio.sleep(10)
    assert await bench.pool(POOL) == {}, "nothing is written by one who has ended"


async def test_what_memory_knows_is_asked_by_interface() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        assert node.networks.knows(Owner("c1", "net1"))
        assert not node.networks.knows(Owner("c1", "eth0"))
        entry = IPAllocation(id="c2", podref="x/y", ifname="eth0")
        await bench.edit(POOL, lambda entries: entries.update({"9": entry}))
        assert not node.networks.knows(Owner("c2", "eth0"))
