"""Counts over time: means and quantiles weigh a level by how long it lasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.simulation.replay.levels import LevelHistogram, nearest_rank


def test_a_level_counts_as_long_as_it_lasts() -> None:
    idle = LevelHistogram(10, 100.0)
    idle.move(20, 190.0)
    idle.move(0, 200.0)
    idle.move(0, 300.0)
    assert idle.mean() == pytest.approx((90 * 10 + 10 * 20) / 200)
    assert [idle.quantile(part) for part in (0.5, 0.9, 0.95, 0.99)] == [0, 10, 10, 20]


def test_what_lasted_no_time_does_not_count() -> None:
    idle = LevelHistogram(3, 0.0)
    assert (idle.mean(), idle.quantile(0.99)) == (3.0, 3)
    idle.move(1000, 5.0)
    idle.move(3, 5.0)
    idle.move(3, 10.0)
    assert (idle.mean(), idle.quantile(0.99)) == (3.0, 3)


def test_a_rank_is_one_of_the_values() -> None:
    assert [nearest_rank([1.0, 2.0, 3.0, 4.0], percent) for percent in (1, 50, 51, 99, 100)] == [
        1,
        2,
        3,
        4,
        4,
    ]
    assert nearest_rank([], 99) == 0.0


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_so_many_percent_are_at_or_under_the_rank(values: list[float], percent: int) -> None:
    ordered = sorted(values)
    found = nearest_rank(ordered, percent)
    assert 100 * sum(value <= found for value in ordered) >= percent * len(ordered)
    assert 100 * sum(value < found for value in ordered) < percent * len(ordered)
