"""The history of a subnet's use in either database: bounded, right with several replicas, and unharmed by clocks that jump."""

import asyncio
import sqlite3
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.store.before_0006 import BEFORE, UNDO_0006
from allocator.store.databases import DatabaseUnderTest
from allocator.store.test_opening import drop_everything, execute
from allocator.store.wishes import named, spec, wish
from examples import examples
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.store import DatabaseAllocator, StoreRules, subnet_usage
from podtide.allocator.store.drivers import sqlite
from podtide.allocator.store.script import Query, Rows, Script, Statement
from podtide.allocator.store.subnet_usage import NoteUsage
from podtide.allocator.subnets import SubnetUsage, UsageStep
from podtide.core.subnet.demand_reading import DemandReading
from podtide.core.subnet.statement import StatedDemand
from podtide.core.subnet.usage_series import DAYS, SERIES
from podtide.resources.timestamps import to_time

DAY = 86_400.0
MIDNIGHT = 1_750_032_000.0
AT_ONCE = StoreRules(cooldown_seconds=0.0)
STEPS: tuple[UsageStep, ...] = ("5s", "1m", "15m", "1d")


async def usage(allocator: DatabaseAllocator, step: UsageStep) -> tuple[SubnetUsage, ...]:
    return await allocator.usage_history("blue", "pods", since=0, until=9e9, step=step)


async def rows_kept(allocator: DatabaseAllocator, step: int) -> int:
    """How many rows of a series the database has, whether they are answered or not."""

    def count(_now: float) -> Script[Rows]:
        return (yield Query("SELECT count(*) FROM samples WHERE subnet > 0 AND step = $1", (step,)))

    return int((await allocator._database.read(count))[0][0])


async def hold(
    allocator: DatabaseAllocator, count: int, generation: int, held: AllocatedContainer | None
) -> AllocatedContainer:
    """Have a node hold exactly so many addresses."""
    surplus = tuple(named(held))[count:] if held else ()
    return await allocator.put_container(wish("a", count, generation, release=surplus))


async def test_replicas_that_sample_at_once_write_once_and_count_no_second_twice(
    database: DatabaseUnderTest,
) -> None:
    database.clock.now = MIDNIGHT
    async with database.allocator() as allocator, database.replica() as second, database.replica() as third:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.put_container(wish("a", 9))
        for _ in range(10):
            database.clock.now += 20
            await asyncio.gather(*(replica.sample() for replica in (allocator, second, third)))
            database.clock.now += 20
            await second.sample()
            database.clock.now += 20
            await third.sample()
        (day,) = await usage(allocator, "1d")
        assert (day.observed_seconds, day.reserved, day.reserved_mean) == (600 - 40, 10, 10)
        assert await rows_kept(allocator, 60) <= 11
        minutes = await usage(allocator, "1m")
        assert all(row.observed_seconds == 60 for row in minutes[:-1])


async def test_of_replicas_that_read_at_once_one_writes(database: DatabaseUnderTest) -> None:
    database.clock.now = MIDNIGHT
    async with database.allocator() as allocator, database.replica() as second:
        await allocator.add_subnet(spec("10.1.0.0/24"))

        async def write(replica: DatabaseAllocator, demand: int) -> None:
            """What a replica does that has read, and did not see what another wrote since."""
            await replica._database.call("blue", "pods", NoteUsage(DemandReading(demand, demand, 0, 0)))

        async def read() -> int | None:
            return (await usage(allocator, "1d"))[-1].demand

        await write(allocator, 5)
        database.clock.now += 1
        await write(second, 9)
        assert await read() == 5
        database.clock.now += 59
        await write(second, 9)
        assert await read() == 9


