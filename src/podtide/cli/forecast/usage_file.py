"""A history in a CSV file, read into one maximum for each day and column.

A file may have a million rows, so it is read in blocks and nothing is kept but days. A block in which all is as
expected is taken apart as a whole, column by column; any other is read row by row, which takes five times as long and
knows which line is wrong.
"""

import csv
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from operator import ge
from pathlib import Path
from statistics import median
from typing import NamedTuple, NoReturn

from msgspec import Struct, structs

from podtide.allocator.recorded_days import RecordedDays
from podtide.allocator.subnets import SubnetUsage
from podtide.cli.output.formats import counted
from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.core.forecast.daily_maxima import DayMaximum

TIME, RESERVED, CAPACITY, NEED = "timestamp", "reserved", "capacity", "need"
_OF_OURS = frozenset(field.name for field in structs.fields(SubnetUsage))
"""What `podtide subnet history -o csv` writes: columns that are not used here, and are not strange either."""
_BLOCK_LENGTH = 1 << 18
_STAMP_LENGTH = len("2026-01-01T00:00:00Z")
_DAY_LENGTH = len("2026-01-01")
_AFTER_ANY_TIME = "~"
_COUNT = re.compile(r"[0-9]{1,18}")
_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]*)?")


class UsageFile(Struct, frozen=True):
    """What a file says, by day (UTC)."""

    days: RecordedDays
    points: tuple[tuple[date, int], ...]
    """How many rows each day has."""
    remarks: tuple[str, ...]
    """What was found amiss and how it was taken, as words."""

    def day_after(self, latest: date) -> date:
        """The day after the last full one, not counting days after `latest`.

        The last day is not over if it is `latest`, or has fewer rows than half of all days.
        """
        days = [each for each in self.points if each[0] <= latest]
        if not days:
            return latest
        last, rows = max(days)
        is_running = last == latest or rows < median(count for _, count in days)
        return last if is_running else last + timedelta(days=1)


