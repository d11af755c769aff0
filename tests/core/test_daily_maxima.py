from datetime import date, timedelta

import pytest

from podtide.core.errors import InvalidInput
from podtide.core.forecast.daily_maxima import CapacityStep, DayMaximum, capacity_steps, daily_series

TODAY = date(2026, 3, 10)


def day(ago: int, most: int) -> DayMaximum:
    return DayMaximum(TODAY - timedelta(days=ago), most)


def test_days_come_in_order_and_once_with_their_largest_value() -> None:
    series = daily_series([day(1, 5), day(3, 7), day(1, 9), day(1, 8)], TODAY)
    assert series.days == (day(3, 7), day(1, 9))
    assert (series.running, series.missing, series.left_out) == (None, 1, ())


def test_the_day_that_is_not_over_is_set_apart() -> None:
    series = daily_series([day(0, 5), day(1, 4), day(0, 6)], TODAY)
    assert (series.days, series.running) == ((day(1, 4),), day(0, 6))


def test_without_a_record_there_is_an_empty_series() -> None:
    series = daily_series([], TODAY)
    assert (series.days, series.running, series.missing) == ((), None, 0)


def test_days_after_today_as_of_a_clock_that_was_ahead_are_left_out_and_said() -> None:
    series = daily_series([day(1, 4), day(-1, 5), day(-4_000, 5)], TODAY)
    assert series.days == (day(1, 4),)
    assert series.left_out == ("2 days were left out: after 2026-03-10, the day of the forecast",)


@pytest.mark.parametrize(("ago", "kept"), [(731, True), (732, False)])
def test_what_is_more_than_two_years_before_the_last_day_is_left_out_and_said(ago: int, kept: bool) -> None:
    series = daily_series([day(1, 4), day(ago, 5)], TODAY)
    assert len(series.days) == 1 + kept
    assert series.left_out == (() if kept else ("1 day was left out: more than two years before the last",))


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(InvalidInput, match="-1 addresses on 2026-03-09 are refused"):
        daily_series([day(1, -1)], TODAY)


def test_a_subnet_that_grew_has_a_step_on_the_day_of_it() -> None:
    capacities = [(TODAY, 500), (TODAY - timedelta(days=2), 250), (TODAY - timedelta(days=1), 250)]
    assert capacity_steps(capacities) == (CapacityStep(TODAY, 250, 500),)
