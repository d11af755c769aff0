"""Containers: a wish is carried out as far as it can be, once, and nothing is taken that was not given back."""

import asyncio

import pytest

from allocator.contract.harness import (
    COOLDOWN_SECONDS,
    OpenAllocator,
    a_wish,
    addresses,
    everything,
    names,
)
from podtide.allocator.errors import AllocatorError, NoSuchContainer, StaleWish, SubnetFull
from podtide.core.errors import InvalidInput


async def test_a_newcomer_gets_a_primary_and_what_it_wants(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        container = await under.put("a", 3)
        assert len(everything(container)) == 4
        assert (container.wanted, container.owed, container.version) == (3, 0, 1)
        assert (container.gateway, container.cidr) == ("10.1.0.1", "10.1.0.0/28")
        assert (container.cluster, container.node, container.request_uid, container.generation) == (
            "east",
            "node-a",
            "request-a",
            1,
        )
        assert await under.allocator.get_container("a", cluster="east") == container
        assert (await under.stands()).reserved == 4


async def test_a_node_may_start_with_a_primary_alone(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        container = await under.put("a", 0)
        assert (container.addresses, container.owed) == ((), 0)
        assert container.primary.startswith("10.1.0.")


async def test_the_same_wish_again_changes_nothing(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        first = await under.put("a", 3)
        assert await under.put("a", 3) == first
        freed = names(first)[:1]
        second = await under.put("a", 2, generation=2, release=tuple(freed))
        assert await under.put("a", 2, generation=2, release=tuple(freed)) == second


async def test_nothing_is_released_that_was_not_named(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before = await under.put("a", 5)
        after = await under.put("a", 1, generation=2)
        assert (after.addresses, after.version) == (before.addresses, before.version)
        assert (after.wanted, after.owed) == (1, 0)


async def test_what_is_named_is_released_and_nothing_else(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before = await under.put("a", 5)
        after = await under.put("a", 3, generation=2, release=(names(before)[1], names(before)[3]))
        assert names(after) == [names(before)[index] for index in (0, 2, 4)]
        assert after.version == before.version + 1
        assert (await under.stands()).reserved == 4


async def test_releasing_an_unknown_name_changes_nothing(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before, other = await under.put("a", 3), await under.put("b", 3)
        after = await under.put("a", 3, generation=2, release=("no-such-name", *names(other)))
        assert (after.addresses, after.version) == (before.addresses, before.version)
        assert await under.allocator.get_container("b", cluster="east") == other


async def test_a_name_is_never_used_again(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        seen: set[str] = set()
        container = await under.put("a", 4)
        for generation in range(2, 6):
            assert not seen & set(names(container))
            seen |= set(names(container))
            container = await under.put("a", 4, generation, release=tuple(names(container)))
            assert len(container.addresses) == 4


async def test_the_version_grows_with_every_change_and_never_otherwise(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        versions = [
            (await under.put("a", count, generation)).version
            for generation, count in enumerate((2, 2, 4, 1, 5))
        ]
        assert versions[0] == versions[1] < versions[2] == versions[3] < versions[4]


async def test_an_older_wish_comes_too_late(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        newest = await under.put("a", 3, generation=5)
        with pytest.raises(StaleWish):
            await under.put("a", 9, generation=4)
        with pytest.raises(StaleWish):
            await under.put("a", 0, generation=4, release=tuple(names(newest)))
        assert await under.allocator.get_container("a", cluster="east") == newest


async def test_another_request_begins_its_generations_anew(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, generation=5)
        anew = await under.put("a", 4, generation=1, request_uid="another")
        assert (len(anew.addresses), anew.request_uid, anew.generation) == (4, "another", 1)


async def test_a_deleted_id_never_comes_back(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3)
        await under.delete("a")
        await under.delete("a")
        with pytest.raises(StaleWish):
            await under.put("a", 3, generation=9)
        with pytest.raises(NoSuchContainer):
            await under.allocator.get_container("a", cluster="east")


async def test_a_wish_under_way_finds_its_node_deleted(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.delete("a")
        with pytest.raises(StaleWish):
            await under.put("a", 3)
        assert (await under.stands()).reserved == 0


async def test_a_short_subnet_gives_what_there_is_and_owes_the_rest(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        container = await under.put("a", 48)
        assert (len(container.addresses), container.owed, container.wanted) == (4, 44, 48)
        subnet = await under.stands()
        assert (subnet.reserved, subnet.capacity, subnet.owed) == (5, 5, 44)


async def test_without_an_address_for_a_primary_the_subnet_is_full(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        await under.put("a", 4)
        with pytest.raises(SubnetFull):
            await under.put("b", 2)
        assert [debt.container for debt in await under.allocator.owed("blue", "pods")] == ["b"]
        assert (await under.stands()).containers == 1


async def test_a_released_address_goes_to_others_last(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before = await under.put("a", 6)
        await under.put("a", 0, generation=2, release=tuple(names(before)))
        others = await under.put("b", 5)
        assert not everything(others) & addresses(before)
        all_the_rest = await under.put("b", 11, generation=2)
        assert addresses(before) < everything(all_the_rest)


async def test_a_released_address_has_rested_after_its_cooldown(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        before = await under.put("a", 2)
        await under.put("a", 0, generation=2, release=tuple(names(before)))
        under.clock.pass_by(COOLDOWN_SECONDS + 1)
        assert len((await under.put("b", 3)).addresses) == 3


async def test_the_addresses_of_a_node_that_is_gone_are_nobodys_for_a_while(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        gone = await under.put("a", 2)
        await under.delete("a")
        assert (await under.stands()).reserved == 3
        others = await under.put("b", 4)
        assert not everything(others) & everything(gone)
        assert (len(others.addresses), others.owed) == (1, 3)
        await under.pass_quarantine()
        assert len((await under.put("b", 4)).addresses) == 4
        assert (await under.stands()).reserved == 5


async def test_one_cluster_does_not_reach_anothers_containers(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before = await under.put("a", 3)
        with pytest.raises(NoSuchContainer):
            await under.allocator.get_container("a", cluster="west")
        with pytest.raises(NoSuchContainer):
            await under.allocator.delete_container("a", cluster="west")
        with pytest.raises(AllocatorError):
            await under.put("a", 0, 2, cluster="west", release=tuple(names(before)))
        assert await under.allocator.get_container("a", cluster="east") == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": "nœud"},
        {"node": "node'; DROP TABLE containers; --"},
        {"node": "x" * 254},
        {"node": "two\nlines"},
        {"cluster": "o st"},
        {"request_uid": ""},
        {"count": -1},
        {"generation": -1},
        {"waiting_pods": -1},
    ],
    ids=str,
)
async def test_a_wish_that_no_node_can_have_is_refused(
    open_allocator: OpenAllocator, wrong: dict[str, object]
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        with pytest.raises(InvalidInput):
            await under.put(**{"container_id": "a", "count": 3, **wrong})  # type: ignore[arg-type]  # it is wrong on purpose
        assert (await under.stands()).reserved == 0


async def test_wishes_at_the_same_time_share_no_address(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        wishes = [a_wish(f"n{number}", 3) for number in range(16)]
        containers = await asyncio.gather(
            *(under.allocator.put_container(wish) for wish in (*wishes, *wishes))
        )
        latest = {container.id: container for container in containers}
        given = [ip for container in latest.values() for ip in everything(container)]
        subnet = await under.stands()
        assert len(given) == len(set(given)) == subnet.reserved <= subnet.capacity == 61
