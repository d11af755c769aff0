"""What the contract of the port leaves open, or cannot show by itself: on every database."""

import asyncio
from contextlib import suppress
from itertools import pairwise

import pytest
from msgspec.structs import replace

from allocator.contract.harness import end_due
from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import named, spec, wish
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.errors import NoSuchContainer, StaleWish, SubnetExists, SubnetFull
from podtide.allocator.store import StoreRules
from podtide.allocator.store.container_writes import DeleteContainer
from podtide.allocator.subnets import SubnetSpec
from podtide.core.errors import InvalidInput


@pytest.mark.parametrize("prefix_length", [30, 29, 28, 27, 24])
async def test_a_subnet_can_be_given_out_to_the_last_address(
    database: DatabaseUnderTest, prefix_length: int
) -> None:
    async with database.allocator() as allocator:
        subnet = await allocator.add_subnet(spec(f"10.1.0.0/{prefix_length}"))
        given: set[str] = set()
        for number in range(subnet.capacity):
            if number % 3 and len(given) < subnet.capacity:
                container = await allocator.put_container(wish(f"n{number}", 2))
                given |= {container.primary, *named(container).values()}
        with suppress(SubnetFull):
            given.add((await allocator.put_container(wish("last", 0))).primary)
        full = await allocator.get_subnet("blue", "pods")
        assert len(given) == full.reserved == full.capacity == 2 ** (32 - prefix_length) - 3


@pytest.mark.parametrize("cidr", ["2001:db8::/64", "2001:db8::/32", "10.0.0.0/8"])
async def test_a_wide_subnet_is_opened_without_writing_its_addresses(
    database: DatabaseUnderTest, cidr: str
) -> None:
    async with database.allocator() as allocator:
        subnet = await allocator.add_subnet(spec(cidr))
        assert subnet.capacity == min(2**24 - 3, subnet.capacity) if cidr[0] == "1" else 2**53 - 2
        container = await allocator.put_container(wish("a", 40))
        assert len({container.primary, *named(container).values()}) == 41
        assert container.cidr == cidr


