from datetime import date, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import thresholds
from examples import examples
from podtide.core.errors import InvalidInput
from podtide.core.forecast.daily_maxima import DayMaximum
from podtide.core.forecast.usage_forecast import (
    Level,
    LevelForecast,
    UsageForecast,
    forecast_usage,
    usage_model,
)
from podtide.core.subnet.exhaustion import Thresholds

FIRST = date(2026, 3, 2)
"""A Monday."""
HISTORIES = st.lists(st.integers(0, 1_000), min_size=7, max_size=28)


def history(values: list[int], first: date = FIRST) -> list[DayMaximum]:
    return [DayMaximum(first + timedelta(days=number), value) for number, value in enumerate(values)]


def forecast_of(
    values: list[int], capacity: int = 1_000, band: Thresholds | None = None, first: date = FIRST
) -> UsageForecast:
    """What comes after these days, from the day after the last."""
    return forecast_usage(
        history(values, first),
        capacity=capacity,
        thresholds=band or Thresholds(),
        today=first + timedelta(days=len(values)),
    )


def reaching(forecast: UsageForecast, level: Level = Level.CAPACITY) -> LevelForecast:
    found = forecast.reaching(level)
    assert found is not None
    return found


@examples(20)
@given(st.integers(0, 500), st.integers(1, 50), st.integers(7, 40), st.integers(1, 300))
def test_growth_by_the_same_number_every_day_gives_the_exact_day(
    begin: int, growth: int, days: int, ahead: int
) -> None:
    capacity = begin + growth * (days - 1 + ahead)
    found = forecast_of([begin + growth * day for day in range(days)], capacity)
    last = FIRST + timedelta(days=days - 1)
    assert found.growth_per_day == pytest.approx(growth)
    expected = last + timedelta(days=ahead)
    full = reaching(found)
    assert (full.expected, full.earliest, full.latest) == (expected, expected, expected)


def test_a_level_between_two_days_is_reached_on_the_later_one() -> None:
    found = forecast_of([100 + 10 * day for day in range(10)], 255)
    assert reaching(found).expected == FIRST + timedelta(days=16)  # 250 on the 15th day after the first


@examples(20)
@given(st.integers(0, 900), st.integers(7, 40))
def test_use_that_stays_the_same_reaches_nothing_within_a_year(value: int, days: int) -> None:
    found = forecast_of([value] * days, 1_200)
    assert found.growth_per_day == 0
    assert [(each.expected, each.earliest, each.latest) for each in found.levels if each.since is None] == [
        (None, None, None)
    ] * sum(each.since is None for each in found.levels)


@examples(20)
@given(st.integers(1, 20), st.integers(8, 40))
def test_use_that_falls_reaches_nothing_within_a_year(fall: int, days: int) -> None:
    found = forecast_of([1_000 - fall * day for day in range(days)], 1_300)
    assert {(each.expected, each.latest) for each in found.levels} == {(None, None)}


@examples(20)
@given(HISTORIES, st.integers(1, 2_000), thresholds())
def test_dates_are_in_order_within_a_level_and_between_levels(
    values: list[int], capacity: int, band: Thresholds
) -> None:
    found = forecast_of(values, capacity, band)
    never = date.max
    for each in found.levels:
        assert (each.earliest or never) <= (each.expected or never) <= (each.latest or never)
    lower, upper, full = found.levels
    assert (lower.level, upper.level, full.level) == (Level.LOWER, Level.UPPER, Level.CAPACITY)
    assert lower.addresses <= upper.addresses <= full.addresses == capacity
    for sooner, later in ((lower, upper), (upper, full)):
        for name in ("expected", "earliest", "latest"):
            first = sooner.since or getattr(sooner, name) or never
            assert first <= (later.since or getattr(later, name) or never)


@examples(20)
@given(HISTORIES, st.integers(1, 2_000), st.integers(1, 1_000))
def test_more_use_every_day_in_a_subnet_that_is_larger_by_as_much_changes_no_date(
    values: list[int], capacity: int, more: int
) -> None:
    before = reaching(forecast_of(values, capacity))
    after = reaching(forecast_of([value + more for value in values], capacity + more))
    assert (after.since, after.expected, after.earliest, after.latest) == (
        before.since,
        before.expected,
        before.earliest,
        before.latest,
    )


@examples(20)
@given(HISTORIES, st.integers(1, 2_000), st.integers(-1_000, 1_000))
def test_the_same_history_at_another_time_shifts_every_date_by_as_much(
    values: list[int], capacity: int, days: int
) -> None:
    shift = timedelta(days=days)

    def shifted(day: date | None) -> date | None:
        return day and day + shift

    before, after = forecast_of(values, capacity), forecast_of(values, capacity, first=FIRST + shift)
    for one, other in zip(before.levels, after.levels, strict=True):
        assert (other.since, other.expected) == (shifted(one.since), shifted(one.expected))
        assert (other.earliest, other.latest) == (shifted(one.earliest), shifted(one.latest))