async def test_a_replica_whose_minute_has_not_come_reads_nothing(
    database: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.clock.now = MIDNIGHT
    async with database.allocator() as allocator, database.replica() as second:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.sample()
        monkeypatch.setattr(subnet_usage, "read_counts", None)  # all nodes' statements: the costly part
        database.clock.now += 40
        await second.sample()


async def test_days_go_back_two_years(database: DatabaseUnderTest) -> None:
    database.clock.now = MIDNIGHT
    async with database.allocator(AT_ONCE) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/22"))
        held = None
        for turn in range(41):
            held = await hold(allocator, 1 + turn, 1 + turn, held)
            database.clock.now += 19 * DAY
        await allocator.sample()
        days = await usage(allocator, "1d")
        assert days[0].timestamp == to_time(MIDNIGHT + 3 * 19 * DAY)
        assert [row.reserved for row in days[:-1]] == list(range(5, 43))


async def test_a_history_stays_as_large_as_it_is_said_to_be() -> None:
    database = DatabaseUnderTest("sqlite:///:memory:", in_a_thread=False)
    database.clock.now = MIDNIGHT
    async with database.replica(AT_ONCE) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/22"))
        held = None
        for generation, seconds in enumerate([DAY] * 760 + [5.0] * 800, 1):
            held = await hold(allocator, generation % 2, generation, held)
            database.clock.now += seconds
        days = await usage(allocator, "1d")
        assert len(days) == DAYS.most_rows == 732
        for series in SERIES:
            assert await rows_kept(allocator, series.step_seconds) <= series.most_rows
        assert [await rows_kept(allocator, step) for step in (5, 86_400)] == [721, 732]


async def test_rows_that_are_older_than_they_are_kept_are_not_shown_before_they_are_dropped(
    database: DatabaseUnderTest,
) -> None:
    database.clock.now = MIDNIGHT
    async with database.allocator(AT_ONCE) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        held = None
        for generation in range(1, 61):
            held = await hold(allocator, generation % 2, generation, held)
            database.clock.now += 5
        database.clock.now += 7_200  # the allocator was down
        await allocator.sample()
        assert await rows_kept(allocator, 5) > 40, "a few are dropped at a time"
        assert all(
            row.timestamp >= to_time(database.clock.now - 3_605) for row in await usage(allocator, "5s")
        )


async def test_a_clock_that_shows_next_century_for_a_minute_costs_a_few_rows_and_no_more(
    database: DatabaseUnderTest,
) -> None:
    database.clock.now = MIDNIGHT
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.put_container(wish("a", 5))
        for _ in range(120):
            database.clock.now += 60
            await allocator.sample()
        before = {step: await usage(allocator, step) for step in STEPS}
        now = database.clock.now
        database.clock.now += 36_500 * DAY
        await allocator.sample()
        await allocator.put_container(wish("a", 200, 2))
        database.clock.now = now
        after = {step: await usage(allocator, step) for step in STEPS}
        for step in STEPS:
            assert len(before[step]) - len(after[step]) <= 8, step
            assert after[step] == before[step][len(before[step]) - len(after[step]) :], (
                "and no row of the future"
            )
        database.clock.now += 60
        await allocator.sample()
        *_, (day) = await usage(allocator, "1d")
        assert day.reserved == 201


async def test_a_time_that_is_lived_twice_is_counted_once(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        database.clock.now = MIDNIGHT
        await allocator.add_subnet(spec("10.1.0.0/24"))
        for life in range(3):
            database.clock.now = MIDNIGHT
            stated = StatedDemand(batch=16, high=2 + life)
            await allocator.put_container(wish("a", 5, life + 1, stated=stated))
            for _ in range(60):
                database.clock.now += 60
                await allocator.sample()
        for step in STEPS:
            rows = await usage(allocator, step)
            assert all(row.observed_seconds <= row.step_seconds for row in rows)
            assert all(row.reserved_mean == row.reserved == 6 for row in rows[1:])
            assert [row.timestamp for row in rows] == sorted({row.timestamp for row in rows})
        minutes = await usage(allocator, "1m")
        assert [row.observed_seconds for row in minutes[:-1]] == [60] * 60
        assert {(row.demand, row.demand_mean) for row in minutes[2:-1]} == {(4, 2)}, (
            "the highest, and the first life's"
        )


async def test_a_reading_counts_for_its_own_row_alone(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        database.clock.now = MIDNIGHT
        await allocator.add_subnet(spec("10.1.0.0/24"))
        for generation, (seconds, demand) in enumerate(((0, 1), (181, 2), (54, 4)), 1):
            database.clock.now += seconds
            stated = StatedDemand(batch=16, high=demand)
            await allocator.put_container(wish("a", 5, generation, stated=stated))
            await allocator.sample()
        *_, minute = await usage(allocator, "1m")
        assert minute.timestamp == to_time(MIDNIGHT + 180)
        assert (minute.demand, minute.demand_mean) == (4, 2), (
            "the first of the two stands for the whole minute"
        )
        (day,) = await usage(allocator, "1d")
        assert day.demand_mean == (181 * 2 + 54 * 4) / 235


steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.25, 1.0, 4.0, 5.0, 60.0, 200.0, 300.5, 4_000.0])
        | st.sampled_from([-2.0, -900.0]),
        st.none() | st.integers(0, 40),
    ),
    min_size=1,
    max_size=12,
)


@given(steps)
@examples(20, quick=5)
def test_whatever_happens_when_rows_keep_their_laws(made: list[tuple[float, int | None]]) -> None:
    asyncio.run(_keep_their_laws(made))


