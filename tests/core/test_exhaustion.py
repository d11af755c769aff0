from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import thresholds
from podtide.core.errors import InvalidThresholds
from podtide.core.subnet.exhaustion import Side, Thresholds, judge_exhaustion

USUAL = Thresholds()


def test_the_default_band_is_80_to_90_percent() -> None:
    assert Thresholds(Fraction(4, 5), Fraction(9, 10)) == USUAL


@pytest.mark.parametrize(
    ("exhausted", "reserved", "then", "side"),
    [
        (False, 90, False, Side.BETWEEN),
        (False, 91, True, Side.ABOVE),
        (False, 100, True, Side.ABOVE),
        (False, 0, False, Side.BELOW),
        (True, 91, True, Side.ABOVE),
        (True, 80, True, Side.BETWEEN),
        (True, 79, False, Side.BELOW),
    ],
)
def test_both_inequalities_are_strict(exhausted: bool, reserved: int, then: bool, side: Side) -> None:
    answer = judge_exhaustion(exhausted=exhausted, reserved=reserved, capacity=100, thresholds=USUAL)
    assert (answer.exhausted, answer.changed, answer.side) == (then, then != exhausted, side)
    assert (answer.reserved, answer.capacity, answer.thresholds) == (reserved, 100, USUAL)


@given(st.booleans(), st.integers(0, 2000), st.integers(1, 1500), thresholds())
def test_exhaustion_never_flips_twice_on_the_same_reserved_count(
    exhausted: bool,
    reserved: int,
    capacity: int,
    band: Thresholds,
) -> None:
    first = judge_exhaustion(exhausted=exhausted, reserved=reserved, capacity=capacity, thresholds=band)
    second = judge_exhaustion(
        exhausted=first.exhausted, reserved=reserved, capacity=capacity, thresholds=band
    )
    assert second.exhausted == first.exhausted
    assert not second.changed


@given(st.booleans(), st.integers(0, 2000), st.integers(0, 2000), st.integers(1, 1500), thresholds())
def test_more_reserved_never_makes_a_subnet_less_exhausted(
    exhausted: bool,
    one: int,
    other: int,
    capacity: int,
    band: Thresholds,
) -> None:
    less, more = (
        judge_exhaustion(exhausted=exhausted, reserved=reserved, capacity=capacity, thresholds=band).exhausted
        for reserved in sorted((one, other))
    )
    assert less <= more


def test_the_answer_says_which_inequality_decided() -> None:
    def words(*, exhausted: bool, reserved: int) -> str:
        return str(judge_exhaustion(exhausted=exhausted, reserved=reserved, capacity=254, thresholds=USUAL))

    assert words(exhausted=False, reserved=229) == "now exhausted: R = 229 > T·Q = 0.9·254 = 228.6"
    assert words(exhausted=True, reserved=229) == "still exhausted: R = 229 > T·Q = 0.9·254 = 228.6"
    assert words(exhausted=True, reserved=203) == "now not exhausted: R = 203 < t·Q = 0.8·254 = 203.2"
    assert words(exhausted=False, reserved=210) == (
        "still not exhausted: t·Q = 0.8·254 = 203.2 ≤ R = 210 ≤ T·Q = 0.9·254 = 228.6"
    )


@pytest.mark.parametrize(
    ("lower", "upper"),
    [("0.9", "0.9"), ("0.9", "0.8"), ("0", "0.9"), ("-0.1", "0.9"), ("0.8", "1"), ("0.8", "90")],
)
def test_thresholds_that_make_no_band_are_refused(lower: str, upper: str) -> None:
    with pytest.raises(InvalidThresholds) as refused:
        Thresholds(Fraction(lower), Fraction(upper))
    assert str(refused.value) == (
        f"thresholds {lower} and {upper} do not make a band: "
        "the lower must be less than the upper, both between 0 and 1, such as 0.8 and 0.9"
    )


@pytest.mark.parametrize(
    ("reserved", "capacity", "words"),
    [
        (0, 0, "capacity 0 is too small: a subnet has at least 1 usable address"),
        (-1, 1, "reserved -1 is negative: it is a count of addresses, 0 or more"),
    ],
)
def test_numbers_no_subnet_has_are_refused(reserved: int, capacity: int, words: str) -> None:
    with pytest.raises(InvalidThresholds) as refused:
        judge_exhaustion(exhausted=False, reserved=reserved, capacity=capacity, thresholds=USUAL)
    assert str(refused.value) == words


def test_a_subnet_of_one_address_can_be_judged() -> None:
    assert judge_exhaustion(exhausted=False, reserved=1, capacity=1, thresholds=USUAL).exhausted
    assert not judge_exhaustion(exhausted=True, reserved=0, capacity=1, thresholds=USUAL).exhausted


def test_an_answer_is_a_value() -> None:
    answers = {
        judge_exhaustion(exhausted=False, reserved=reserved, capacity=9, thresholds=Thresholds())
        for reserved in (1, 1, 2)
    }
    assert len(answers) == 2
