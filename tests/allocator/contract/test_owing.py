"""Who is owed is remembered, and served in its turn."""

import pytest

from allocator.contract.harness import CLAIM_SECONDS, COOLDOWN_SECONDS, OpenAllocator, names
from podtide.allocator.errors import SubnetFull


async def test_debts_say_who_how_much_and_since_when(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 10, waiting_pods=2)
        (debt,) = await under.allocator.owed("blue", "pods")
        assert (debt.container, debt.cluster, debt.node, debt.owed, debt.waiting_pods) == (
            "a",
            "east",
            "node-a",
            6,
            2,
        )
        assert debt.since == under.clock.wall()


async def test_nodes_with_waiting_pods_are_served_first_then_the_longest_owed(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        for number, container in enumerate(("a", "b", "c", "d")):
            await under.put(container, 0, generation=1)
            under.clock.pass_by(number)
        await under.put("a", 3, generation=2)
        for container, waiting in (("b", 0), ("c", 1), ("d", 5)):
            under.clock.pass_by(1)
            await under.put(container, 2, generation=2, waiting_pods=waiting)
        assert [debt.container for debt in await under.allocator.owed("blue", "pods")] == ["d", "c", "a", "b"]


async def test_a_newcomer_gets_only_what_earlier_claims_leave(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        first = await under.put("a", 6)
        await under.put("b", 8)
        await under.put("a", 3, generation=2, release=tuple(names(first)[:3]))
        under.clock.pass_by(COOLDOWN_SECONDS + 1)
        with pytest.raises(SubnetFull):
            await under.put("c", 1)
        served = await under.put("b", 8)
        assert (len(served.addresses), served.owed) == (8, 0)


async def test_a_wish_with_more_waiting_pods_goes_before_an_older_claim(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        first = await under.put("a", 6)
        await under.put("b", 8)
        await under.put("a", 3, generation=2, release=tuple(names(first)[:3]))
        urgent = await under.put("c", 1, waiting_pods=1)
        assert len(urgent.addresses) == 1


async def test_a_claim_that_nobody_renews_holds_nobody_up(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        first = await under.put("a", 6)
        await under.put("b", 8)
        await under.put("a", 3, generation=2, release=tuple(names(first)[:3]))
        under.clock.pass_by(CLAIM_SECONDS + 1)
        assert len((await under.put("c", 2)).addresses) == 2


async def test_whoever_wants_less_is_owed_less(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 10)
        await under.put("a", 5, generation=2)
        assert [debt.owed for debt in await under.allocator.owed("blue", "pods")] == [1]
        await under.put("a", 4, generation=3)
        assert await under.allocator.owed("blue", "pods") == ()
        assert (await under.stands()).owed == 0


async def test_the_claims_of_a_node_that_is_gone_end(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 10)
        await under.delete("a")
        assert await under.allocator.owed("blue", "pods") == ()


AHEAD_SECONDS = 400 * 86_400.0


async def test_a_claim_that_was_made_by_a_clock_ahead_holds_nobody_up_beyond_its_time_from_now(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("gone", 0, cluster="west")
        held = await under.put("a", 11)
        under.clock.pass_by(AHEAD_SECONDS)
        await under.put("gone", 5, generation=2, waiting_pods=9, cluster="west")
        under.clock.pass_by(-AHEAD_SECONDS)
        await under.put("a", 7, generation=2, release=tuple(names(held)[:4]))
        under.clock.pass_by(COOLDOWN_SECONDS + 1)
        with pytest.raises(SubnetFull):
            await under.put("newcomer", 2)
        under.clock.pass_by(CLAIM_SECONDS - 1)
        with pytest.raises(SubnetFull):
            await under.put("newcomer", 2)
        under.clock.pass_by(1)
        assert len((await under.put("newcomer", 2)).addresses) == 2


async def test_who_asks_for_debts_finds_those_of_the_future_as_of_now_and_they_lapse(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        under.clock.pass_by(AHEAD_SECONDS)
        await under.put("ahead", 10, waiting_pods=9)
        under.clock.pass_by(-AHEAD_SECONDS)
        (debt,) = await under.allocator.owed("blue", "pods")
        assert debt.since == under.clock.wall()
        under.clock.pass_by(CLAIM_SECONDS)
        with pytest.raises(SubnetFull):
            await under.put("b", 0)
        assert [debt.container for debt in await under.allocator.owed("blue", "pods")] == ["b", "ahead"]
