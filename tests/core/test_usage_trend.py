from statistics import linear_regression

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from podtide.core.forecast.forecast_band import forecast_band, quantile
from podtide.core.forecast.usage_trend import (
    ForecastError,
    Point,
    RollingTrend,
    candidate_lines,
    robust_slope,
)
from podtide.core.forecast.weekly_pattern import weekly_pattern


def points(values: list[float]) -> list[Point]:
    return [Point(number + 1 - len(values), value) for number, value in enumerate(values)]


@examples(40)
@given(st.integers(-20, 20), st.integers(14, 56), st.integers(0, 55))
def test_one_value_far_off_moves_the_slope_by_less_than_half_of_what_least_squares_lets_it(
    slope: int, days: int, at: int
) -> None:
    values = [float(slope * day + day % 2) for day in range(days)]
    values[at % days] += 500
    least_squares = linear_regression(range(days), values).slope
    assert abs(robust_slope(points(values)) - slope) <= abs(least_squares - slope) / 2 + 0.2


def test_six_lines_are_drawn_by_three_windows_and_two_levels() -> None:
    lines = candidate_lines(points([0.0] * 60 + [10.0, 20.0, 30.0]))
    assert len(lines) == 6
    assert len({line.slope for line in lines}) == 3
    assert [line.level for line in lines[::2]] == [30.0] * 3


def test_the_line_that_did_better_before_counts_more() -> None:
    """Where use grows in steps that stay, the last value is the level, though it has just jumped."""
    steps = points([float(100 * (day // 9)) for day in range(37)])
    last, of_three = candidate_lines(steps)[:2]
    assert last.level == 400
    assert of_three.level < 350
    assert RollingTrend(steps, 90).line().level > (last.level + of_three.level) / 2


def test_errors_are_those_of_the_days_that_are_not_further_ahead_than_a_week() -> None:
    gapped = [Point(day, 0.0) for day in (-30, -29, -28, -27, -26, -20, -19, -2, 0)]
    errors = RollingTrend(gapped, 90).errors()
    assert [error.days_ahead for error in errors] == [6, 7, 1, 2]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.floats(0, 1))
def test_a_quantile_lies_among_the_values(values: list[float], part: float) -> None:
    ordered = sorted(values)
    assert ordered[0] <= quantile(ordered, part) <= ordered[-1]


def test_a_quantile_between_two_values_is_in_line_with_them() -> None:
    assert quantile([0.0, 10.0, 20.0], 0.5) == 10
    assert quantile([0.0, 10.0, 20.0], 0.625) == 15


def test_without_errors_there_is_no_band() -> None:
    band = forecast_band([], 0)
    assert (band.below(3), band.above(3)) == (0, 0)


@given(st.sampled_from([0.3, 0.5, 0.8]))
def test_the_band_grows_with_the_days_as_the_errors_did(power: float) -> None:
    errors = [ForecastError(days, sign * days**power) for days in range(1, 8) for sign in (1, -1) * 5]
    band = forecast_band(errors, 10_000)
    assert band.power == pytest.approx(power)
    assert band.above(100) == pytest.approx(100**power, rel=0.02)
    assert band.below(100) == pytest.approx(-(100**power), rel=0.02)


@pytest.mark.parametrize(("power", "taken"), [(0.0, 0.2), (2.0, 1.0)])
def test_a_band_neither_stays_as_it_is_nor_grows_faster_than_the_days(power: float, taken: float) -> None:
    errors = [ForecastError(days, days**power) for days in range(1, 8) for _ in range(5)]
    assert forecast_band(errors, 10).power == taken


def test_few_independent_errors_widen_the_band() -> None:
    errors = [ForecastError(1, 1.0)] * 5
    by_origins = [forecast_band(errors, origins).above(1) for origins in (2, 5, 50, 5_000)]
    assert by_origins == sorted(by_origins, reverse=True)
    assert by_origins[0] == pytest.approx(1.68, abs=0.01)  # Student's quantile is 1.78 times the normal one
    assert by_origins[-1] == pytest.approx(1, abs=0.001)
    assert forecast_band(errors, 1).above(1) == by_origins[0]


def test_errors_of_one_sign_make_the_band_wider_on_that_side() -> None:
    band = forecast_band([ForecastError(1, float(off)) for off in range(20)], 20)
    assert band.above(1) > -band.below(1) > 0


WEEKEND = [100.0, 100.0, 100.0, 100.0, 100.0, 30.0, 30.0]


def test_a_weekly_pattern_takes_three_weeks() -> None:
    assert weekly_pattern(points((WEEKEND * 4)[:20])) is None
    assert weekly_pattern(points(WEEKEND * 3)) == pytest.approx((-50, 20, 20, 20, 20, 20, -50))


def test_a_pattern_sums_up_to_nothing_whatever_the_trend() -> None:
    pattern = weekly_pattern(points([value + 3 * day for day, value in enumerate(WEEKEND * 6)]))
    assert pattern is not None
    assert sum(pattern) == pytest.approx(0)
    assert pattern == pytest.approx((-50, 20, 20, 20, 20, 20, -50))


def test_weekdays_that_do_not_repeat_themselves_have_no_pattern() -> None:
    assert weekly_pattern(points([float((day * 37) % 11) for day in range(60)])) is None


def test_too_many_gaps_leave_no_pattern() -> None:
    gapped = [point for point in points(WEEKEND * 4) if point.day % 6]
    assert weekly_pattern(gapped) is None


def test_use_that_never_changes_has_no_pattern() -> None:
    assert weekly_pattern(points([5.0] * 40)) is None
