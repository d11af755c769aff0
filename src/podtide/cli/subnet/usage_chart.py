"""A small chart of how many addresses of a subnet were reserved, in block characters, as wide as the screen."""

from collections.abc import Iterator, Sequence
from math import ceil

from msgspec import Struct

from podtide.core.subnet.count_text import count_text

_HEIGHT = 6
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_NARROWEST = 10
_UNKNOWN = "·"


class ChartPoint(Struct, frozen=True):
    """How many were reserved at most, from a time on."""

    since_seconds: float
    length_seconds: float
    reserved: int


def draw_chart(points: Sequence[ChartPoint], labels: tuple[str, str], width: int) -> Iterator[str]:
    """The chart as lines: from 0 to the highest, from the first point's beginning to the last one's end.

    A column shows the highest of its time, and a dot where nothing is known of it. The labels are for both ends of the
    axis.
    """
    highest = max(point.reserved for point in points)
    margin = len(count_text(highest)) + 1
    columns = _columns(points, max(_NARROWEST, width - margin - 1))
    heights = [None if value is None else _height(value, highest) for value in columns]
    for line in range(_HEIGHT - 1, -1, -1):
        scale = count_text(highest) if line == _HEIGHT - 1 else "0" if not line else ""
        yield f"{scale.rjust(margin - 1)} ┤{''.join(_cell(height, line) for height in heights)}".rstrip()
    begin, end = labels
    gap = len(columns) - len(begin) - len(end)
    yield " " * (margin + 1) + (f"{begin}{' ' * gap}{end}" if gap > 0 else begin)


def _columns(points: Sequence[ChartPoint], width: int) -> list[int | None]:
    """For each column, the highest of the points that touch its time."""
    begin = points[0].since_seconds
    span = points[-1].since_seconds + points[-1].length_seconds - begin
    columns: list[int | None] = [None] * width
    for point in points:
        first = int((point.since_seconds - begin) * width // span)
        last = ceil((point.since_seconds + point.length_seconds - begin) * width / span)
        for column in range(first, min(max(last, first + 1), width)):
            columns[column] = max(columns[column] or 0, point.reserved)
    return columns


def _height(value: int, highest: int) -> int:
    """In eighths of a line; what is not nothing is seen."""
    return ceil(value * _HEIGHT * 8 / highest) if highest else 0


def _cell(height: int | None, line: int) -> str:
    if height is None:
        return _UNKNOWN if not line else " "
    return _EIGHTHS[min(8, max(0, height - 8 * line))]
