"""On which day a subnet runs out: how it is told, how seldom that is written, and what it costs the allocator."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, Replica, World, a_world, condition, moment
from examples import examples
from podtide.allocator.errors import AllocatorUnavailable
from podtide.controller.metrics import ControllerMetrics
from podtide.controller.subnets.forecasts import EVERY_SECONDS
from podtide.controller.subnets.runs_out import (
    RUNS_OUT,
    SubnetForecast,
    run_out_in,
    run_out_notice,
    run_out_warning,
)
from podtide.core.forecast.daily_maxima import DayMaximum
from podtide.core.forecast.usage_forecast import Level, LevelForecast, UsageForecast, forecast_usage
from podtide.core.subnet.exhaustion import Thresholds
from podtide.resources.cluster_subnet import ClusterSubnetStatus
from podtide.resources.conditions import with_condition
from podtide.runtime.settings import Settings

DAY = 86_400.0
BEGUN = date(2025, 6, 15)
"""The day on which virtual time begins."""
TODAY = date(2026, 3, 2)
NOW = "2026-03-02T08:00:00Z"
SELDOM = Settings(poll_seconds=60.0)
"""So that hours of virtual time take seconds."""


async def a_history(world: World, days: int, growth: int = 4, begin: int = 20) -> None:
    """So many days on each of which more is reserved."""
    for day in range(days):
        await world.reserve(begin + growth * day)
        await asyncio.sleep(DAY)


def asked(replica: Replica) -> int:
    calls = replica.controller.metrics.allocator_calls
    return sum(count for (method, _outcome), count in calls.items() if method == "usage_history")


async def test_the_day_and_what_it_rests_on_stand_in_the_cluster_subnet() -> None:
    async with a_world() as world:  # 253 addresses
        await a_history(world, 20)
        world.replica(settings=SELDOM).start()
        await moment(1_000)
        shown = await world.cluster_subnet()
        # 96 on the last full day, 157 are missing, and 4 come every day.
        expected = BEGUN + timedelta(days=19 + 40)
        assert shown.status.runs_out == expected.isoformat()
        told = condition(shown, RUNS_OUT)
        assert (told.status, told.reason) == ("True", "Later")
        assert told.message.startswith(
            f"all 253 addresses are reserved on {expected} (at 90 % between {expected} and {expected}); +4.0 a day; "
            "rests on the maxima of 20 days, 2025-06-15 to 2025-07-04"
        )
        assert "RunsOutSoon" not in await world.events()


async def test_it_is_computed_once_an_hour_and_written_when_it_moved() -> None:
    async with a_world() as world:
        await a_history(world, 20)
        replica = world.replica(settings=SELDOM)
        replica.start()
        await moment(1_000)
        assert asked(replica) == 1
        replica.cluster.writes.clear()
        await moment(6 * EVERY_SECONDS)
        assert asked(replica) == 7
        assert replica.cluster.writes == []


async def test_a_day_that_comes_near_is_an_event_once() -> None:
    async with a_world() as world:
        await a_history(world, 20)
        replica = world.replica(settings=SELDOM)
        replica.start()
        await moment(1_000)
        await replica.stop()
        await a_history(world, 12, begin=100)
        for _ in range(2):  # the second leader knows what the first has told
            again = world.replica(settings=SELDOM)
            again.start()
            await moment(2 * EVERY_SECONDS)
            await again.stop()
        shown = await world.cluster_subnet()
        assert condition(shown, RUNS_OUT).reason == "Soon"
        assert (await world.events(shown)).count("RunsOutSoon") == 1


async def test_a_week_is_awaited_before_anything_is_said() -> None:
    async with a_world() as world:
        await a_history(world, 6)
        replica = world.replica(settings=SELDOM)
        replica.start()
        await moment(1_000)
        assert asked(replica) == 1
        shown = await world.cluster_subnet()
        assert (run_out_in(shown.status), shown.status.runs_out) == (None, "")


async def test_a_subnet_that_got_a_cidr_is_forecast_at_once_without_asking_again() -> None:
    async with a_world() as world:
        await a_history(world, 20)
        replica = world.replica(settings=SELDOM)
        replica.start()
        await moment(1_000)
        await world.allocator.grow_subnet("blue", "pods", ("10.9.0.0/24",))
        await moment(130)
        expected = BEGUN + timedelta(days=19 + 103)  # 506 - 96 = 410 are missing
        assert (await world.cluster_subnet()).status.runs_out == expected.isoformat()
        assert asked(replica) == 1


async def test_an_allocator_without_a_history_costs_a_call_an_hour_and_a_line() -> None:
    async with a_world() as world:
        await a_history(world, 20)
        world.allocator.faults = Script(usage_history=[AllocatorUnavailable("no such path")] * 100)
        replica = world.replica(settings=SELDOM)
        replica.start()
        await moment(1_000)
        replica.cluster.writes.clear()
        await moment(5 * EVERY_SECONDS)
        assert asked(replica) == 6
        assert replica.cluster.writes == []
        assert world.lines.getvalue().count("a subnet has no forecast") == 1
        assert run_out_in((await world.cluster_subnet()).status) is None
        reach = [each.type for each in (await world.cluster_subnet()).status.conditions]
        assert "AllocatorReachable" not in reach


async def test_without_cluster_subnets_the_metrics_tell_it() -> None:
    async with a_world() as world:
        await a_history(world, 20)
        replica = world.replica(structs.replace(OPTIONS, cluster_subnets=False), SELDOM)
        replica.start()
        await moment(1_000)
        day = datetime(2025, 6, 15, tzinfo=UTC) + timedelta(days=59)
        text = ControllerMetrics(replica.controller.metrics).render().decode()
        found = {
            family.name: [(sample.labels, sample.value) for sample in family.samples]
            for family in text_string_to_metric_families(text)
        }
        for name in ("runs_out", "runs_out_earliest", "runs_out_latest"):
            assert found[f"podtide_subnet_{name}_timestamp_seconds"] == [
                ({"subnet": "pods"}, day.timestamp())
            ]


async def test_a_subnet_that_no_node_uses_any_more_is_forgotten() -> None:
    async with a_world() as world:
        await world.add_subnet("10.5.0.0/24", "other")
        replica = world.replica(settings=SELDOM)
        replica.start()
        await world.add_node("n1", {"podtide.io/subnet": "other"})
        await moment(1_000)
        assert set(replica.controller.metrics.run_outs) == {"pods", "other"}
        await world.remove_node("n1")
        await moment(2 * EVERY_SECONDS)
        assert set(replica.controller.metrics.run_outs) == {"pods"}


def a_forecast(
    expected: date | None, *, since: date | None = None, today: date = TODAY, need: bool = False
) -> SubnetForecast:
    level = LevelForecast(level=Level.CAPACITY, addresses=250, since=since, expected=expected)
    reserved = UsageForecast(
        as_of=today,
        last=DayMaximum(today - timedelta(days=1), 200),
        growth_per_day=1.5,
        weekdays=(),
        levels=(level,),
        basis="rests on a test",
        left_out=(),
    )
    return SubnetForecast(reserved, reserved if need else structs.replace(reserved, levels=()))


def told(before: ClusterSubnetStatus, forecast: SubnetForecast) -> ClusterSubnetStatus:
    """The status after the forecast; the same one if nothing is to be written."""
    notice = run_out_notice(before, forecast, 30, 1, NOW)
    if notice is None:
        return before
    conditions = with_condition(before.conditions, notice.condition)
    return structs.replace(before, conditions=conditions, runs_out=notice.runs_out)


def in_days(days: int) -> date:
    return TODAY + timedelta(days=days)


@pytest.mark.parametrize(
    ("shown", "now", "is_written"),
    [
        (100, 100, False),
        (100, 109, False),
        (100, 112, True),
        (100, 91, False),
        (100, 90, True),
        (8, 8, False),
        (8, 9, True),
        (8, 7, True),
        (31, 30, True),  # within the warning
        (30, 31, False),  # and not out of it by a day
        (30, 34, True),
        (None, None, False),
        (None, 340, False),  # at the edge of a year
        (None, 300, True),
        (340, None, False),
        (300, None, True),
    ],
)
def test_a_date_is_written_when_it_moved_by_a_tenth_of_the_time_left_and_a_day(
    shown: int | None, now: int | None, is_written: bool
) -> None:
    dates = [None if days is None else in_days(days) for days in (shown, now)]
    before = told(ClusterSubnetStatus(), a_forecast(dates[0]))
    after = told(before, a_forecast(dates[1]))
    assert (after != before) == is_written
    if is_written:
        assert after.runs_out == ("" if dates[1] is None else dates[1].isoformat())


@examples(20)
@given(st.integers(31, 365))
def test_a_date_that_stays_is_written_again_only_when_it_has_come_near(ahead: int) -> None:
    day = in_days(ahead)
    status = told(ClusterSubnetStatus(), a_forecast(day))
    writes = 0
    for passed in range(1, ahead):
        after = told(status, a_forecast(day, today=TODAY + timedelta(days=passed)))
        writes += after != status
        status = after
    assert writes == 1
    found = run_out_in(status)
    assert found is not None
    assert found.reason == "Soon"


@pytest.mark.parametrize(
    ("forecast", "status", "reason", "words"),
    [
        (a_forecast(in_days(100)), "True", "Later", "all 250 addresses are reserved on 2026-06-10 (at 90 %"),
        (a_forecast(in_days(30)), "True", "Soon", "between a year from now and a year from now); +1.5 a day"),
        (a_forecast(in_days(9), need=True), "True", "Soon", ", with batch 1 on 2026-03-11; "),
        (a_forecast(None), "False", "NotWithinAYear", "the 250 addresses are not all reserved within a year"),
        (a_forecast(None, since=TODAY), "True", "Full", "all 250 addresses were reserved on 2026-03-02; "),
    ],
)
def test_the_condition_says_what_comes_and_why(
    forecast: SubnetForecast, status: str, reason: str, words: str
) -> None:
    found = run_out_in(told(ClusterSubnetStatus(), forecast))
    assert found is not None
    assert (found.status, found.reason) == (status, reason)
    assert words in found.message


def test_a_need_that_never_fills_the_subnet_is_said() -> None:
    short = a_forecast(in_days(10))
    found = run_out_in(told(ClusterSubnetStatus(), SubnetForecast(short.reserved, a_forecast(None).reserved)))
    assert found is not None
    assert ", with batch 1 not within a year; " in found.message


@pytest.mark.parametrize(
    ("shown", "now", "is_warned"),
    [
        (None, a_forecast(in_days(10)), True),
        (a_forecast(in_days(100)), a_forecast(in_days(10)), True),
        (a_forecast(None), a_forecast(None, since=TODAY), True),
        (a_forecast(in_days(20)), a_forecast(in_days(10)), False),
        (a_forecast(in_days(20)), a_forecast(None, since=TODAY), False),
        (a_forecast(in_days(20)), a_forecast(in_days(100)), False),
        (None, a_forecast(in_days(100)), False),
        (None, a_forecast(None), False),
    ],
)
def test_people_are_warned_when_the_date_comes_near_and_not_again(
    shown: SubnetForecast | None, now: SubnetForecast, is_warned: bool
) -> None:
    before = told(ClusterSubnetStatus(), shown) if shown else ClusterSubnetStatus()
    assert bool(run_out_warning(before, told(before, now))) == is_warned
    assert run_out_warning(before, before) == ""


def test_a_subnet_that_stays_full_is_not_written_again_and_one_that_is_no_longer_full_is() -> None:
    full = told(ClusterSubnetStatus(), a_forecast(None, since=TODAY))
    assert told(full, a_forecast(None, since=TODAY - timedelta(days=3))) == full
    assert told(full, a_forecast(in_days(1))) != full
    assert told(full, a_forecast(None)) != full


def test_a_date_that_somebody_spoilt_is_written_again() -> None:
    before = structs.replace(told(ClusterSubnetStatus(), a_forecast(in_days(50))), runs_out="soon")
    assert told(before, a_forecast(in_days(50))).runs_out == in_days(50).isoformat()


def test_without_a_date_the_status_stays_as_it_is() -> None:
    nothing = forecast_usage([], capacity=250, thresholds=Thresholds(), today=TODAY)
    before = told(ClusterSubnetStatus(), a_forecast(in_days(50)))
    assert told(before, SubnetForecast(nothing, nothing)) == before
