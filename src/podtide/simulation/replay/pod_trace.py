"""A trace: how many pods there were at which time, in all or by node. Everything here is pure."""

from bisect import bisect_right
from fractions import Fraction
from math import floor

from msgspec import Struct, structs

from podtide.core.errors import InvalidInput

_HALF = Fraction(1, 2)


class InvalidTrace(InvalidInput):
    """A trace that cannot be replayed."""


class PodTrace(Struct, frozen=True, kw_only=True):
    """Counts of pods over time. A count holds until the next one."""

    columns: tuple[str, ...]
    """Nodes, or one column for all pods."""
    times: tuple[float, ...]
    """In seconds, rising; what they count from is the file's."""
    counts: tuple[tuple[int, ...], ...]
    """For each time, pods by column."""
    step_seconds: float
    """The usual time between two rows. The last row holds for as long."""
    notes: tuple[str, ...] = ()
    """What was not as it should be in the file, and what was made of it, a sentence each."""

    @property
    def seconds(self) -> float:
        """How long the trace is."""
        return self.times[-1] - self.times[0] + self.step_seconds

    @property
    def totals(self) -> tuple[int, ...]:
        """The pods of all columns, by row."""
        return tuple(map(sum, self.counts))

    @property
    def peak(self) -> int:
        """The most pods there are at a time."""
        return max(self.totals)


def part_of(trace: PodTrace, since: float | None, until: float | None) -> PodTrace:
    """The part from one time up to, and without, another. A row that holds at its beginning is part of it."""
    first = trace.times[0] if since is None else max(since, trace.times[0])
    end = trace.times[-1] + trace.step_seconds if until is None else until
    begin = bisect_right(trace.times, first) - 1
    kept = [place for place in range(begin, len(trace.times)) if trace.times[place] < end]
    if not kept or first >= trace.times[-1] + trace.step_seconds:
        raise InvalidTrace(
            "the part of the trace between --from and --until has no row: give times within the trace"
        )
    return structs.replace(
        trace,
        times=(max(first, trace.times[kept[0]]), *(trace.times[place] for place in kept[1:])),
        counts=tuple(trace.counts[place] for place in kept),
    )


def scaled(trace: PodTrace, factor: Fraction) -> PodTrace:
    """The trace with every count multiplied, and rounded half up."""
    counts = tuple(tuple(floor(count * factor + _HALF) for count in row) for row in trace.counts)
    return structs.replace(trace, counts=counts)