@examples(20)
@given(HISTORIES, st.randoms(use_true_random=False))
def test_neither_the_order_of_days_nor_their_repetition_matters(values: list[int], random: Random) -> None:
    days = history(values)
    today = FIRST + timedelta(days=len(values))
    disordered = [*days, *random.sample(days, len(days) // 2)]
    random.shuffle(disordered)
    found, expected = (
        forecast_usage(each, capacity=1_200, thresholds=Thresholds(), today=today)
        for each in (disordered, days)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("days", "words"), [(0, "is no full day"), (1, "is 1 full day"), (6, "are 6 full days")]
)
def test_with_less_than_a_week_no_date_is_named(days: int, words: str) -> None:
    found = forecast_of([100 + day for day in range(days)])
    assert found.basis == f"no date is named: there {words} of history, and it takes 7"
    assert (found.levels, found.growth_per_day, found.reaching(Level.CAPACITY)) == ((), None, None)


def test_a_week_is_enough_and_says_that_it_is_little() -> None:
    found = forecast_of([100 + 10 * day for day in range(7)])
    assert reaching(found).expected == FIRST + timedelta(days=90)
    assert found.basis == (
        "rests on the maxima of 7 days, 2026-03-02 to 2026-03-08, without a weekly pattern; "
        "too few to try a forecast of a week on them"
    )


@pytest.mark.parametrize(("days", "tried"), [(12, "once"), (13, "from 2 days")])
def test_the_sentence_says_how_far_off_earlier_forecasts_were(days: int, tried: str) -> None:
    found = forecast_of([100 + 10 * day for day in range(days)])
    assert found.basis.endswith(f"; a week ahead, tried {tried} of them, it was off by 0 on average")


def test_missing_days_are_said_and_do_not_bend_a_line() -> None:
    days = [each for each in history([100 + 10 * day for day in range(30)]) if each.day.day % 5]
    found = forecast_usage(days, capacity=1_000, thresholds=Thresholds(), today=FIRST + timedelta(days=30))
    assert reaching(found).expected == FIRST + timedelta(days=90)
    assert ", 6 missing, " in found.basis


def test_a_day_that_is_not_over_does_not_count_as_low_use() -> None:
    today = FIRST + timedelta(days=20)
    days = [*history([100 + 10 * day for day in range(20)]), DayMaximum(today, 3)]
    found = forecast_usage(days, capacity=1_000, thresholds=Thresholds(), today=today)
    assert reaching(found).expected == FIRST + timedelta(days=90)
    assert found.last == DayMaximum(today - timedelta(days=1), 290)


@pytest.mark.parametrize("running", [None, 3, 1_000])
def test_a_level_that_is_reached_says_since_when_whatever_the_day_so_far_shows(running: int | None) -> None:
    values = [700, 950, 700, 700, 750, 860, 910, 920, 930]
    today = FIRST + timedelta(days=len(values))
    days = history(values) + ([] if running is None else [DayMaximum(today, running)])
    found = forecast_usage(days, capacity=1_000, thresholds=Thresholds(), today=today)
    assert reaching(found, Level.LOWER).since == FIRST + timedelta(days=5)
    upper = reaching(found, Level.UPPER)
    assert (upper.since, upper.expected, upper.earliest) == (FIRST + timedelta(days=6), None, None)
    assert reaching(found).since == (today if running == 1_000 else None)


def test_a_date_that_has_passed_without_a_record_is_today() -> None:
    silent = FIRST + timedelta(days=40)
    days = history([100 + 10 * day for day in range(20)])
    found = forecast_usage(days, capacity=300, thresholds=Thresholds(), today=silent)
    assert reaching(found).expected == silent


@pytest.mark.parametrize(("ahead", "is_named"), [(365, True), (366, False)])
def test_a_date_is_named_up_to_a_year_from_today(ahead: int, is_named: bool) -> None:
    found = forecast_of(list(range(10)), 10 + ahead)
    assert (reaching(found).expected is not None) == is_named


def test_weekdays_that_differ_are_shown_and_told_from_growth() -> None:
    values = [500 + 2 * day - (100 if day % 7 >= 5 else 0) for day in range(42)]
    found = forecast_of(values, 640)
    assert found.growth_per_day == pytest.approx(2, abs=0.05)
    assert found.weekdays == pytest.approx([200 / 7] * 5 + [-500 / 7] * 2, abs=1)
    assert "with a term for each weekday" in found.basis
    # The line is at 640 on a Sunday, 70 days after the first; weekends are below it.
    assert reaching(found).expected == FIRST + timedelta(days=70)


def test_one_day_of_a_load_test_is_not_growth() -> None:
    values = [500 + day % 3 for day in range(30)]
    values[26] = 900
    found = forecast_of(values)
    assert found.growth_per_day == pytest.approx(0, abs=0.6)
    assert reaching(found).expected is None


def test_noise_makes_a_band() -> None:
    random = Random(7)
    found = forecast_of([round(300 + 5 * day + random.gauss(0, 20)) for day in range(60)])
    full = reaching(found)
    assert full.earliest is not None
    assert full.expected is not None
    assert full.latest is not None
    assert full.earliest < full.expected < full.latest


@examples(20)
@given(HISTORIES)
def test_a_quantile_grows_with_its_part(values: list[int]) -> None:
    model = usage_model(tuple(history(values)))
    for ahead in (1, 7, 30):
        parts = [model.quantile(part, ahead) for part in (0.05, 0.25, 0.75, 0.9, 0.95)]
        assert parts == sorted(parts)
        assert model.lowest(ahead) == pytest.approx(parts[0])
        assert model.highest(ahead) == pytest.approx(parts[-1])
        assert parts[0] <= model.value(ahead) <= parts[-1]


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_subnet_without_addresses_is_refused(capacity: int) -> None:
    with pytest.raises(InvalidInput, match=f"capacity {capacity} is too small"):
        forecast_of([1] * 10, capacity)
