"""Subnets that grew before every CIDR had a gateway: what pods have stays theirs, and nobody gets a gateway's address."""

import pytest

from allocator.store.before_0005 import BEFORE, UNDO_0005
from allocator.store.databases import DatabaseUnderTest
from allocator.store.test_opening import drop_everything, execute
from allocator.store.wishes import named, spec, wish
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.errors import SubnetInUse

LATER = "10.9.0.0/29"
SIXTH = {
    "free": ("UPDATE chunks SET free = free | 64 WHERE chunk = 1",),
    "the node's": (
        "UPDATE grants SET mask = mask | 64 WHERE chunk = 1",
        "UPDATE subnets SET reserved = reserved + 1",
        "UPDATE containers SET wanted = wanted + 1",
        "UPDATE alike SET taken = taken + 1",
    ),
}


async def grown_before(database: DatabaseUnderTest, count: int, sixth: str = "") -> AllocatedContainer:
    """A database from before, of a subnet that grew, and of which a node has so many addresses.

    Here it grows with 10.9.0.6 for a gateway, which for the database is an address as any other: free, or the node's.
    """
    await drop_everything(database)
    async with database.replica() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/29"))
        await allocator.grow_subnet("blue", "pods", (LATER,), ("10.9.0.6",))
        container = await allocator.put_container(wish("a", count))
    for statement in (
        *UNDO_0005,
        *(SIXTH[sixth] if sixth else ()),
        "UPDATE subnets SET capacity = capacity + 1",
        f"UPDATE alembic_version SET version_num = '{BEFORE}'",  # noqa: S608 - a number
    ):
        await execute(database, statement)
    return container


async def test_a_later_cidr_that_nobody_used_gets_its_first_usable_address(
    database: DatabaseUnderTest,
) -> None:
    before = await grown_before(database, 2)
    async with database.replica(migrate=True) as allocator:
        subnet = await allocator.get_subnet("blue", "pods")
        assert (subnet.gateways, subnet.capacity) == (("10.1.0.1", "10.9.0.1"), 5 + 5)
        after = await allocator.put_container(wish("a", 9, 2))
        assert named(before).items() <= named(after).items()
        assert "10.9.0.1" not in named(after).values()
        assert await allocator.audit() == ()


async def test_an_address_that_a_pod_may_have_stays_and_the_lowest_free_one_is_the_gateway(
    database: DatabaseUnderTest,
) -> None:
    before = await grown_before(database, 9, "free")
    assert "10.9.0.1" in named(before).values()
    async with database.replica(migrate=True) as allocator:
        subnet = await allocator.get_subnet("blue", "pods")
        assert (subnet.gateways, subnet.capacity) == (("10.1.0.1", "10.9.0.6"), 5 + 5)
        after = await allocator.put_container(wish("a", 20, 2))
        assert named(after) == named(before)
        assert {each.cidr: each.gateway for each in after.cidrs} == {
            "10.1.0.0/29": "10.1.0.1",
            LATER: "10.9.0.6",
        }
        assert await allocator.audit() == ()


async def test_a_cidr_that_is_all_in_use_has_no_gateway_until_a_person_names_a_free_address(
    database: DatabaseUnderTest,
) -> None:
    before = await grown_before(database, 9, "the node's")
    async with database.replica(migrate=True) as allocator:
        subnet = await allocator.get_subnet("blue", "pods")
        assert (subnet.gateways, subnet.capacity) == (("10.1.0.1", ""), 5 + 6)
        with pytest.raises(SubnetInUse, match=r"10\.9\.0\.3 of subnet blue/pods is a node's"):
            await allocator.grow_subnet("blue", "pods", (LATER,), ("10.9.0.3",))
        gone = next(name for name, ip in named(before).items() if ip == "10.9.0.3")
        await allocator.put_container(wish("a", 8, 2, release=(gone,)))
        database.clock.now += 31
        subnet = await allocator.grow_subnet("blue", "pods", (LATER,), ("10.9.0.3",))
        assert (subnet.gateways, subnet.capacity) == (("10.1.0.1", "10.9.0.3"), 5 + 5)
        assert await allocator.audit() == ()