def read_usage_file(path: Path) -> UsageFile:
    """Read a file; what cannot be understood is refused with the number of its line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = [name.strip().lower() for name in next(csv.reader(file), [])]
            columns = _columns(header, path)
            days = _Days(columns, path)
            while block := file.read(_BLOCK_LENGTH):
                days.add(block + file.readline())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a text file ({error.reason}): give a CSV file in UTF-8") from error
    except csv.Error as error:
        raise InvalidInput(
            f"{path} is not a CSV file ({error}): give one with a line for each time"
        ) from error
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read ({error.strerror}): correct the path or the rights"
        ) from error
    return days.finished()


class _Columns(Struct, frozen=True):
    """Where in a row the columns are; None for one that is not there."""

    count: int
    time: int
    reserved: int
    capacity: int | None
    need: int | None
    ignored: tuple[str, ...]


def _columns(header: Sequence[str], path: Path) -> _Columns:
    if not any(header):
        raise InvalidInput(
            f"{path} is empty: its first line names the columns {TIME}, {CAPACITY} and {RESERVED}"
        )
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise InvalidInput(f"{path} has the column {shortened(twice[0])!r} twice: give it once")
    for needed in (TIME, RESERVED):
        if needed not in header:
            named = ", ".join(map(shortened, header))
            raise InvalidInput(f"{path} has no column {needed!r}: its first line names {shortened(named)}")
    places = {name: number for number, name in enumerate(header)}
    return _Columns(
        count=len(header),
        time=places[TIME],
        reserved=places[RESERVED],
        capacity=places.get(CAPACITY),
        need=places.get(NEED),
        ignored=tuple(name for name in header if name not in _OF_OURS),
    )


class _Run(NamedTuple):
    """Rows of one day in a row."""

    day: date
    begin: int
    end: int
    most: list[tuple[str, int]]
    capacity: int | None


class _Days:
    """The maxima of days, block by block."""

    def __init__(self, columns: _Columns, path: Path) -> None:
        self._columns = columns
        self._path = path
        self._line = 1
        self._used = [
            (column, place)
            for column, place in ((RESERVED, columns.reserved), (NEED, columns.need))
            if place is not None
        ]
        self._most: dict[str, dict[date, int]] = {RESERVED: {}, NEED: {}}
        self._capacity: dict[date, tuple[str, int]] = {}
        """By day the last word, and when that was."""
        self._points: Counter[date] = Counter()
        self._last = ""
        self._disordered = 0
        self._without_value = 0

    def add(self, block: str) -> None:
        """Take in a block of whole lines."""
        text = (block.replace("\r\n", "\n") if "\r" in block else block).removesuffix("\n")
        lines = text.count("\n") + 1
        if not self._add_block(text, lines):
            self._add_rows(text)
        self._line += lines

    def finished(self) -> UsageFile:
        """What all blocks say."""
        if not self._points:
            raise InvalidInput(f"{self._path} has no row: there is no history to forecast from")
        reserved, need = (
            tuple(DayMaximum(day, most) for day, most in sorted(self._most[column].items()))
            for column in (RESERVED, NEED)
        )
        return UsageFile(
            days=RecordedDays(
                reserved=reserved,
                need=need,
                capacities=tuple((day, capacity) for day, (_, capacity) in sorted(self._capacity.items())),
            ),
            points=tuple(sorted(self._points.items())),
            remarks=tuple(self._remarks()),
        )

    def _remarks(self) -> Iterator[str]:
        if self._columns.ignored:
            names = ", ".join(map(shortened, self._columns.ignored))
            yield f"unknown columns were ignored: {names}"
        if self._disordered:
            rows = counted(self._disordered, "row was", "rows were")
            yield f"{rows} out of order, or of a time that was there before: of each day the maximum counts"
        if self._without_value:
            rows = counted(self._without_value, "row was", "rows were")
            yield f"{rows} passed over: without a value"

    def _add_block(self, text: str, lines: int) -> bool:
        """Take in a block as a whole. False if anything in it is not as expected: then nothing was taken in."""
        count = self._columns.count
        fields = text.replace("\n", ",").split(",")
        stamps = fields[self._columns.time :: count]
        if '"' in text or ",-" in text or len(fields) != lines * count:
            return False
        if not _are_usual(stamps) or stamps[0] <= self._last or any(map(ge, stamps, stamps[1:])):
            return False
        try:
            runs = [self._run(fields, day, begin, end) for day, begin, end in _runs(stamps)]
        except ValueError:
            return False
        for run in runs:
            for column, most in run.most:
                self._note(column, run.day, most)
            if run.capacity is not None:
                self._note_capacity(run.day, stamps[run.end - 1], run.capacity)
            self._points[run.day] += run.end - run.begin
        self._last = stamps[-1]
        return True

    def _run(self, fields: Sequence[str], day: date, begin: int, end: int) -> "_Run":
        """The rows of one day in a block. Of all numbers the few that differ are looked at; ValueError if one is none."""
        count, place = self._columns.count, self._columns.capacity
        most = [
            (column, max(map(int, set(fields[begin * count + at : end * count : count]))))
            for column, at in self._used
        ]
        capacity = None if place is None else int(fields[(end - 1) * count + place])
        if capacity is not None and capacity < 1:
            raise ValueError("a capacity below 1 is looked at row by row")
        return _Run(day, begin, end, most, capacity)

    def _add_rows(self, text: str) -> None:
        """Take in a block row by row."""
        columns = self._columns
        for number, row in enumerate(csv.reader(text.split("\n")), self._line + 1):
            if not row:
                continue
            if len(row) != columns.count:
                self._refuse(number, f"has {len(row)} columns, and the first line names {columns.count}")
            moment = self._moment(row[columns.time].strip(), number)
            day, stamp = moment.date(), f"{moment.isoformat()[: _STAMP_LENGTH - 1]}Z"
            self._disordered += stamp <= self._last
            self._last = stamp
            counts = [(column, self._count(column, row[place], number)) for column, place in self._used]
            for column, value in counts:
                if value is not None:
                    self._note(column, day, value)
            if counts[0][1] is None:
                self._without_value += 1
            else:
                self._points[day] += 1
            if columns.capacity is not None:
                capacity = self._count(CAPACITY, row[columns.capacity], number)
                if capacity:
                    self._note_capacity(day, stamp, capacity)

    def _note(self, column: str, day: date, value: int) -> None:
        most = self._most[column]
        most[day] = max(value, most.get(day, 0))

    def _note_capacity(self, day: date, stamp: str, capacity: int) -> None:
        self._capacity[day] = max((stamp, capacity), self._capacity.get(day, ("", 0)))

    def _moment(self, text: str, line: int) -> datetime:
        try:
            if _SECONDS.fullmatch(text):
                return datetime.fromtimestamp(float(text), UTC)
            moment = datetime.fromisoformat(text)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            self._refuse(
                line,
                f"has the timestamp {shortened(text)!r}: give one such as 2026-01-31T12:00:00Z, or seconds since 1970",
            )

    def _count(self, column: str, text: str, line: int) -> int | None:
        given = text.strip()
        if given and not _COUNT.fullmatch(given):
            self._refuse(line, f"has {shortened(given)!r} as {column}: give a whole number, at least 0")
        return int(given) if given else None

    def _refuse(self, line: int, words: str) -> NoReturn:
        raise InvalidInput(f"line {line} of {self._path} {words}")


def _are_usual(stamps: Sequence[str]) -> bool:
    """Whether all timestamps look like 2026-01-01T00:00:00Z: as one text, because that is quicker by far."""
    text, count = "".join(stamps), len(stamps)
    return (
        len(text) == _STAMP_LENGTH * count
        and text[_DAY_LENGTH::_STAMP_LENGTH] == "T" * count
        and text[_STAMP_LENGTH - 1 :: _STAMP_LENGTH] == "Z" * count
    )


def _runs(stamps: Sequence[str]) -> Iterator[tuple[date, int, int]]:
    """The days of timestamps in order, each with the first row of it and the one after the last."""
    begin = 0
    while begin < len(stamps):
        end = bisect_right(stamps, stamps[begin][:_DAY_LENGTH] + _AFTER_ANY_TIME, begin)
        last = datetime.fromisoformat(stamps[end - 1])
        yield last.date(), begin, end
        begin = end