async def test_a_subnet_that_is_there_keeps_a_name_that_no_new_one_may_have(
    database: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(spec("10.1.0.0/29"), name="p" * 64)
    async with database.allocator() as allocator:
        with monkeypatch.context() as earlier:
            earlier.setattr("podtide.allocator.store.subnets.check_new_subnet", lambda _name: None)
            await allocator.add_subnet(long)
        assert (await allocator.add_subnet(long)).name == long.name
        assert (await allocator.grow_subnet("blue", long.name, ("10.9.0.0/30",))).cidrs[1] == "10.9.0.0/30"
        assert (await allocator.put_container(replace(wish("a", 2), subnet=long.name))).subnet == long.name


async def test_each_cidr_of_a_grown_subnet_keeps_its_own_ends(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/29"))
        first = await allocator.put_container(wish("a", 10))
        grown = await allocator.grow_subnet("blue", "pods", ("10.9.0.0/30", "10.1.0.0/29"))
        assert (grown.cidrs, grown.capacity) == (("10.1.0.0/29", "10.9.0.0/30"), 5 + 1)
        second = await allocator.put_container(wish("a", 10, 2))
        assert {*named(second).values()} - {*named(first).values()} == {"10.9.0.2"}
        again = await allocator.add_subnet(spec("10.1.0.0/29"))
        assert again.cidrs == grown.cidrs, "the definition it was made by is still its own"
        with pytest.raises(SubnetExists, match="take another name"):
            await allocator.add_subnet(spec("10.9.0.0/30"))


async def test_an_overlap_names_both_and_where_they_are(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        with pytest.raises(
            SubnetExists, match=r"10\.1\.0\.0/28 for subnet others overlaps 10\.1\.0\.0/24 of subnet pods"
        ):
            await allocator.add_subnet(spec("10.1.0.0/28", name="others"))


async def test_a_late_wish_of_a_superseded_request_is_refused(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.put_container(wish("a", 3, request_uid="first"))
        await allocator.put_container(wish("a", 3, request_uid="second"))
        container = await allocator.put_container(wish("a", 3, request_uid="third"))
        for late in ("first", "second"):
            with pytest.raises(StaleWish, match="came too late"):
                await allocator.put_container(
                    wish("a", 0, 99, request_uid=late, release=tuple(named(container)))
                )
        assert await allocator.get_container("a", cluster="east") == container


async def test_a_container_stays_with_its_cluster_node_and_subnet(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.add_subnet(spec("10.2.0.0/24", name="others"))
        before = await allocator.put_container(wish("a", 3))
        with pytest.raises(NoSuchContainer, match="another cluster's"):
            await allocator.put_container(wish("a", 9, 2, cluster="west"))
        with pytest.raises(NoSuchContainer, match="another cluster's"):
            await allocator.delete_container("a", cluster="west")
        with pytest.raises(InvalidInput, match="stays in its subnet"):
            await allocator.put_container(wish("a", 9, 2, subnet="others"))
        with pytest.raises(InvalidInput, match="use each Node's own uid"):
            await allocator.put_container(wish("a", 9, 2, node="another"))
        assert await allocator.get_container("a", cluster="east") == before


async def test_what_another_subnet_owes_holds_nobody_up(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        await allocator.add_subnet(spec("10.2.0.0/29", name="small"))
        assert (await allocator.put_container(wish("poor", 50, subnet="small", waiting_pods=9))).owed == 46
        held = await allocator.put_container(wish("a", 12))
        with pytest.raises(SubnetFull):
            await allocator.put_container(wish("b", 2))
        await allocator.put_container(wish("a", 6, 2, release=tuple(named(held))[:6]))
        mistaken, served = await asyncio.gather(
            allocator.put_container(wish("poor", 1, 2)),
            allocator.put_container(wish("c", 2)),
            return_exceptions=True,
        )
        assert isinstance(mistaken, InvalidInput)
        assert isinstance(served, AllocatedContainer)
        assert len(served.addresses) == 2, "3 of the 6 are for b, who came first"


async def test_a_refused_call_takes_nothing_from_those_it_shares_a_transaction_with(
    database: DatabaseUnderTest,
) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        await allocator.put_container(wish("a", 3, 5))
        outcomes = await asyncio.gather(
            allocator.put_container(wish("b", 2)),
            allocator.put_container(wish("a", 9, 4)),
            allocator.put_container(wish("c", 2)),
            allocator.put_container(wish("d", 20)),
            allocator.put_container(wish("e", 1)),
            allocator.put_container(wish("f", 1, subnet="none")),
            return_exceptions=True,
        )
        assert [type(outcome).__name__ for outcome in outcomes] == [
            "AllocatedContainer",
            "StaleWish",
            "AllocatedContainer",
            "AllocatedContainer",
            "SubnetFull",
            "NoSuchSubnet",
        ]
        assert [debt.container for debt in await allocator.owed("blue", "pods")] == ["d", "e"]


async def test_replicas_on_one_database_share_no_address(database: DatabaseUnderTest) -> None:
    async with database.allocator() as one, database.replica() as other:
        await one.add_subnet(spec("10.1.0.0/25"))
        answers = await asyncio.gather(
            *(
                replica.put_container(wish(f"n{number}", 5))
                for number in range(24)
                for replica in (one, other)
            ),
            return_exceptions=True,
        )
        assert not [
            answer
            for answer in answers
            if isinstance(answer, Exception) and not isinstance(answer, SubnetFull)
        ]
        page = await one.list_containers()
        given = [ip for container in page.items for ip in (container.primary, *named(container).values())]
        assert len(given) == len(set(given)) == (await other.get_subnet("blue", "pods")).reserved == 125


async def test_a_wish_and_the_deletion_of_its_node_at_once_end_in_a_tombstone(
    database: DatabaseUnderTest,
) -> None:
    async with database.allocator() as one, database.replica() as other:
        await one.add_subnet(spec("10.1.0.0/24"))
        ids = [f"n{number}" for number in range(20)]
        await asyncio.gather(
            *(one.put_container(wish(id_, 3)) for id_ in ids),
            *(other.delete_container(id_, cluster="east") for id_ in ids),
            return_exceptions=True,
        )
        assert (await one.list_containers()).items == ()
        for id_ in ids:
            with pytest.raises(StaleWish):
                await one.put_container(wish(id_, 3, 2))


async def test_two_replicas_make_one_subnet(database: DatabaseUnderTest) -> None:
    async with database.allocator() as one, database.replica() as other:
        made = await asyncio.gather(
            *(replica.add_subnet(spec("10.1.0.0/24")) for replica in (one, other, one, other)),
            *(one.add_subnet(spec("10.1.0.0/24", network=f"network-{number}")) for number in range(4)),
            *(other.add_subnet(spec("10.1.0.0/24", network=f"network-{number}")) for number in range(4)),
        )
        assert len({(subnet.network, subnet.name) for subnet in made}) == 5
        assert len(await one.list_subnets()) == 5


async def test_a_subnet_made_again_remembers_nothing_of_the_one_before(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/29"))
        await allocator.put_container(wish("a", 9))
        with pytest.raises(SubnetFull):
            await allocator.put_container(wish("waiting", 1))
        await allocator.delete_container("a", cluster="east")
        database.clock.now += 1_000
        await end_due(allocator)
        await allocator.remove_subnet("blue", "pods")
        await allocator.add_subnet(spec("10.1.0.0/28"))
        assert (await allocator.get_subnet("blue", "pods")).owed == 0
        assert len((await allocator.put_container(wish("waiting", 12))).addresses) == 12


async def test_what_is_deleted_in_the_same_transaction_is_in_quarantine_all_the_same(
    database: DatabaseUnderTest,
) -> None:
    async with database.allocator(StoreRules(cooldown_seconds=900.0, quarantine_seconds=60.0)) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        await allocator.put_container(wish("a", 5))
        other = await allocator.put_container(wish("b", 6))
        released = dict(list(named(other).items())[:3])
        _gone, _less, served = await asyncio.gather(
            allocator._database.call("blue", "pods", DeleteContainer("a", "east")),
            allocator.put_container(wish("b", 3, 2, release=tuple(released))),
            allocator.put_container(wish("c", 2)),
        )
        assert {served.primary, *named(served).values()} == set(released.values())


async def test_what_is_released_and_granted_in_one_transaction_is_counted_once(
    database: DatabaseUnderTest,
) -> None:
    async with database.allocator(StoreRules(cooldown_seconds=0.0)) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/26"))
        held = await allocator.put_container(wish("a", 5))
        less, other = await asyncio.gather(
            allocator.put_container(wish("a", 3, 2, release=tuple(named(held))[:2])),
            allocator.put_container(wish("b", 45)),
        )
        given = [less.primary, *named(less).values(), other.primary, *named(other).values()]
        assert len(given) == len(set(given)) == 50


async def test_quarantine_that_ended_is_seen_at_once(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.put_container(wish("a", 9))
        await allocator.delete_container("a", cluster="east")
        (during,) = await allocator.utilization("blue", "pods")
        database.clock.now += 361
        await end_due(allocator)
        (after,) = await allocator.utilization("blue", "pods")
        assert (during.reserved, after.reserved) == (10, 0)
        assert [subnet.reserved for subnet in await allocator.list_subnets()] == [0]


async def test_many_that_are_gone_at_once_are_all_settled(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/20"))
        for number in range(100):
            await allocator.put_container(wish(f"n{number}", 39))
        await asyncio.gather(
            *(allocator.delete_container(f"n{number}", cluster="east") for number in range(100))
        )
        assert (await allocator.list_subnets())[0].reserved == 4_000
        database.clock.now += 361
        await end_due(allocator)
        assert (await allocator.list_subnets())[0].reserved == 0
        assert len((await allocator.put_container(wish("all", 4_092))).addresses) == 4_092


async def test_without_cooldown_released_addresses_are_free_at_once(database: DatabaseUnderTest) -> None:
    async with database.allocator(StoreRules(cooldown_seconds=0.0)) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        first = await allocator.put_container(wish("a", 12))
        await allocator.put_container(wish("a", 0, 2, release=tuple(named(first))))
        second = await allocator.put_container(wish("b", 11))
        assert {second.primary, *named(second).values()} == set(named(first).values())


async def test_a_claim_that_lapsed_is_listed_last_and_still_served(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        held = await allocator.put_container(wish("a", 12))
        for number, waiting in enumerate((5, 0)):
            with pytest.raises(SubnetFull):
                await allocator.put_container(wish(f"w{number}", 1, waiting_pods=waiting))
            database.clock.now += 400
        assert [debt.container for debt in await allocator.owed("blue", "pods")] == ["w1", "w0"]
        await allocator.put_container(wish("a", 8, 2, release=tuple(named(held))[:4]))
        assert (await allocator.put_container(wish("w0", 1, waiting_pods=5))).owed == 0
        assert (await allocator.put_container(wish("w1", 1))).owed == 0


async def test_a_claim_that_lapsed_holds_nobody_up_who_comes_at_the_same_moment(
    database: DatabaseUnderTest,
) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        held = await allocator.put_container(wish("a", 12))
        with pytest.raises(SubnetFull):
            await allocator.put_container(wish("late", 2))
        await allocator.put_container(wish("a", 9, 2, release=tuple(named(held))[:3]))
        database.clock.now += 601
        served, late = await asyncio.gather(
            allocator.put_container(wish("c", 2)),
            allocator.put_container(wish("late", 2)),
            return_exceptions=True,
        )
        assert isinstance(served, AllocatedContainer)
        assert isinstance(late, SubnetFull)


@pytest.mark.slow
async def test_history_thins_out_and_keeps_the_peaks(database: DatabaseUnderTest) -> None:
    async with database.allocator(StoreRules(cooldown_seconds=0.0)) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        begun = database.clock.now
        container = await allocator.put_container(wish("a", 1))
        peak = 0
        for generation in range(2, 300):
            database.clock.now += 10
            count = 200 if generation == 100 else generation % 7
            container = await allocator.put_container(
                wish("a", count, generation, release=tuple(named(container)))
            )
            peak = max(peak, 1 + count)
        now = database.clock.now
        fine = await allocator.history("blue", "pods", since=begun, until=now + 1)
        assert 290 <= len(fine) <= 300
        database.clock.now += 2 * 3_600
        by_minute = await allocator.history("blue", "pods", since=begun, until=now + 1)
        assert 45 <= len(by_minute) <= 60
        database.clock.now += 2 * 86_400
        by_quarter = await allocator.history("blue", "pods", since=begun, until=now + 1)
        assert 3 <= len(by_quarter) <= 5
        for readings in (fine, by_minute, by_quarter):
            assert max(reading.reserved for reading in readings) == peak == 201
            assert all(one.timestamp < next_.timestamp for one, next_ in pairwise(readings))
        database.clock.now += 91 * 86_400
        await allocator.sample()
        (by_day,) = await allocator.history("blue", "pods", since=begun, until=now + 1)
        assert by_day.reserved == peak
        database.clock.now += 731 * 86_400
        await allocator.sample()
        assert await allocator.history("blue", "pods", since=begun, until=now + 1) == ()
        (latest,) = await allocator.history(
            "blue", "pods", since=database.clock.now, until=database.clock.now + 1
        )
        assert latest.reserved == 1 + len(container.addresses)


@pytest.mark.parametrize(
    "wrong",
    [
        spec("10.1.0.0/24", name="p o d s"),
        spec("10.1.0.0/24", network=""),
        spec("10.1.0.0/24", keep_back_first=-1),
        spec("10.1.0.0/24", keep_back=("10.1.0.9",) * 10_001),
        spec("10.1.0.0/24", gateways=("10.2.0.1",)),
        spec(),
    ],
    ids=["name", "network", "keep_back_first", "keep_back", "gateway", "no CIDR"],
)
async def test_a_subnet_that_cannot_be_meant_is_refused(
    database: DatabaseUnderTest, wrong: SubnetSpec
) -> None:
    async with database.allocator() as allocator:
        with pytest.raises(InvalidInput):
            await allocator.add_subnet(wrong)
        assert await allocator.list_subnets() == ()


async def test_a_page_that_is_too_long_and_too_many_names_are_refused(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        with pytest.raises(InvalidInput, match="1 to 1000"):
            await allocator.list_containers(limit=1_001)
        with pytest.raises(InvalidInput, match="100000 entries"):
            await allocator.put_container(wish("a", 1, release=("x",) * 100_000))
        with pytest.raises(InvalidInput, match="of 300 characters"):
            await allocator.get_subnet("blue", "x" * 300)
        with pytest.raises(InvalidInput, match="is not a valid name"):
            await allocator.list_subnets("nul\0")


async def test_a_closed_allocator_says_so(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        async with database.replica() as other:
            pass
        for ask in (
            other.list_subnets(),
            other.add_subnet(spec("10.2.0.0/24", name="x")),
            other.put_container(wish("a", 1)),
        ):
            with pytest.raises(Exception, match="is closed: the allocator is stopping"):
                await ask
