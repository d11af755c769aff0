"""The CIDRs of a subnet: each has its own gateway, can be let drain, and leaves the subnet when it is empty."""

import pytest
from msgspec import structs

from allocator.contract.harness import (
    COOLDOWN_SECONDS,
    QUARANTINE_SECONDS,
    AllocatorUnderTest,
    OpenAllocator,
    end_due,
    everything,
    names,
)
from podtide.allocator.containers import CidrInUse
from podtide.allocator.errors import NoSuchSubnet, SubnetInUse
from podtide.allocator.subnets import CidrHolder, Subnet, SubnetSpec
from podtide.core.errors import InvalidInput
from podtide.core.subnet.grants import primary_name

FIRST, LATER = "10.1.0.0/29", "10.9.0.0/28"
"""With 5 and 13 addresses to give."""


async def two_cidrs(under: AllocatorUnderTest) -> Subnet:
    await under.subnet(FIRST)
    return await under.allocator.grow_subnet("blue", "pods", (LATER,))


async def shrink(under: AllocatorUnderTest, *cidrs: str, at_once: bool = False) -> Subnet:
    return await under.allocator.shrink_subnet("blue", "pods", cidrs, at_once=at_once)


def in_first(ips: set[str]) -> set[str]:
    return {ip for ip in ips if ip.startswith("10.1.")}


