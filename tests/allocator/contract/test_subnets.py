"""Subnets: what they count, how they grow, and when they may go."""

import pytest

from allocator.contract.harness import OpenAllocator
from podtide.allocator.errors import NoSuchSubnet, SubnetExists, SubnetInUse
from podtide.allocator.subnets import SubnetSpec
from podtide.core.errors import InvalidInput


async def test_a_subnet_counts_what_can_be_reserved(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        subnet = await under.subnet("10.1.0.0/28")
        assert (subnet.capacity, subnet.reserved, subnet.containers, subnet.owed) == (13, 0, 0, 0)
        assert subnet.gateways == ("10.1.0.1",)
        assert await under.stands() == subnet


async def test_what_is_kept_back_is_nobodys_and_does_not_count(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        spec = SubnetSpec(
            network="blue",
            name="pods",
            cidrs=("10.1.0.0/28",),
            gateways=("10.1.0.14",),
            keep_back=("10.1.0.5",),
            keep_back_first=2,
        )
        subnet = await under.allocator.add_subnet(spec)
        assert (subnet.capacity, subnet.gateways) == (10, ("10.1.0.14",))
        all_of_it = await under.put("a", 9)
        given = {all_of_it.primary, *(address.ip for address in all_of_it.addresses)}
        assert given == {f"10.1.0.{last}" for last in (3, 4, 6, 7, 8, 9, 10, 11, 12, 13)}


async def test_the_same_subnet_again_answers_the_one_there(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3)
        assert await under.subnet() == await under.stands()
        assert (await under.stands()).reserved == 4


async def test_a_new_subnet_has_a_name_that_a_label_can_have(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        assert (await under.subnet(name="p" * 63)).name == "p" * 63
        with pytest.raises(InvalidInput, match="has 64 characters: give a new one at most 63"):
            await under.subnet("10.2.0.0/28", name="p" * 64)


async def test_a_name_that_is_taken_by_another_definition_is_refused(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        before = await under.subnet("10.1.0.0/28")
        with pytest.raises(SubnetExists):
            await under.subnet("10.2.0.0/28")
        assert await under.stands() == before


async def test_subnets_of_one_network_do_not_overlap(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        with pytest.raises(SubnetExists):
            await under.subnet("10.1.0.128/25", name="others")
        assert [subnet.name for subnet in await under.allocator.list_subnets()] == ["pods"]
        assert (await under.subnet("10.1.0.128/25", network="green")).capacity == 125


async def test_a_subnet_grows_by_cidrs(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        grown = await under.allocator.grow_subnet("blue", "pods", ("10.1.0.8/29",))
        assert (grown.cidrs, grown.capacity) == (("10.1.0.0/29", "10.1.0.8/29"), 5 + 5)
        assert len((await under.put("a", 9)).addresses) == 9


async def test_growing_by_what_it_has_changes_nothing(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        before = await under.subnet("10.1.0.0/29")
        assert await under.allocator.grow_subnet("blue", "pods", ("10.1.0.0/29",)) == before


async def test_a_subnet_does_not_grow_into_another(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        before = await under.subnet("10.1.0.0/29")
        await under.subnet("10.1.0.8/29", name="others")
        with pytest.raises(SubnetExists):
            await under.allocator.grow_subnet("blue", "pods", ("10.1.0.0/28",))
        assert await under.stands() == before


@pytest.mark.parametrize("cidr", ["10.0.0.0/33", "nonsense", "10.0.0.300/24", "'; DROP TABLE subnets; --"])
async def test_what_is_no_cidr_is_refused(open_allocator: OpenAllocator, cidr: str) -> None:
    async with open_allocator() as under:
        with pytest.raises(InvalidInput):
            await under.subnet(cidr)
        assert await under.allocator.list_subnets() == ()


async def test_a_subnet_that_is_not_there_is_said_to_be_so(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        for ask in (
            under.allocator.get_subnet("blue", "pods"),
            under.allocator.grow_subnet("blue", "pods", ("10.0.0.0/24",)),
            under.allocator.owed("blue", "pods"),
            under.allocator.utilization("blue", "pods"),
            under.allocator.history("blue", "pods", since=0, until=2e9),
            under.put("a", 3),
        ):
            with pytest.raises(NoSuchSubnet):
                await ask


async def test_an_empty_subnet_is_removed_and_one_that_is_gone_is_removed_already(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.allocator.remove_subnet("blue", "pods")
        await under.allocator.remove_subnet("blue", "pods")
        assert await under.allocator.list_subnets() == ()


async def test_a_subnet_is_not_removed_while_anything_in_it_is_reserved(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 0)
        with pytest.raises(SubnetInUse):
            await under.allocator.remove_subnet("blue", "pods")
        await under.delete("a")
        with pytest.raises(SubnetInUse):
            await under.allocator.remove_subnet("blue", "pods")
        await under.pass_quarantine()
        await under.allocator.remove_subnet("blue", "pods")


async def test_subnets_are_listed_by_network_and_name(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        for network, name, cidr in (
            ("green", "a", "10.1.0.0/28"),
            ("blue", "b", "10.2.0.0/28"),
            ("blue", "a", "10.3.0.0/28"),
        ):
            await under.subnet(cidr, name=name, network=network)
        listed = await under.allocator.list_subnets()
        assert [(subnet.network, subnet.name) for subnet in listed] == [
            ("blue", "a"),
            ("blue", "b"),
            ("green", "a"),
        ]
        assert await under.allocator.list_subnets("blue") == listed[:2]
        assert await under.allocator.list_subnets("red") == ()
