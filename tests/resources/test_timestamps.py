import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.resources.timestamps import InvalidTimestamp, to_micro_time, to_time, to_wall_seconds

moments = st.integers(0, 4_000_000_000)


def test_times_look_as_kubernetes_writes_them() -> None:
    assert to_time(1_750_000_000.987) == "2025-06-15T15:06:40Z"
    assert to_micro_time(1_750_000_000) == "2025-06-15T15:06:40.000000Z"
    assert to_micro_time(1_750_000_000.25) == "2025-06-15T15:06:40.250000Z"


@given(moments)
def test_a_second_reads_back_from_either_form(second: int) -> None:
    assert to_wall_seconds(to_time(second)) == to_wall_seconds(to_micro_time(second)) == second


@given(moments, st.integers(0, 999_999))
def test_a_microsecond_reads_back(second: int, micros: int) -> None:
    moment = second + micros / 1_000_000
    assert to_wall_seconds(to_micro_time(moment)) == pytest.approx(moment, abs=1e-6)


def test_other_zones_and_finer_fractions_of_other_writers_are_read() -> None:
    assert to_wall_seconds("2025-06-15T17:06:40+02:00") == 1_750_000_000
    assert to_wall_seconds("2025-06-15T15:06:40.250000999Z") == 1_750_000_000.25


@pytest.mark.parametrize("text", ["", "yesterday", "2025-06-15T15:06:40", "1750000000"])
def test_what_is_no_time_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(InvalidTimestamp, match="write one such as"):
        to_wall_seconds(text)
