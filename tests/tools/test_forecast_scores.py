"""The yardstick is the published one, and podtide's forecast is measured by it."""

import pytest

from forecast_scores import (
    BASELINES,
    GENERATORS,
    band_scores,
    date_score,
    drawn,
    errors,
    origins,
    pinball,
    podtide,
    trace_maxima,
)

TRACE = trace_maxima()


def test_the_trace_has_31_days_and_15_origins() -> None:
    assert (len(TRACE), TRACE[0], TRACE[-1]) == (31, 4564, 5467)
    assert len(origins(len(TRACE))) == 15


@pytest.mark.parametrize(
    ("baseline", "a_week_ahead", "within_a_week"),
    [
        ("last value", 278, 178),
        ("drift", 142, 119),
        ("least squares, 14 days", 181, 128),
        ("Theil-Sen, 14 days", 206, 147),
    ],
)
def test_the_simple_forecasts_score_what_was_published_for_the_trace(
    baseline: str, a_week_ahead: int, within_a_week: int
) -> None:
    found = errors(BASELINES[baseline], [TRACE])
    assert found.a_week_ahead == pytest.approx(a_week_ahead, abs=0.6)  # 277.47 was published as 278
    assert found.within_a_week == pytest.approx(within_a_week, abs=0.6)


def test_podtide_is_closer_to_the_trace_than_every_simple_forecast() -> None:
    own = errors(podtide, [TRACE]).within_a_week
    assert own < min(errors(each, [TRACE]).within_a_week for each in BASELINES.values()) - 5


def test_the_band_holds_85_to_95_percent_of_the_days_of_the_trace() -> None:
    assert 0.85 <= band_scores([TRACE]).coverage <= 0.95


def test_over_all_drawn_histories_podtide_is_closer_than_every_simple_forecast() -> None:
    """By the geometric mean, so that a kind with large numbers does not decide alone."""

    def product(forecast: str) -> float:
        chosen = podtide if forecast == "podtide" else BASELINES[forecast]
        total = 1.0
        for generator in GENERATORS:
            total *= errors(chosen, drawn(generator, 3, 60), every=8).within_a_week
        return total

    assert product("podtide") < min(map(product, BASELINES))


def test_a_quantile_that_is_passed_costs_its_part_and_one_that_is_not_the_rest() -> None:
    assert pinball(0.9, 100, 110) == pytest.approx(9)
    assert pinball(0.9, 100, 90) == pytest.approx(1)


def test_dates_of_steady_growth_are_right_within_days() -> None:
    found = date_score(drawn("linear", 10, 120), known=60, ahead=30)
    assert found.error_days < 10
    assert found.within >= 0.8


def test_drawn_histories_are_the_same_every_time() -> None:
    assert drawn("steps", 2, 20) == drawn("steps", 2, 20)
    assert drawn("steps", 2, 20)[0] != drawn("steps", 2, 20)[1]