async def _keep_their_laws(made: list[tuple[float, int | None]]) -> None:
    database = DatabaseUnderTest("sqlite:///:memory:", in_a_thread=False)
    database.clock.now = MIDNIGHT - 30
    async with database.replica(AT_ONCE) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        held, highest, latest = None, 0, 0.0
        for generation, (after, count) in enumerate(made, 1):
            database.clock.now += after
            latest = max(latest, database.clock.now)
            if count is None:
                await allocator.sample()
            else:
                held = await hold(allocator, count, generation, held)
                highest = max(highest, 1 + count)
        database.clock.now = latest + 1_000
        await allocator.sample()
        for step in STEPS:
            rows = await usage(allocator, step)
            most = max(row.reserved for row in rows)
            # What is further back than an hour is no longer in rows of five seconds.
            assert most <= highest if step == "5s" else most == highest, step
            for row in rows:
                assert 0 <= row.observed_seconds <= row.step_seconds
                assert 0 <= row.reserved_mean <= row.reserved
                assert 0 <= row.exhausted_seconds <= row.observed_seconds
            assert all(one.timestamp < other.timestamp for one, other in pairwise(rows))


async def test_a_history_from_before_is_kept_and_its_days_are_filled(database: DatabaseUnderTest) -> None:
    await drop_everything(database)
    database.clock.now = MIDNIGHT
    async with database.replica(AT_ONCE) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        held = None
        lived = ((9, 900), (39, 900), (4, 900), (2, DAY - 5_400), (3, 5_400), (19, 5))
        for generation, (count, seconds) in enumerate(lived, 1):
            held = await hold(allocator, count, generation, held)
            database.clock.now += seconds
            if generation == 3:  # the day's highest is before it
                await allocator.grow_subnet("blue", "pods", ("10.9.0.0/24",))
        before = await allocator.history("blue", "pods", since=0, until=9e9)
        kept = {step: await usage(allocator, step) for step in STEPS[:3]}
    for statement in (*UNDO_0006, f"UPDATE alembic_version SET version_num = '{BEFORE}'"):  # noqa: S608 - a number
        await execute(database, statement)
    async with database.replica(migrate=True) as allocator:
        assert await allocator.history("blue", "pods", since=0, until=9e9) == before
        for step, rows in kept.items():
            now = await usage(allocator, step)
            assert [(row.timestamp, row.reserved) for row in now] == [
                (row.timestamp, row.reserved) for row in rows
            ]
            assert {(row.demand, row.batch, row.owed, row.observed_seconds) for row in now} == {
                (None, None, None, 0)
            }
            assert all(row.reserved_mean == row.reserved for row in now)
            assert {row.capacity for row in now} == ({253, 506} if step == "15m" else {506})
        first, second = await usage(allocator, "1d")
        assert (first.timestamp, second.timestamp) == (to_time(MIDNIGHT), to_time(MIDNIGHT + DAY))
        quarters = [row.reserved for row in kept["15m"] if row.timestamp < second.timestamp]
        assert (first.reserved, first.reserved_mean) == (40, sum(quarters) / len(quarters))
        assert (first.capacity, second.capacity, second.reserved) == (506, 506, 20)
        database.clock.now += 60
        await allocator.sample()
        *_, latest = await usage(allocator, "1m")
        assert (latest.reserved, latest.batch) == (20, 0)
        assert (await usage(allocator, "1d"))[-1].observed_seconds == second.observed_seconds + 65
        assert await allocator.audit() == ()


@pytest.mark.parametrize("nodes", [1, 40])
async def test_a_minute_costs_the_same_few_rows_whatever_the_nodes(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = DatabaseUnderTest("sqlite:///:memory:", in_a_thread=False)
    database.clock.now = MIDNIGHT + 7
    written: list[str] = []
    execute_one = sqlite._execute

    def counting(connection: sqlite3.Connection, statement: Statement) -> Rows:
        if not isinstance(statement, Query):
            written.extend(change.sql.split()[0] for change in statement.each for _row in change.rows)
        elif not statement.sql.startswith("SELECT"):
            written.append(statement.sql.split()[0])
        return execute_one(connection, statement)

    async with database.replica() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/20"))
        for node in range(nodes):
            await allocator.put_container(wish(f"n{node}", 3, stated=StatedDemand(batch=16, high=node)))
        monkeypatch.setattr(sqlite, "_execute", counting)
        for _ in range(60):
            database.clock.now += 60
            await allocator.sample()
        counts = Counter(written)
        # Each minute, on average: two rows of 5s and of 1m, one of 15m (two at its end) and of 1d; three readings of demand;
        # the subnet's row; and a look for old rows of 5s and 1m (and once in a quarter of an hour of 15m).
        assert counts == {"INSERT": 60 * 6 + 4, "UPDATE": 60 * (3 + 1), "DELETE": 60 * 2 + 4}
