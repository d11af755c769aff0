"""Reads a trace from a CSV file: what is odd is either put right, and said so, or refused in a sentence.

    columns     one with the time (see `trace_time`), and pods: one column named pods, value, count or instances, or one
                for each service, which are added up, or by request one for each node
    put right   rows out of order are sorted, equal rows dropped, gaps and empty cells filled with the count before,
                fractions rounded, other columns beside `pods` ignored
    refused     two counts for one time, negative counts, words for counts, a clock that jumped

Between comma, semicolon and tab, the header decides.
"""

import csv
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor, isinf, isnan
from pathlib import Path
from statistics import median_low

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.simulation.replay.pod_trace import InvalidTrace, PodTrace
from podtide.simulation.replay.trace_time import KNOWN_NAMES, TraceTime, is_time_column

_TOTALS = ("pods", "value", "count", "instances")
_DELIMITERS = ",;\t"
_MOST_PODS = 1_000_000
_MOST_BYTES = 64 * 1024 * 1024
_FEWEST_ROWS = 2
_GAP_STEPS = 1.5
"""Rows further apart than so many steps have a gap between them."""
_DAY_SECONDS = 86_400
_JUMP_STEPS = 100
"""A gap of more than so many steps, and longer than the rest of the trace, is taken for a clock that jumped."""
_HALF = Fraction(1, 2)


class _Row(Struct, frozen=True):
    line: int
    at: float
    counts: tuple[int | None, ...]
    """By column; None is a cell without a count."""


class _Columns(Struct, frozen=True):
    time: int
    """Their places in a line."""
    counts: tuple[int, ...]
    names: tuple[str, ...]


def read_trace(path: Path, *, by_node: bool = False) -> PodTrace:
    """The trace in a file; InvalidTrace if it has an error."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidTrace(f"{path} is larger than 64 MB: give a part of it, or longer steps")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidTrace(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidTrace(f"{path} is not text in UTF-8: give a CSV file") from None
    return parse_trace(str(path), text, by_node=by_node)


def read_time(path: Path, option: str, written: str) -> float:
    """A time as the file's own column would have it, given by an option."""
    with path.open(encoding="utf-8-sig") as opened:
        header = _header(str(path), opened.readline())
    column = header[_columns(str(path), header, by_node=True)[0].time]
    try:
        return TraceTime(column).parse(written)
    except InvalidInput as error:
        raise InvalidTrace(f"{option}: {error}, as column {column!r} of {path}") from None


def parse_trace(file: str, text: str, *, by_node: bool = False) -> PodTrace:
    """The trace in a text; `file` is its name in errors. With `by_node` each column is a node."""
    lines = text.splitlines()
    header = _header(file, lines[0] if lines else "")
    columns, notes = _columns(file, header, by_node=by_node)
    rows = list(_rows(file, lines, header, columns, notes))
    rows = _filled(file, _in_order(file, rows, notes), columns, notes)
    step = median_low([after.at - before.at for before, after in pairwise(rows)])
    _note_gaps(file, rows, step, notes)
    counts = [tuple(count or 0 for count in row.counts) for row in rows]
    return PodTrace(
        columns=columns.names if by_node else ("pods",),
        times=tuple(row.at for row in rows),
        counts=tuple(counts if by_node else ((sum(row),) for row in counts)),
        step_seconds=step,
        notes=tuple(notes),
    )


# Columns


def _header(file: str, line: str) -> list[str]:
    if not line.strip():
        raise InvalidTrace(f"{file} is empty: give a header such as hour,pods, and a row for each hour")
    header = [name.strip() for name in next(csv.reader([line], delimiter=_delimiter(line)))]
    for name in header:
        if not name or header.count(name) > 1:
            raise InvalidTrace(
                f"{file}:1: column {name!r} is there more than once, or has no name: give each its own"
            )
    return header


def _delimiter(header: str) -> str:
    return max(_DELIMITERS, key=header.count)


def _columns(file: str, header: Sequence[str], *, by_node: bool) -> tuple[_Columns, list[str]]:
    times = [place for place, name in enumerate(header) if is_time_column(name)]
    if len(times) != 1:
        found = " and ".join(header[place] for place in times) or "none"
        raise InvalidTrace(
            f"{file}:1: a trace has one column with the time, and this has {found}: name it as one of {', '.join(KNOWN_NAMES)}"
        )
    others = [place for place in range(len(header)) if place not in times]
    totals = [place for place in others if header[place].lower() in _TOTALS]
    if not others:
        raise InvalidTrace(f"{file}:1: there is no column with pods beside the time: name it pods")
    notes = []
    if by_node or not totals:
        chosen = others
        if not by_node and len(others) > 1:
            notes.append(f"the {len(others)} columns beside the time are added up")
    elif len(totals) > 1:
        names = " and ".join(header[place] for place in totals)
        raise InvalidTrace(f"{file}:1: {names} may both be the pods: leave one of them out")
    else:
        chosen = totals
        if ignored := [header[place] for place in others if place not in totals]:
            notes.append(
                f"ignored, because there is a column {header[totals[0]]!r}: {shortened(', '.join(ignored))}"
            )
    return _Columns(times[0], tuple(chosen), tuple(header[place] for place in chosen)), notes


