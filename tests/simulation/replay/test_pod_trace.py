"""Parts and multiples of a trace."""

from fractions import Fraction

import pytest

from podtide.simulation.replay.pod_trace import InvalidTrace, PodTrace, part_of, scaled

TRACE = PodTrace(
    columns=("pods",), times=(0.0, 10.0, 20.0, 30.0), counts=((1,), (2,), (3,), (5,)), step_seconds=10.0
)


@pytest.mark.parametrize(
    ("since", "until", "times", "totals"),
    [
        (None, None, (0.0, 10.0, 20.0, 30.0), (1, 2, 3, 5)),
        (10.0, 30.0, (10.0, 20.0), (2, 3)),
        (15.0, None, (15.0, 20.0, 30.0), (2, 3, 5)),
        (-5.0, 11.0, (0.0, 10.0), (1, 2)),
    ],
)
def test_a_part_begins_with_the_count_that_holds_there_and_ends_before_its_end(
    since: float | None, until: float | None, times: tuple[float, ...], totals: tuple[int, ...]
) -> None:
    part = part_of(TRACE, since, until)
    assert (part.times, part.totals) == (times, totals)


@pytest.mark.parametrize(("since", "until"), [(40.0, None), (None, 0.0), (20.0, 10.0)])
def test_a_part_without_rows_is_refused(since: float | None, until: float | None) -> None:
    with pytest.raises(InvalidTrace, match="has no row: give times within the trace"):
        part_of(TRACE, since, until)


def test_a_multiple_is_rounded_half_up() -> None:
    assert scaled(TRACE, Fraction(1, 2)).totals == (1, 1, 2, 3)
    assert scaled(TRACE, Fraction(3)).totals == (3, 6, 9, 15)
