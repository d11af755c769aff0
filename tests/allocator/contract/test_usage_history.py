"""How a subnet was used: rows of one length, with the highest, the mean, and what nodes state that their pods need."""

import pytest
from msgspec.structs import replace

from allocator.contract.harness import AllocatorUnderTest, OpenAllocator, names
from podtide.allocator.errors import NoSuchSubnet
from podtide.allocator.subnets import Bounds, SubnetInForce, SubnetUsage
from podtide.core.errors import InvalidInput
from podtide.core.subnet.statement import StatedDemand
from podtide.core.subnet.usage_series import DAYS, QUARTERS, SERIES
from podtide.resources.timestamps import to_time

DAY = 86_400.0
FOUR = StatedDemand(low=1, high=8, demand=4, batch=16, buffer="0.5", max_ips=250, primaries=1)
WITHIN = Bounds(batch=16, buffer="0.5", lower="0.8", upper="0.9")


async def rows(under: AllocatorUnderTest, step: str, since: float = 0) -> tuple[SubnetUsage, ...]:
    """All rows of a step that there are."""
    return await under.allocator.usage_history("blue", "pods", since=since, until=4e9, step=step)  # type: ignore[arg-type]  # as the test says


async def at_midnight(under: AllocatorUnderTest) -> float:
    """Let the next day of UTC begin, and return its first second."""
    under.clock.pass_by(DAY - under.clock.wall() % DAY)
    return under.clock.wall()


async def pass_minutes(under: AllocatorUnderTest, minutes: int) -> None:
    """Let so many minutes pass, and the service do what it does every minute."""
    for _ in range(minutes):
        under.clock.pass_by(60)
        await under.sample()