# Rows


def _rows(
    file: str, lines: Sequence[str], header: Sequence[str], columns: _Columns, notes: list[str]
) -> Iterator[_Row]:
    clock, rounded = TraceTime(header[columns.time]), 0
    delimiter = _delimiter(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = next(csv.reader([line], delimiter=delimiter))
        if len(cells) != len(header):
            raise InvalidTrace(
                f"{file}:{number}: {len(cells)} cells, and the header has {len(header)}: give one for each column"
            )
        try:
            at = clock.parse(cells[columns.time].strip())
            found = [_count(cells[place].strip()) for place in columns.counts]
        except InvalidInput as error:
            raise InvalidTrace(f"{file}:{number}: {error}") from None
        rounded += any(is_rounded for _, is_rounded in found)
        yield _Row(number, at, tuple(count for count, _ in found))
    if rounded:
        notes.append(f"{_rows_text(rounded)} with fractions of pods, rounded to whole ones")


def _count(written: str) -> tuple[int | None, bool]:
    """The pods of a cell, None if it has none, and whether they were rounded."""
    if not written:
        return None, False
    try:
        number = float(written)
    except ValueError:
        raise InvalidInput(
            f"{shortened(written)!r} is not a number of pods: give one, or leave the cell empty"
        ) from None
    if isnan(number):
        return None, False
    if number < 0 or isinf(number) or number > _MOST_PODS:
        raise InvalidInput(f"{shortened(written)} pods cannot be: give a number from 0 to {_MOST_PODS}")
    return floor(Fraction(number) + _HALF), not number.is_integer()


def _in_order(file: str, rows: Sequence[_Row], notes: list[str]) -> list[_Row]:
    ordered = sorted(rows, key=lambda row: row.at)
    if moved := sum(after.at < before.at for before, after in pairwise(rows)):
        notes.append(f"{_rows_text(moved)} out of order: sorted by time")
    kept: list[_Row] = []
    for row in ordered:
        if not kept or row.at != kept[-1].at:
            kept.append(row)
        elif row.counts != kept[-1].counts:
            raise InvalidTrace(
                f"{file}:{row.line}: line {kept[-1].line} has other counts for the same time: leave one of them, or add "
                "series up before they are exported"
            )
    if dropped := len(rows) - len(kept):
        notes.append(f"{_rows_text(dropped)} written twice: dropped")
    return kept


def _filled(file: str, rows: Sequence[_Row], columns: _Columns, notes: list[str]) -> list[_Row]:
    """The rows with a count in every cell, from the first that has one."""
    known: list[int | None] = [None] * len(columns.names)
    filled: list[_Row] = []
    early = late = 0
    for row in rows:
        known = [before if count is None else count for before, count in zip(known, row.counts, strict=True)]
        if all(count is None for count in known):
            early += 1
            continue
        late += None in row.counts
        filled.append(_Row(row.line, row.at, tuple(known)))
    if early:
        notes.append(f"{_rows_text(early)} before the first count, left out")
    if late:
        notes.append(f"{_rows_text(late)} with empty cells, which have the count before them")
    if len(filled) < _FEWEST_ROWS:
        raise InvalidTrace(
            f"{file} has {_rows_text(len(filled))} with counts: a trace has at least 2, because their distance is its step"
        )
    return filled


def _note_gaps(file: str, rows: Sequence[_Row], step: float, notes: list[str]) -> None:
    span = rows[-1].at - rows[0].at
    gaps = [
        (after.at - before.at, before, after)
        for before, after in pairwise(rows)
        if after.at - before.at > _GAP_STEPS * step
    ]
    if not gaps:
        return
    longest, before, after = max(gaps, key=lambda gap: gap[0])
    if longest > _JUMP_STEPS * step and longest > span / 2:
        raise InvalidTrace(
            f"{file}:{after.line}: the clock jumps by {_long_time(longest)} after line {before.line}, more than the rest of the "
            "trace: correct the times, or cut the trace there"
        )
    notes.append(
        f"{len(gaps)} {'gap' if len(gaps) == 1 else 'gaps'}, the longest of {longest / step:g} steps: the count before it holds"
    )


def _rows_text(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _long_time(seconds: float) -> str:
    return f"{seconds / _DAY_SECONDS:,.0f} days" if seconds > 2 * _DAY_SECONDS else f"{seconds:,.0f} s"
