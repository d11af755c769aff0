"""What another program gave a node is reserved exactly: all of it or nothing, and never twice."""

import pytest
from msgspec.structs import replace

from allocator.contract.harness import AllocatorUnderTest, OpenAllocator, addresses, everything
from allocator.contract.test_clusters import a_claim
from podtide.allocator.containers import AllocatedContainer, ContainerReservation
from podtide.allocator.errors import AnotherCluster, NoSuchContainer, StaleWish, StoreRecovering, SubnetInUse
from podtide.allocator.terms import SeenVersion
from podtide.core.errors import InvalidInput

EAST = "uid-east"


def given(node: str, primary: str, *others: str, **changed: object) -> ContainerReservation:
    """What another program gave a node of cluster east."""
    fields = {
        "id": node,
        "network": "blue",
        "subnet": "pods",
        "cluster": "east",
        "cluster_uid": EAST,
        "node": f"node-{node}",
        "request_uid": f"request-{node}",
        "generation": 5,
        **changed,
    }
    return ContainerReservation(primary=primary, addresses=others, **fields)  # type: ignore[arg-type]  # as ContainerReservation checks


async def reserve(
    under: AllocatorUnderTest, node: str, primary: str, *others: str, **changed: object
) -> AllocatedContainer:
    return await under.allocator.reserve_container(given(node, primary, *others, **changed))


async def test_a_node_holds_exactly_what_it_was_given(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        held = await reserve(under, "a", "10.1.0.77", "10.1.0.200", "10.1.0.5")
        assert held.primary == "10.1.0.77"
        assert addresses(held) == {"10.1.0.200", "10.1.0.5"}
        assert (held.gateway, held.cidr, held.owed, held.wanted) == ("10.1.0.1", "10.1.0.0/24", 0, 2)
        subnet = await under.stands()
        assert (subnet.reserved, subnet.containers) == (3, 1)
        assert await under.allocator.get_container("a", cluster="east") == held


async def test_the_same_again_changes_nothing(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        first = await reserve(under, "a", "10.1.0.77", "10.1.0.200")
        assert await reserve(under, "a", "10.1.0.77", "10.1.0.200") == first
        assert (await under.stands()).reserved == 2


async def test_what_came_since_is_added_under_new_names_and_the_rest_keeps_its_names(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        first = await reserve(under, "a", "10.1.0.77", "10.1.0.200")
        second = await reserve(under, "a", "10.1.0.77", "10.1.0.201")
        assert {each.ip: each.name for each in second.addresses}["10.1.0.200"] == first.addresses[0].name
        assert addresses(second) == {"10.1.0.200", "10.1.0.201"}
        assert second.version > first.version


async def test_the_nodes_first_wish_goes_on_with_what_is_reserved(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        reserved = await reserve(under, "a", "10.1.0.2", "10.1.0.3")
        other = await under.put("b", 2, cluster_uid=EAST)
        more = await under.put("a", 3, 5, cluster_uid=EAST)
        assert more.primary == "10.1.0.2"
        assert addresses(reserved) < addresses(more)
        assert not everything(other) & everything(more)
        name = reserved.addresses[0].name
        less = await under.put("a", 2, 6, cluster_uid=EAST, release=(name,))
        assert addresses(less) == addresses(more) - {"10.1.0.3"}


async def test_a_wish_from_before_the_reservation_comes_too_late(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        await reserve(under, "a", "10.1.0.2")
        with pytest.raises(StaleWish):
            await under.put("a", 3, 4, cluster_uid=EAST)


async def test_what_another_node_has_is_refused_and_nothing_is_reserved(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        await reserve(under, "a", "10.1.0.77", "10.1.0.200")
        before = await under.stands()
        for mine in (("10.1.0.78", "10.1.0.200"), ("10.1.0.77",), ("10.1.0.200", "10.1.0.79")):
            with pytest.raises(SubnetInUse, match="node node-b has"):
                await reserve(under, "b", *mine)
        assert (await under.stands()).reserved == before.reserved
        with pytest.raises(NoSuchContainer):
            await under.allocator.get_container("b", cluster="east")


async def test_what_a_removed_node_left_in_quarantine_is_refused(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        await reserve(under, "a", "10.1.0.77", "10.1.0.200")
        await under.allocator.delete_container("a", cluster="east", cluster_uid=EAST)
        with pytest.raises(SubnetInUse, match=r"10\.1\.0\.200"):
            await reserve(under, "b", "10.1.0.78", "10.1.0.200")
        with pytest.raises(StaleWish):
            await reserve(under, "a", "10.1.0.77", "10.1.0.200")
        await under.pass_quarantine()
        assert addresses(await reserve(under, "b", "10.1.0.78", "10.1.0.200")) == {"10.1.0.200"}


async def test_an_address_that_cools_down_can_be_reserved(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        held = await under.put("a", 1, cluster_uid=EAST)
        (address,) = held.addresses
        await under.put("a", 0, 2, cluster_uid=EAST, release=(address.name,))
        assert addresses(await reserve(under, "b", "10.1.0.78", address.ip)) == {address.ip}


async def test_what_the_subnet_cannot_give_is_refused(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        for mine in (("10.1.0.1",), ("10.1.0.9", "10.1.0.255"), ("10.1.0.9", "10.2.0.9"), ("nonsense",)):
            with pytest.raises(InvalidInput):
                await reserve(under, "a", *mine)
        assert (await under.stands()).reserved == 0


async def test_a_reservation_that_does_not_fit_the_container_is_refused(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        await under.subnet("10.2.0.0/24", "others")
        first = given("a", "10.1.0.77", "10.1.0.200")
        await under.allocator.reserve_container(first)
        for wrong in (
            replace(first, primary="10.1.0.78"),
            replace(first, node="node-b"),
            replace(first, subnet="others", primary="10.2.0.9", addresses=()),
        ):
            with pytest.raises(InvalidInput):
                await under.allocator.reserve_container(wrong)
        with pytest.raises(NoSuchContainer):
            await under.allocator.reserve_container(replace(first, cluster="west", cluster_uid="uid-west"))
        with pytest.raises(AnotherCluster):
            await under.allocator.reserve_container(replace(first, cluster_uid="uid-west"))
        assert addresses(await under.allocator.get_container("a", cluster="east")) == {"10.1.0.200"}


async def test_a_node_that_waits_for_its_first_address_gets_what_it_was_given(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        held = await under.put("full", 4, cluster_uid=EAST)
        with pytest.raises(Exception, match="no address left"):
            await under.put("a", 1, cluster_uid=EAST)
        name, ip = held.addresses[0].name, held.addresses[0].ip
        await under.put("full", 3, 2, cluster_uid=EAST, release=(name,))
        mine = await reserve(under, "a", ip)
        assert (mine.primary, mine.owed) == (ip, 0)
        assert (await under.stands()).owed == 0


async def test_a_store_that_recovers_reserves_nothing_and_goes_on_afterwards(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/24")
        claim = replace(a_claim("east"), cluster_uid=EAST, seen=(SeenVersion("blue", "pods", 40),))
        opened = await under.allocator.open_term(claim)
        with pytest.raises(StoreRecovering):
            await reserve(under, "a", "10.1.0.77")
        await under.allocator.finish_report("east", cluster_uid=EAST, recovery=opened.recovery)
        assert (await reserve(under, "a", "10.1.0.77")).primary == "10.1.0.77"
