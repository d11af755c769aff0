"""What a subnet's batch is decided from: every container once, by what it states and takes, at one instant."""

import asyncio

import pytest
from msgspec.structs import replace

from allocator.contract.harness import AllocatorUnderTest, OpenAllocator, names
from podtide.allocator.errors import NoSuchSubnet, StaleWish, SubnetFull
from podtide.allocator.subnets import Bounds, ClusterBounds
from podtide.core.errors import InvalidInput
from podtide.core.subnet.statement import StatedDemand

FOUR = StatedDemand(low=1, high=8, demand=4, batch=16, buffer="0.5", max_ips=250, primaries=1)
NINE = replace(FOUR, low=9, high=24, demand=9)
NOTHING = StatedDemand()
WITHIN = Bounds(batch=16, buffer="0.5", lower="0.8", upper="0.9")


async def counts(under: AllocatorUnderTest) -> dict[tuple[StatedDemand, int], int]:
    """How many containers state and take what."""
    demand = await under.allocator.demand("blue", "pods")
    assert demand.subnet == await under.stands()
    found = {(alike.stated, alike.taken): alike.containers for alike in demand.alike}
    assert len(found) == len(demand.alike), "each sort once"
    return found


async def test_a_subnet_without_containers_has_no_demand(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        assert await counts(under) == {}
        assert (await under.allocator.demand("blue", "pods")).bounds == ()


async def test_a_container_is_counted_by_what_it_states_and_takes(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        await under.put("a", 7, stated=FOUR)
        await under.put("b", 7, stated=FOUR)
        await under.put("c", 0)
        assert await counts(under) == {(FOUR, 8): 2, (NOTHING, 1): 1}
        await under.put("b", 12, 2, stated=NINE)
        assert await counts(under) == {(FOUR, 8): 1, (NINE, 13): 1, (NOTHING, 1): 1}


async def test_what_a_container_holds_counts_until_it_gives_it_back(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await under.put("a", 7, stated=FOUR)
        await under.put("a", 2, 2, stated=FOUR)
        assert await counts(under) == {(FOUR, 8): 1}
        await under.put("a", 2, 3, stated=FOUR, release=tuple(names(held)[:5]))
        assert await counts(under) == {(FOUR, 3): 1}


async def test_what_a_container_asks_for_counts_before_it_has_it(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 30, stated=FOUR)
        assert await counts(under) == {(FOUR, 31): 1}


async def test_a_newcomer_that_waits_for_its_primary_is_counted_once(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 4)
        for _ in range(2):
            with pytest.raises(SubnetFull):
                await under.put("b", 3, stated=FOUR)
            assert await counts(under) == {(NOTHING, 5): 1, (FOUR, 4): 1}
        await under.delete("b")
        assert await counts(under) == {(NOTHING, 5): 1}


async def test_a_node_that_is_gone_is_counted_no_more(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, stated=FOUR)
        for _ in range(2):
            await under.delete("a")
            assert await counts(under) == {}
        with pytest.raises(StaleWish):
            await under.put("a", 3, 2, stated=FOUR)
        assert await counts(under) == {}


async def test_the_same_wish_again_changes_no_count(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        for _ in range(3):
            await under.put("a", 3, stated=FOUR, statement_number=2)
            assert await counts(under) == {(FOUR, 4): 1}


async def test_clusters_that_share_a_subnet_are_counted_together(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        await under.subnet("10.2.0.0/26", name="others")
        await under.put("a", 3, stated=FOUR)
        await under.put("b", 3, stated=FOUR, cluster="west")
        await under.put("c", 3, stated=FOUR, subnet="others")
        assert await counts(under) == {(FOUR, 4): 2}
        await under.allocator.delete_container("b", cluster="west")
        assert await counts(under) == {(FOUR, 4): 1}


async def test_many_calls_at_once_are_each_counted(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        await asyncio.gather(
            *(under.put(f"n{number}", 3, stated=(FOUR, NINE)[number % 2]) for number in range(20))
        )
        assert await counts(under) == {(FOUR, 4): 10, (NINE, 4): 10}
        await asyncio.gather(
            *(under.put(f"n{number}", 5, 2, stated=NINE) for number in range(0, 20, 4)),
            *(under.delete(f"n{number}") for number in range(1, 20, 4)),
        )
        assert await counts(under) == {(FOUR, 4): 5, (NINE, 6): 5, (NINE, 4): 5}


async def test_a_newer_generation_states_anew_whatever_the_number(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, stated=FOUR, statement_number=7)
        await under.put("a", 3, 2, stated=NINE, statement_number=1)
        assert await counts(under) == {(NINE, 4): 1}


async def test_of_one_generation_the_higher_number_is_the_newer_statement(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, stated=FOUR, statement_number=1)
        await under.put("a", 3, stated=NINE, statement_number=2)
        assert await counts(under) == {(NINE, 4): 1}
        await under.put("a", 3, stated=FOUR, statement_number=1)
        await under.put("a", 3)
        assert await counts(under) == {(NINE, 4): 1}


async def test_of_one_generation_and_number_the_later_statement_counts(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, stated=FOUR)
        await under.put("a", 3, stated=NINE)
        assert await counts(under) == {(NINE, 4): 1}


async def test_a_wish_with_an_older_statement_is_carried_out_all_the_same(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await under.put("a", 5, stated=NINE, statement_number=2)
        left = await under.put("a", 3, stated=FOUR, statement_number=1, release=tuple(names(held)[:2]))
        assert names(left) == names(held)[2:]
        assert await counts(under) == {(NINE, 4): 1}


async def test_another_request_object_states_anew_whatever_the_number(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, stated=FOUR, statement_number=7)
        await under.put("a", 3, request_uid="made-again", stated=NINE)
        assert await counts(under) == {(NINE, 4): 1}
        with pytest.raises(StaleWish):
            await under.put("a", 3, 9, stated=FOUR, statement_number=9)
        assert await counts(under) == {(NINE, 4): 1}


async def test_statements_that_mean_the_same_are_counted_together(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, stated=FOUR)
        await under.put("b", 3, stated=replace(FOUR, buffer="1/2"))
        await under.put("c", 0)
        await under.put("d", 0, stated=NOTHING)
        assert await counts(under) == {(FOUR, 4): 2, (NOTHING, 1): 2}


async def test_the_addresses_of_removed_nodes_are_quarantined_and_told(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3)
        await under.put("b", 4)
        assert (await under.stands()).quarantined == 0
        await under.delete("a")
        await under.delete("a")
        assert ((await under.stands()).quarantined, (await under.stands()).reserved) == (4, 9)
        await under.pass_quarantine()
        settled = (await under.allocator.demand("blue", "pods")).subnet
        assert (settled.quarantined, settled.reserved) == (0, 5)


async def test_growing_a_subnet_keeps_its_demand(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 3, stated=FOUR)
        await under.allocator.set_bounds("blue", "pods", cluster="east", bounds=WITHIN)
        await under.allocator.grow_subnet("blue", "pods", ("10.1.0.8/29",))
        assert await counts(under) == {(FOUR, 4): 1}
        assert len((await under.allocator.demand("blue", "pods")).bounds) == 1


async def test_a_subnet_that_is_made_again_begins_without_demand(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 4, stated=FOUR)
        with pytest.raises(SubnetFull):
            await under.put("waits", 4, stated=FOUR)
        await under.allocator.set_bounds("blue", "pods", cluster="east", bounds=WITHIN)
        await under.delete("a")
        await under.pass_quarantine()
        await under.allocator.remove_subnet("blue", "pods")
        await under.subnet("10.1.0.0/29")
        assert await counts(under) == {}
        await under.put("b", 1, stated=FOUR)
        demand = await under.allocator.demand("blue", "pods")
        assert (demand.bounds, demand.subnet.in_force.serial) == ((), 0)


async def test_bounds_are_those_of_clusters_that_have_containers(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        pinned = replace(WITHIN, fixed=4)
        for cluster, bounds in (("west", pinned), ("east", WITHIN), ("north", WITHIN)):
            for _ in range(2):
                await under.allocator.set_bounds("blue", "pods", cluster=cluster, bounds=bounds)
        await under.put("a", 1)
        await under.put("b", 1, cluster="west")
        east = ClusterBounds("east", WITHIN)
        assert (await under.allocator.demand("blue", "pods")).bounds == (east, ClusterBounds("west", pinned))
        wider = replace(WITHIN, batch=32, buffer="1/3", min_batch=2)
        await under.allocator.set_bounds("blue", "pods", cluster="west", bounds=wider)
        assert (await under.allocator.demand("blue", "pods")).bounds == (east, ClusterBounds("west", wider))
        await under.allocator.delete_container("b", cluster="west")
        assert (await under.allocator.demand("blue", "pods")).bounds == (east,)


@pytest.mark.parametrize(
    "bounds",
    [
        replace(WITHIN, batch=0),
        replace(WITHIN, buffer="-1"),
        replace(WITHIN, buffer="much"),
        replace(WITHIN, buffer="1e-70"),
        replace(WITHIN, buffer="1e20"),
        replace(WITHIN, lower="0.95"),
        replace(WITHIN, upper="1"),
        replace(WITHIN, min_batch=17),
        replace(WITHIN, fixed=0),
        replace(WITHIN, batch=2**70),
    ],
)
async def test_bounds_that_leave_no_batch_are_refused(open_allocator: OpenAllocator, bounds: Bounds) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 1)
        with pytest.raises(InvalidInput):
            await under.allocator.set_bounds("blue", "pods", cluster="east", bounds=bounds)
        assert (await under.allocator.demand("blue", "pods")).bounds == ()


@pytest.mark.parametrize(
    "stated",
    [
        replace(FOUR, low=9),
        replace(FOUR, low=-1),
        replace(FOUR, high=70_000),
        replace(FOUR, demand=-1),
        replace(FOUR, batch=-1),
        replace(FOUR, max_ips=0),
        replace(FOUR, primaries=-1),
        replace(FOUR, buffer="half"),
        replace(FOUR, buffer="-0.5"),
        replace(FOUR, buffer="1e30"),
        replace(FOUR, buffer=""),
    ],
)
async def test_a_statement_that_no_node_can_mean_is_refused(
    open_allocator: OpenAllocator, stated: StatedDemand
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        with pytest.raises(InvalidInput):
            await under.put("a", 1, stated=stated)
        assert await counts(under) == {}


async def test_the_demand_of_a_subnet_that_is_not_there_is_refused(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        with pytest.raises(NoSuchSubnet):
            await under.allocator.demand("blue", "pods")
        with pytest.raises(NoSuchSubnet):
            await under.allocator.set_bounds("blue", "pods", cluster="east", bounds=WITHIN)
