"""Sorted, disjoint intervals of whole numbers: what a configuration allows, however large the numbers.

An IPv6 range minus a few excludes is two or three intervals, never 2^64 members. Both the addresses of a range and
the indexes of its slices are such sets, and "the lowest one not taken" walks the intervals, as many as the
configuration has holes, and never what is taken.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from podtide.core.address_set import AddressSet


class Interval(NamedTuple):
    """All whole numbers from `first` to `last`, both included."""

    first: int
    last: int


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same numbers as sorted intervals that neither overlap nor touch."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        if merged and interval.first <= merged[-1].last + 1:
            merged[-1] = Interval(merged[-1].first, max(merged[-1].last, interval.last))
        else:
            merged.append(interval)
    return tuple(merged)


def without(intervals: Sequence[Interval], holes: Iterable[Interval]) -> tuple[Interval, ...]:
    """What is left of sorted, disjoint `intervals` outside of all `holes`."""
    gaps = union(holes)
    remaining: list[Interval] = []
    passed = 0
    for interval in intervals:
        while passed < len(gaps) and gaps[passed].last < interval.first:
            passed += 1
        first, gap = interval.first, passed
        while gap < len(gaps) and gaps[gap].first <= interval.last:
            if first < gaps[gap].first:
                remaining.append(Interval(first, gaps[gap].first - 1))
            first = gaps[gap].last + 1
            gap += 1
        if first <= interval.last:
            remaining.append(Interval(first, interval.last))
    return tuple(remaining)


def both(intervals: Sequence[Interval], others: Iterable[Interval]) -> tuple[Interval, ...]:
    """What sorted, disjoint `intervals` have in common with `others`."""
    return without(intervals, without(intervals, others))


def absent(intervals: Iterable[Interval], taken: AddressSet) -> Iterator[int]:
    """The numbers in `intervals` that are not in `taken`, in order, each found when asked for."""
    for first, last in intervals:
        number = taken.lowest_absent(first)
        while number is not None and number <= last:
            yield number
            number = taken.lowest_absent(number + 1)
