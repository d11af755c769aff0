"""Rows of time: which there are, how long they are kept, and what a clock that jumps does to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.subnet.usage_series import (
    DAYS,
    FIVE_SECONDS,
    LONGEST_STRETCH_MS,
    MINUTES,
    MOST_ROWS,
    QUARTERS,
    SERIES,
    UsageSeries,
    choose_series,
    countable_ms,
    divide,
    is_reading_due,
    is_set_back,
    to_milliseconds,
)

NOW = 1_750_000_000.0
DAY = 86_400
moments = st.integers(0, 4_000_000_000_000)


def test_days_are_kept_for_two_years_and_the_other_series_for_as_long_as_ever() -> None:
    assert [(series.name, series.kept_seconds) for series in SERIES] == [
        ("5s", 3_600),
        ("1m", DAY),
        ("15m", 90 * DAY),
        ("1d", 731 * DAY),
    ]
    assert [series.most_rows for series in SERIES] == [721, 1_441, 8_641, 732]
    assert MOST_ROWS == 8_641


@given(moments, st.integers(0, LONGEST_STRETCH_MS), st.sampled_from(SERIES))
def test_a_stretch_of_time_is_divided_among_the_rows_it_goes_through(
    since: int, length: int, series: UsageSeries
) -> None:
    parts = divide(series, since, since + length)
    assert all(part.length_ms > 0 for part in parts)
    assert all(part.length_ms <= series.step_ms for part in parts)
    assert [series.slot(part.since_ms) for part in parts] == [part.slot for part in parts]
    assert sorted({part.slot for part in parts}) == [part.slot for part in parts]
    if series is FIVE_SECONDS:
        assert len(parts) <= 2
    else:
        assert sum(part.length_ms for part in parts) == length


@given(moments)
def test_milliseconds_survive_a_database_that_keeps_seconds(moment: int) -> None:
    assert to_milliseconds(moment / 1_000) == moment


@given(st.floats(0, 4e9), st.sampled_from(SERIES))
def test_as_many_rows_are_kept_as_fit_in_the_time_with_the_one_that_has_begun(
    now: float, series: UsageSeries
) -> None:
    newest = int(now // series.step_seconds)
    assert newest - series.oldest_slot(now) + 1 == series.most_rows


def test_a_longer_stretch_than_five_minutes_is_not_counted_and_neither_is_one_that_is_yet_to_come() -> None:
    assert countable_ms(1_000, 1_000) == 0
    assert countable_ms(1_000, 1_000 + 300_000) == 300_000
    assert countable_ms(1_000, 1_001 + 300_000) is None
    assert countable_ms(1_000, 999) is None


def test_a_clock_that_is_a_little_behind_is_another_replicas() -> None:
    assert not is_set_back(400_000, 500_000)
    assert not is_set_back(400_000, 100_000)
    assert is_set_back(400_000, 99_999)


def test_of_replicas_that_read_every_minute_one_does() -> None:
    assert not is_reading_due(1_000_000, 1_049_999)
    assert is_reading_due(1_000_000, 1_050_000)
    assert not is_reading_due(1_000_000, 700_000)
    assert is_reading_due(1_000_000, 699_999), "the clock was set back"


@pytest.mark.parametrize(
    ("ago", "series"),
    [
        (0, FIVE_SECONDS),
        (3_600, FIVE_SECONDS),
        (3_610, MINUTES),
        (DAY, MINUTES),
        (DAY + 60, QUARTERS),
        (90 * DAY, QUARTERS),
        (91 * DAY, DAYS),
        (5_000 * DAY, DAYS),
    ],
)
def test_the_finest_series_that_reaches_back_is_chosen(ago: int, series: UsageSeries) -> None:
    assert choose_series(NOW - ago, NOW, NOW) is series


@pytest.mark.parametrize(
    ("ago", "series"),
    [
        (500, FIVE_SECONDS),
        (501, MINUTES),
        (6_000, MINUTES),
        (6_001, QUARTERS),
        (DAY, QUARTERS),
        (2 * DAY, DAYS),
        (300 * DAY, DAYS),
    ],
)
def test_for_people_the_finest_is_chosen_that_fits_a_page(ago: int, series: UsageSeries) -> None:
    assert choose_series(NOW - ago, NOW + 5 * DAY, NOW, most_rows=100) is series


def test_a_short_time_long_ago_is_read_from_the_series_that_has_it() -> None:
    assert choose_series(NOW - 2 * DAY, NOW - 2 * DAY + 60, NOW, most_rows=100) is QUARTERS
