"""A history in a CSV file, read into one maximum for each day and column.

A file may have a million rows, so it is read in blocks and nothing is kept but days. A block in which all is as
expected (times of one form, in order, whole numbers) is taken apart as a whole, column by column; any other is read row by
row, which takes ten times as long and knows which line is wrong.
"""

import csv
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
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
_COUNT = re.compile(r"[0-9]{1,18}")
_LARGEST_COUNT = 10**18 - 1
_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]*)?")
_SORTABLE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(?P<zone>Z|[+-]\d\d:\d\d)?|\d+(\.\d+)?", re.ASCII
)
"""A timestamp that comes before another of the same form and zone if its text does."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


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

    last: datetime
    rows: int
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
        self._capacity: dict[date, tuple[datetime, int]] = {}
        """By day the last word, and when that was."""
        self._points: Counter[date] = Counter()
        self._last = _LONG_AGO
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
        if '"' in text or ",-" in text or len(fields) != lines * count:
            return False
        stamps = fields[self._columns.time :: count]
        if not _are_alike(stamps) or any(map(ge, stamps, stamps[1:])):
            return False
        try:
            is_later = _moment(stamps[0]) > self._last
            runs = [self._run(fields, *each) for each in _days_of(stamps)]
        except (ValueError, OverflowError, OSError):
            return False
        if not is_later:
            return False
        for run in runs:
            day = run.last.date()
            for column, most in run.most:
                self._note(column, day, most)
            if run.capacity is not None:
                self._note_capacity(run.last, run.capacity)
            self._points[day] += run.rows
        self._last = runs[-1].last
        return True

    def _run(self, fields: Sequence[str], last: datetime, begin: int, end: int) -> _Run:
        """The rows of one day in a block. Of all numbers the few that differ are looked at; ValueError if one is none."""
        count, place = self._columns.count, self._columns.capacity
        most = [
            (column, max(map(int, set(fields[begin * count + at : end * count : count]))))
            for column, at in self._used
        ]
        capacity = None if place is None else int(fields[(end - 1) * count + place])
        if max(each for _, each in most) > _LARGEST_COUNT or (
            capacity is not None and not 1 <= capacity <= _LARGEST_COUNT
        ):
            raise ValueError("a count that is refused, or passed over, is looked at row by row")
        return _Run(last, end - begin, most, capacity)

    def _add_rows(self, text: str) -> None:
        """Take in a block row by row."""
        columns = self._columns
        for number, row in enumerate(csv.reader(text.split("\n")), self._line + 1):
            if not row:
                continue
            if len(row) != columns.count:
                self._refuse(number, f"has {len(row)} columns, and the first line names {columns.count}")
            moment = self._moment(row[columns.time].strip(), number)
            day = moment.date()
            self._disordered += moment <= self._last
            self._last = moment
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
                    self._note_capacity(moment, capacity)

    def _note(self, column: str, day: date, value: int) -> None:
        most = self._most[column]
        most[day] = max(value, most.get(day, 0))

    def _note_capacity(self, moment: datetime, capacity: int) -> None:
        before = self._capacity.get(moment.date(), (_LONG_AGO, 0))
        self._capacity[moment.date()] = max((moment, capacity), before)

    def _moment(self, text: str, line: int) -> datetime:
        try:
            return _moment(text)
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


def _moment(text: str) -> datetime:
    """The time that a timestamp means; without a zone it is UTC."""
    if _SECONDS.fullmatch(text):
        return datetime.fromtimestamp(float(text), UTC)
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _are_alike(stamps: Sequence[str]) -> bool:
    """Whether the order of these timestamps is that of their texts: looked at as one text, because that is quicker by far.

    All have the signs of the first one where it has them, and its zone. Digits are not looked at: letters in their place
    are out of order, or the last of a day, which is read.
    """
    first, text = stamps[0], "".join(stamps)
    if not (found := _SORTABLE.fullmatch(first)) or len(text) != len(first) * len(stamps):
        return False
    if first.isdigit():
        return text.isdigit()
    zone = found.start("zone")
    fixed = [place for place, sign in enumerate(first) if not sign.isdigit() or 0 <= zone <= place]
    return all(text[place :: len(first)] == first[place] * len(stamps) for place in fixed)


def _days_of(stamps: Sequence[str]) -> Iterator[tuple[datetime, int, int]]:
    """The days of timestamps in order: the last moment of each, its first row and the one after its last."""
    begin = 0
    while begin < len(stamps):
        day = _moment(stamps[begin]).date()
        midnight = datetime.combine(day + timedelta(days=1), time(tzinfo=UTC))
        end = bisect_left(stamps, midnight, begin, key=_moment)
        yield _moment(stamps[end - 1]), begin, end
        begin = end
