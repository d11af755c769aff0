"""Interval arithmetic against plain sets of numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from podtide.core.address_set import AddressSet
from podtide.core.intervals import Interval, absent, both, union, without

intervals = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda at: Interval(at[0], at[0] + at[1]))
)


def numbers(of: tuple[Interval, ...] | list[Interval]) -> set[int]:
    return {number for first, last in of for number in range(first, last + 1)}


def assert_sorted_and_apart(found: tuple[Interval, ...]) -> None:
    assert all(first <= last for first, last in found)
    assert all(before.last < after.first for before, after in pairwise(found))


@given(intervals)
def test_a_union_has_the_same_numbers_in_as_few_intervals_as_can_be(given_intervals: list[Interval]) -> None:
    merged = union(given_intervals)
    assert numbers(merged) == numbers(given_intervals)
    assert all(before.last + 1 < after.first for before, after in pairwise(merged))


@given(intervals, intervals)
def test_what_is_without_holes_is_the_difference_of_the_sets(
    wholes: list[Interval], holes: list[Interval]
) -> None:
    left = without(union(wholes), holes)
    assert numbers(left) == numbers(wholes) - numbers(holes)
    assert_sorted_and_apart(left)


@given(intervals, intervals)
def test_what_both_have_is_the_intersection_of_the_sets(ones: list[Interval], others: list[Interval]) -> None:
    common = both(union(ones), others)
    assert numbers(common) == numbers(ones) & numbers(others)
    assert_sorted_and_apart(common)


@given(intervals, st.sets(st.integers(0, 79)))
def test_the_absent_come_in_order_and_agree_with_a_naive_search(
    wholes: list[Interval], taken: set[int]
) -> None:
    assert list(absent(union(wholes), AddressSet(80, taken))) == sorted(numbers(wholes) - taken)