async def test_a_day_has_its_highest_and_its_mean(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        begun = await at_midnight(under)
        await under.subnet()
        held = await under.put("a", 3)
        await pass_minutes(under, 10)
        held = await under.put("a", 9, 2)
        await pass_minutes(under, 5)
        await under.put("a", 0, 3, release=tuple(names(held)))
        await pass_minutes(under, 15)
        (day,) = await rows(under, "1d")
        assert (day.timestamp, day.step_seconds, day.observed_seconds) == (to_time(begun), 86_400, 1_800)
        assert (day.capacity, day.reserved, day.containers, day.owed) == (13, 10, 1, 0)
        assert day.reserved_mean == (4 * 600 + 10 * 300 + 1 * 900) / 1_800
        first, second, _begun = await rows(under, "15m")
        assert (first.reserved_mean, second.reserved_mean) == (6, 1)
        assert (first.reserved, second.reserved) == (10, 10)
        assert second.timestamp == to_time(begun + 900)


async def test_a_peak_between_two_minutes_is_in_every_row_of_its_time(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet()
        await under.put("a", 1)
        await pass_minutes(under, 3)
        for seconds, count in ((1, 2), (1, 12), (1, 2)):
            under.clock.pass_by(seconds)
            held = await under.put("a", count, int(under.clock.wall()))
            await under.put("a", 2, int(under.clock.wall()) + 1, release=tuple(names(held)[2:]))
        await pass_minutes(under, 2)
        for step in ("5s", "1m", "15m", "1d"):
            assert max(row.reserved for row in await rows(under, step)) == 13, step


async def test_rows_have_the_most_that_was_owed_and_the_most_containers(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet()  # 13 addresses
        await under.put("a", 3)
        await under.put("b", 40)
        await pass_minutes(under, 1)
        await under.allocator.delete_container("b", cluster="east")
        await pass_minutes(under, 2)
        *_, before_last, last = await rows(under, "1m")
        (day,) = await rows(under, "1d")
        assert (before_last.containers, before_last.owed) == (last.containers, last.owed) == (1, 0)
        assert (day.containers, day.owed) == (2, 40 - (13 - 4 - 1))


async def test_what_pods_need_is_read_every_minute(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet("10.1.0.0/26")
        await under.allocator.set_bounds("blue", "pods", cluster="east", bounds=WITHIN)
        await under.put("a", 15, stated=FOUR)
        await under.put("b", 15, stated=FOUR)
        await pass_minutes(under, 3)
        (day,) = await rows(under, "1d")
        # The batch is at its top, or none is decided: of what is stated, only the window counts.
        assert (day.demand, day.on_pods, day.idle) == (16, 16, 14)
        assert (day.need, day.need_mean) == (20, 20)
        await under.allocator.put_in_force("blue", "pods", SubnetInForce(batch=16, buffer="0.5", top=32))
        await pass_minutes(under, 1)
        *_, minute = await rows(under, "1m")
        assert (minute.demand, minute.on_pods, minute.idle, minute.batch) == (8, 8, 22, 16)
        assert minute.need == 12
        (day,) = await rows(under, "1d")
        assert day.demand == 16
        assert day.demand_mean == (2 * 16 + 8) / 3
        (fine, *_) = await rows(under, "5s")
        assert (fine.demand, fine.demand_mean, fine.need, fine.idle) == (None, None, None, None)


async def test_the_need_is_by_the_buffer_that_clusters_have_configured(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet("10.1.0.0/26")
        await under.put("a", 15, stated=FOUR)
        await pass_minutes(under, 1)
        assert (await rows(under, "1m"))[-1].need == 1 + 8 + 1
        await under.allocator.set_bounds("blue", "pods", cluster="east", bounds=replace(WITHIN, buffer="0"))
        await pass_minutes(under, 1)
        assert (await rows(under, "1m"))[-1].need == 1 + 8


async def test_what_is_in_quarantine_is_needed_and_is_neither_on_pods_nor_idle(
    open_allocator: OpenAllocator,
) -> None:
    """No batch governs it: it is taken from the subnet whatever the nodes ask for."""
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet("10.1.0.0/26")
        await under.put("a", 15, stated=FOUR)
        await under.put("b", 15, stated=FOUR)
        await under.allocator.delete_container("b", cluster="east")
        await pass_minutes(under, 1)
        minute = (await rows(under, "1m"))[-1]
        assert minute.need == (1 + 8 + 1) + (1 + 15)
        assert (minute.on_pods, minute.idle) == (8, 7)


async def test_seconds_exhausted_and_starved_are_counted(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet()
        await pass_minutes(under, 2)
        in_force = SubnetInForce(batch=8, buffer="0.5", top=16, exhausted=True)
        await under.allocator.put_in_force("blue", "pods", in_force)
        await pass_minutes(under, 3)
        under.clock.pass_by(20)
        starved = replace(in_force, batch=1, buffer="0", starved=True, serial=1)
        await under.allocator.put_in_force("blue", "pods", starved)
        await pass_minutes(under, 1)
        under.clock.pass_by(30)  # between two samples, and nothing else changes
        await under.allocator.put_in_force(
            "blue", "pods", replace(starved, exhausted=False, starved=False, serial=2)
        )
        await pass_minutes(under, 4)
        (day,) = await rows(under, "1d")
        assert (day.exhausted_seconds, day.starved_seconds) == (290, 90)
        assert (day.observed_seconds, day.batch) == (650, 1)


async def test_a_subnet_that_grows_has_its_new_capacity(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await at_midnight(under)
        await under.subnet()
        await pass_minutes(under, 2)
        await under.allocator.grow_subnet("blue", "pods", ("10.9.0.0/28",))
        await pass_minutes(under, 1)
        assert [row.capacity for row in await rows(under, "1m")] == [13, 13, 26, 26]
        assert [row.capacity for row in await rows(under, "1d")] == [26]


async def test_auto_is_the_finest_step_that_reaches_back(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await pass_minutes(under, 1)
        now = under.clock.wall()
        for ago, step in ((600, 5), (3_600, 5), (4_000, 60), (DAY, 60), (2 * DAY, 900), (100 * DAY, 86_400)):
            answered = await rows(under, "auto", now - ago)
            assert {row.step_seconds for row in answered} == {step}, ago


async def test_rows_are_those_that_the_time_touches(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        begun = await at_midnight(under)
        await under.subnet()
        await pass_minutes(under, 10)
        ask = under.allocator.usage_history
        minutes = await ask("blue", "pods", since=begun + 90, until=begun + 240, step="1m")
        assert [row.timestamp for row in minutes] == [to_time(begun + 60 * n) for n in (1, 2, 3)]
        assert await ask("blue", "pods", since=begun + 90, until=begun + 90, step="1m") == ()
        assert await ask("blue", "pods", since=0, until=begun - DAY, step="1d") == ()
        assert await ask("blue", "pods", since=begun + 7 * DAY, until=begun + 8 * DAY) == ()


async def test_a_time_that_cannot_be_meant_is_refused(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        with pytest.raises(InvalidInput, match="since 200 is after until 100: give the earlier time first"):
            await under.allocator.usage_history("blue", "pods", since=200, until=100)
        with pytest.raises(InvalidInput, match="step"):
            await rows(under, "2h")
        with pytest.raises(NoSuchSubnet):
            await under.allocator.usage_history("blue", "others", since=0, until=1)


async def test_history_goes_on_as_it_was_and_reaches_two_years_back(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        begun = await at_midnight(under)
        await under.subnet()
        await under.put("a", 5)
        under.clock.pass_by(400 * DAY)
        await under.sample()
        (reading,) = await under.allocator.history("blue", "pods", since=begun, until=begun + DAY)
        assert (reading.capacity, reading.reserved) == (13, 6)
        first, last = await rows(under, "1d")
        assert (first.timestamp, last.timestamp) == (to_time(begun), to_time(begun + 400 * DAY))
        assert max(series.kept_seconds for series in SERIES) == DAYS.kept_seconds > QUARTERS.kept_seconds