async def test_each_cidr_has_its_own_gateway_and_gives_it_to_nobody(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.allocator.add_subnet(
            SubnetSpec(network="blue", name="pods", cidrs=(FIRST, "10.2.0.0/29"), gateways=("10.2.0.6",))
        )
        grown = await under.allocator.grow_subnet("blue", "pods", (LATER, "10.8.0.0/29"), ("10.8.0.4",))
        assert grown.cidrs == (FIRST, "10.2.0.0/29", LATER, "10.8.0.0/29")
        assert grown.gateways == ("10.1.0.1", "10.2.0.6", "10.9.0.1", "10.8.0.4")
        assert grown.capacity == 5 + 5 + 13 + 5
        all_of_it = await under.put("a", 100)
        assert len(everything(all_of_it)) == grown.capacity
        assert not everything(all_of_it) & {*grown.gateways}


async def test_a_container_shows_the_cidrs_of_its_addresses_with_their_gateways(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        small = await under.put("a", 2)
        assert small.cidrs == (CidrInUse(FIRST, "10.1.0.1"),)
        large = await under.put("b", 3)
        assert (large.cidr, large.gateway) == (FIRST, "10.1.0.1")
        assert large.cidrs == (CidrInUse(FIRST, "10.1.0.1"), CidrInUse(LATER, "10.9.0.1"))
        other = await under.put("c", 1)
        assert (other.cidr, other.gateway) == (LATER, "10.9.0.1")
        assert other.cidrs == (CidrInUse(LATER, "10.9.0.1"),)


async def test_a_gateway_that_is_in_none_of_the_cidrs_is_refused(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        before = await under.subnet(FIRST)
        with pytest.raises(InvalidInput):
            await under.allocator.grow_subnet("blue", "pods", (LATER,), ("10.1.0.2",))
        assert await under.stands() == before


async def test_the_gateway_of_a_cidr_can_be_moved_to_an_address_that_is_free(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        held = await under.put("a", 2)
        with pytest.raises(SubnetInUse):
            await under.allocator.grow_subnet("blue", "pods", (FIRST,), (held.addresses[0].ip,))
        moved = await under.allocator.grow_subnet("blue", "pods", (FIRST,), ("10.1.0.6",))
        assert (moved.gateways, moved.capacity) == (("10.1.0.6", "10.9.0.1"), 5 + 13)
        assert await under.allocator.grow_subnet("blue", "pods", (FIRST,), ("10.1.0.6",)) == moved
        rest = await under.put("b", 100)
        assert "10.1.0.1" in everything(rest)
        assert "10.1.0.6" not in everything(rest)


async def test_a_gateway_for_which_others_would_be_kept_back_is_refused_by_what_stands_in_its_way(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        spec = SubnetSpec(
            network="blue", name="pods", cidrs=(FIRST,), gateways=("10.1.0.6",), keep_back_first=1
        )
        await under.allocator.add_subnet(spec)
        assert "10.1.0.2" in everything(await under.put("a", 3))
        with pytest.raises(
            SubnetInUse, match=r"with gateway 10\.1\.0\.1 the first 1 .* and 10\.1\.0\.2 among"
        ):
            await under.allocator.grow_subnet("blue", "pods", (FIRST,), ("10.1.0.1",))
        with pytest.raises(SubnetInUse, match=r"10\.1\.0\.2 of subnet blue/pods is a node's"):
            await under.allocator.grow_subnet("blue", "pods", (FIRST,), ("10.1.0.2",))


async def test_a_cidr_is_named_exactly_to_grow_by_and_to_shrink_by(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        for change in (under.allocator.grow_subnet, under.allocator.shrink_subnet):
            with pytest.raises(
                InvalidInput,
                match=r"10\.1\.0\.1/29 is not the first address of its network: write 10\.1\.0\.0/29",
            ):
                await change("blue", "pods", ("10.1.0.1/29",))


async def test_nothing_is_granted_of_a_cidr_that_drains(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        before = await under.put("a", 1)
        draining = await shrink(under, FIRST)
        assert (draining.cidrs, draining.draining, draining.draining_reserved) == (
            (FIRST, LATER),
            (FIRST,),
            2,
        )
        assert (draining.capacity, draining.reserved) == (13 + 2, 2), (
            "what is held counts, what is free does not"
        )
        after = await under.put("a", 100, 2)
        assert everything(before) <= everything(after)
        assert in_first(everything(after)) == everything(before)
        assert len(everything(after)) == 2 + 13
        assert (after.owed, (await under.stands()).owed) == (86, 86)


async def test_a_cidr_leaves_when_the_last_address_of_it_is_given_back(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        await under.put("z", 0)
        held = await under.put("a", 6)
        await under.delete("z")
        draining = await shrink(under, FIRST)
        assert (draining.draining_reserved, draining.capacity) == (5, 13 + 5)
        mine = tuple(each.name for each in held.addresses if each.ip.startswith("10.1."))
        instead = await under.put("a", 6, 2, release=(*mine, primary_name("a")))
        assert not in_first(everything(instead)), (
            "what was given back is replaced from elsewhere, the primary too"
        )
        assert len(instead.addresses) == 6
        assert instead.version > held.version
        subnet = await under.stands()
        assert (subnet.draining, subnet.draining_reserved, subnet.capacity) == ((FIRST,), 1, 13 + 1)
        assert subnet.quarantined == 1
        under.clock.pass_by(QUARANTINE_SECONDS + 1)
        await end_due(under.allocator)
        gone = await under.stands()
        assert (gone.cidrs, gone.gateways, gone.draining) == ((LATER,), ("10.9.0.1",), ())
        assert (gone.capacity, gone.reserved) == (13, 7)
        assert await under.put("a", 6, 2, release=(*mine, primary_name("a"))) == instead


async def test_an_empty_cidr_leaves_at_once(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        await under.put("a", 3)
        shrunk = await shrink(under, LATER)
        assert (shrunk.cidrs, shrunk.capacity, shrunk.draining) == ((FIRST,), 5, ())
        assert await shrink(under, LATER) == shrunk, "and again changes nothing"
        grown = await under.allocator.grow_subnet("blue", "pods", ("10.7.0.0/29",))
        assert grown.capacity == 10
        assert len((await under.put("a", 9, 2)).addresses) == 9


async def test_what_cooled_down_in_a_cidr_that_left_comes_back_with_nobody(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        await under.put("b", 3)
        held = await under.put("a", 4)
        await shrink(under, LATER)
        mine = tuple(each.name for each in held.addresses if each.ip.startswith("10.9."))
        await under.put("a", 0, 2, release=mine)
        assert (await under.stands()).cidrs == (FIRST,)
        under.clock.pass_by(COOLDOWN_SECONDS + 1)
        assert (await under.stands()).capacity == 5
        grown = await under.allocator.grow_subnet("blue", "pods", (LATER,))
        assert (grown.capacity, grown.capacity - grown.reserved) == (18, 13)


async def test_shrinking_at_once_refuses_what_is_in_use_and_says_who_has_it(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        await under.put("a", 2)
        await under.put("b", 4)
        await under.put("gone", 1)
        await under.delete("gone")
        before = await under.stands()
        with pytest.raises(SubnetInUse) as refusal:
            await shrink(under, LATER, at_once=True)
        assert str(refusal.value).endswith(
            "10.9.0.0/28 of subnet blue/pods is in use: node node-b of east has 3 for pods; "
            "2 addresses of removed nodes are in quarantine"
        )
        assert await under.stands() == before, "and nothing drains for that"
        with pytest.raises(SubnetInUse, match="node node-a of east has its primary address and 2 for pods"):
            await shrink(under, FIRST, at_once=True)
        under.clock.pass_by(QUARANTINE_SECONDS + 1)
        await end_due(under.allocator)
        await under.put("b", 0, 2, release=tuple(names(await under.put("b", 4))))
        assert (await shrink(under, LATER, at_once=True)).cidrs == (FIRST,)


async def test_it_is_told_who_has_addresses_of_a_cidr(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        await under.put("a", 2)
        await under.put("b", 4)
        await under.put("gone", 1)
        await under.delete("gone")
        first = await under.allocator.holders("blue", "pods", FIRST)
        assert first.holders == (
            CidrHolder(container="a", cluster="east", node="node-a", primary=True, addresses=2),
            CidrHolder(container="b", cluster="east", node="node-b", primary=True, addresses=1),
        )
        later = await under.allocator.holders("blue", "pods", LATER)
        assert later.quarantined == 2
        assert [(each.node, each.primary, each.addresses) for each in later.holders] == [("node-b", False, 3)]
        nobody = await under.allocator.holders("blue", "pods", "10.7.0.0/24")
        assert (nobody.holders, nobody.quarantined) == ((), 0)
        with pytest.raises(NoSuchSubnet):
            await under.allocator.holders("blue", "none", FIRST)


async def test_growing_by_a_cidr_that_drains_lets_it_give_again(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        before = await two_cidrs(under)
        held = await under.put("a", 1)
        await shrink(under, FIRST)
        await under.put("b", 4)
        again = await under.allocator.grow_subnet("blue", "pods", (FIRST,))
        assert (again.capacity, again.draining, again.draining_reserved) == (before.capacity, (), 0)
        assert len(everything(await under.put("c", 100))) == 18 - 2 - 5
        assert await under.put("a", 1) == held


async def test_a_subnet_keeps_a_cidr_to_give_from(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        await under.put("a", 8)
        with pytest.raises(InvalidInput):
            await shrink(under, FIRST, LATER)
        draining = await shrink(under, FIRST)
        for cidrs in ((LATER,), ("10.9.0.0/29",), ("10.9.0.0/24",), ("nonsense",)):
            with pytest.raises(InvalidInput):
                await shrink(under, *cidrs)
        assert await under.stands() == draining
        with pytest.raises(NoSuchSubnet):
            await under.allocator.shrink_subnet("blue", "none", (FIRST,))


async def test_a_primary_in_a_cidr_that_drains_stays_until_its_node_names_it(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_cidrs(under)
        held = await under.put("a", 0)
        assert await under.put("a", 0, release=(primary_name("a"),)) == held, "nor does it move for nothing"
        await shrink(under, FIRST)
        assert await under.put("a", 0, 2) == structs.replace(held, generation=2)
        await under.put("b", 12)
        full = await under.put("a", 0, 3, release=(primary_name("a"),))
        assert full.primary == held.primary, "while there is no other"
        b = await under.put("b", 12)
        await under.put("b", 11, 2, release=tuple(names(b)[:1]))
        moved = await under.put("a", 0, 4, release=(primary_name("a"),))
        assert moved.cidr == LATER
        assert moved.version > held.version
        assert (await under.stands()).cidrs == (LATER,)


async def test_what_is_kept_back_stays_so_when_another_cidr_leaves(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.allocator.add_subnet(
            SubnetSpec(
                network="blue",
                name="pods",
                cidrs=(FIRST, LATER),
                keep_back=("10.1.0.5", "10.9.0.9"),
                keep_back_first=7,
            )
        )
        shrunk = await shrink(under, FIRST)
        assert (shrunk.keep_back, shrunk.keep_back_first) == (("10.9.0.9",), 2)
        all_of_it = await under.put("a", 100)
        given = {f"10.9.0.{last}" for last in range(4, 15)} - {"10.9.0.9"}
        assert everything(all_of_it) == given
