import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.errors import InvalidInput
from podtide.runtime.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30.0),
        ("100ms", 0.1),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("30", 30.0),
        ("0.5", 0.5),
        ("1.5m", 90.0),
        (" 2 s ", 2.0),
        ("0", 0.0),
    ],
)
def test_a_duration_is_read_in_its_unit(written: str, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "bad", ["", "s", "-1s", "1d", "1m30s", "1e3", "nan", "1_000", "٣s", "5 m s", "9" * 400]
)
def test_what_is_no_duration_is_refused_with_an_example_of_one(bad: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"^invalid duration .*: use a number and a unit \(ms, s, m or h\), such as 30s"
    ):
        parse_duration(bad)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.1, "100ms"),
        (30.0, "30s"),
        (90.0, "90s"),
        (300.0, "5m"),
        (7200.0, "2h"),
        (0.0, "0s"),
        (0.00015, "0.00015s"),
    ],
)
def test_a_duration_is_shown_in_the_largest_unit_that_keeps_it_whole(seconds: float, shown: str) -> None:
    assert format_duration(seconds) == shown


@given(st.decimals(min_value=0, max_value=10**6, places=6).map(float))
def test_what_is_shown_reads_back_as_the_same_duration(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
