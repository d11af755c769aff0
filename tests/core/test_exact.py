from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, text


@pytest.mark.parametrize(
    ("given_value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (" 50% ", Fraction(1, 2)),
        (2, Fraction(2)),
        (Fraction(7, 4), Fraction(7, 4)),
        (1e-05, Fraction(1, 100_000)),
    ],
)
def test_a_number_means_what_a_person_wrote(given_value: float | str | Fraction, meant: Fraction) -> None:
    assert exact(given_value) == meant


@pytest.mark.parametrize(
    "bad",
    ["", "half", "1/0", "%", "1e999", "1e-5000", "9" * 5000, "1.2.3", "1_000", float("nan"), float("inf")],
)
def test_what_is_no_number_is_refused_by_name(bad: float | str) -> None:
    with pytest.raises(InvalidInput, match=r"^buffer .* is not a number: give a decimal or a fraction"):
        exact(bad, "buffer")


def test_what_is_refused_is_quoted_in_one_line() -> None:
    with pytest.raises(InvalidInput) as refused:
        exact("9" * 5000)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(1, 2), "0.5"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(2304, 10), "230.4"),
        (48, "48"),
        (0, "0"),
        (Fraction(1, 1000), "0.001"),
        (Fraction(100), "100"),
        (Fraction(1, 8), "0.125"),
        (Fraction(1, 6), "1/6"),
        (Fraction(3, 70), "3/70"),
    ],
)
def test_the_shortest_exact_text(value: Fraction | int, shown: str) -> None:
    assert text(value) == shown


@given(st.fractions(max_denominator=10**9, min_value=-(10**9), max_value=10**9))
def test_reading_the_text_gives_the_number_back(value: Fraction) -> None:
    assert exact(text(value)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_decimals_are_shown_as_decimals(value: object) -> None:
    assert "/" not in text(Fraction(str(value)))
