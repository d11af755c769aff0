"""How full a subnet was: peaks and means are exact, whatever is written when, and a clock that jumps invents no time."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from podtide.core.subnet.usage_account import SubnetTotals, UsageAccount, UsageRow, account_for
from podtide.core.subnet.usage_series import (
    DAYS,
    FIVE_SECONDS,
    LONGEST_STRETCH_MS,
    MINUTES,
    SERIES,
    SERIES_WITH_DEMAND,
    UsageSeries,
)

MIDNIGHT = 1_750_032_000_000


class Change(Struct, frozen=True):
    """The totals change after so many milliseconds."""

    after_ms: int
    totals: SubnetTotals
    at_once: bool = False


def totals(reserved: int, **more: object) -> SubnetTotals:
    fields = {
        "capacity": 100,
        "owed": 0,
        "containers": 1,
        "batch": 16,
        "exhausted": False,
        "starved": False,
        **more,
    }
    return SubnetTotals(reserved=reserved, **fields)  # type: ignore[arg-type]  # as SubnetTotals has them


EMPTY = totals(0)


class Book:
    """An account with all rows that were written of it, joined as a database joins them."""

    def __init__(self, begin_ms: int = MIDNIGHT, standing: SubnetTotals = EMPTY) -> None:
        self.now_ms = begin_ms
        self.rows: dict[tuple[int, int], UsageRow] = {}
        self.writes = 0
        self.totals = standing
        self.account = UsageAccount()
        self.change(0, standing)

    def change(self, after_ms: int, after: SubnetTotals, *, at_once: bool = False) -> None:
        self.now_ms += after_ms
        self.account, rows = account_for(self.account, self.totals, after, self.now_ms, at_once=at_once)
        self.totals = after
        self.writes += bool(rows)
        for row in rows:
            key = row.step_seconds, row.slot
            self.rows[key] = self.rows[key].with_later(row) if key in self.rows else row

    def of(self, series: UsageSeries) -> list[UsageRow]:
        return [row for (step, _slot), row in sorted(self.rows.items()) if step == series.step_seconds]


changes = st.lists(
    st.builds(
        Change,
        st.sampled_from([0, 1, 700, 4_999, 5_000, 59_000, 61_000, 299_999, 300_000, 300_001, 90_000_000])
        | st.integers(0, LONGEST_STRETCH_MS),
        st.builds(
            totals,
            st.integers(0, 100),
            owed=st.integers(0, 3),
            containers=st.integers(0, 3),
            capacity=st.sampled_from([100, 200]),
            batch=st.sampled_from([1, 16]),
            exhausted=st.booleans(),
            starved=st.booleans(),
        ),
        st.booleans(),
    ),
    max_size=20,
)


class Lived(Struct, frozen=True):
    """A stretch of time with constant totals."""

    since_ms: int
    until_ms: int
    totals: SubnetTotals

    def within(self, series: UsageSeries, slot: int) -> int:
        """How much of it is in a row's time."""
        return max(
            0, min(self.until_ms, (slot + 1) * series.step_ms) - max(self.since_ms, slot * series.step_ms)
        )


def lived_through(
    begin_ms: int, made: Sequence[Change]
) -> tuple[list[Lived], list[tuple[int, SubnetTotals]]]:
    """The stretches that count, and the totals at every instant that they changed."""
    now, standing = begin_ms, EMPTY
    stretches, instants = [], [(begin_ms, EMPTY)]
    for change in made:
        if change.after_ms <= LONGEST_STRETCH_MS:
            stretches.append(Lived(now, now + change.after_ms, standing))
        now, standing = now + change.after_ms, change.totals
        instants.append((now, standing))
    return stretches, instants


@given(changes, st.sampled_from([MIDNIGHT, MIDNIGHT - 1, MIDNIGHT + 3_333, MIDNIGHT + 59_999]))
def test_highest_and_sums_of_every_row_are_those_of_the_time_it_stands_for(
    made: list[Change], begin_ms: int
) -> None:
    book = Book(begin_ms)
    for change in made:
        book.change(change.after_ms, change.totals, at_once=change.at_once)
    book.change(0, book.totals, at_once=True)
    stretches, instants = lived_through(begin_ms, made)
    for series in SERIES_WITH_DEMAND:
        rows = book.of(series)
        slots = {series.slot(at) for at, _totals in instants}
        slots |= {row.slot for row in rows for lived in stretches if lived.within(series, row.slot)}
        assert {row.slot for row in rows} == slots
        assert sum(row.observed_ms for row in rows) == sum(
            lived.until_ms - lived.since_ms for lived in stretches
        )
        for row in rows:
            parts = [(lived.within(series, row.slot), lived.totals) for lived in stretches]
            there = [standing for length, standing in parts if length]
            there += [standing for at, standing in instants if series.slot(at) == row.slot]
            assert row.observed_ms == sum(length for length, _totals in parts)
            assert row.reserved_ms == sum(length * standing.reserved for length, standing in parts)
            assert row.exhausted_ms == sum(length for length, standing in parts if standing.exhausted)
            assert row.starved_ms == sum(length for length, standing in parts if standing.starved)
            assert row.reserved == max(standing.reserved for standing in there)
            assert row.last_capacity == there[-1].capacity
            assert row.batch == there[-1].batch
            assert series.slot(row.at_ms) == row.slot


@given(
    st.lists(
        st.tuples(
            st.integers(-400_000, 400_000) | st.sampled_from([-(10**10), 10**10]),
            st.integers(40, 100),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_whatever_the_clock_does_a_mean_lies_between_the_lowest_and_the_highest(
    made: list[tuple[int, int, bool]],
) -> None:
    book = Book(standing=totals(70))
    for after_ms, reserved, at_once in made:
        book.change(after_ms, totals(reserved), at_once=at_once)
    for row in book.rows.values():
        assert row.observed_ms >= 0
        assert 40 * row.observed_ms <= row.reserved_ms <= row.reserved * row.observed_ms
        assert row.exhausted_ms <= row.observed_ms


def test_within_five_seconds_nothing_is_written_and_nothing_is_missed() -> None:
    book = Book()
    writes = book.writes
    for after_ms, reserved in ((1_000, 4), (1_000, 90), (500, 7)):
        book.change(after_ms, totals(reserved))
    assert book.writes == writes
    book.change(60_000, totals(7))
    assert book.writes == writes + 1
    (first, last) = book.of(MINUTES)
    assert (first.reserved, first.observed_ms) == (90, 60_000)
    assert first.reserved_ms == 4 * 1_000 + 90 * 500 + 7 * 57_500
    assert (last.reserved, last.observed_ms, last.reserved_ms) == (7, 2_500, 17_500)


def test_a_subnet_in_which_nothing_happens_has_a_few_rows_a_minute() -> None:
    book = Book()
    before = len(book.rows)
    for _ in range(60):
        book.change(60_000, EMPTY, at_once=True)
    written = len(book.rows) - before
    assert written == 60 + 60 + 4, "of 5 seconds, of a minute, of a quarter of an hour"
    assert len(book.of(DAYS)) == 1


def test_what_is_in_force_is_written_as_soon_as_it_changes() -> None:
    book = Book()
    book.change(1_000, totals(50, exhausted=True))
    book.change(1_000, totals(50, exhausted=True, starved=True))
    book.change(1_000, totals(50))
    (day,) = book.of(DAYS)
    assert (day.observed_ms, day.exhausted_ms, day.starved_ms) == (3_000, 2_000, 1_000)


def test_while_a_clock_is_a_little_behind_no_time_passes_and_a_peak_is_kept() -> None:
    book = Book()
    book.change(60_000, totals(10))
    writes = book.writes
    book.change(-20_000, totals(80), at_once=True)
    book.change(10_000, totals(10))
    assert book.writes == writes
    book.change(70_000, totals(10))
    assert sum(row.observed_ms for row in book.of(MINUTES)) == 120_000
    assert max(row.reserved for row in book.of(MINUTES)) == 80


def test_a_clock_that_was_set_back_begins_anew() -> None:
    book = Book()
    book.change(10_000_000, totals(10))
    book.change(-9_000_000, totals(20))
    book.change(30_000, totals(20))
    rows = book.of(MINUTES)
    assert sum(row.observed_ms for row in rows) == 30_000
    assert [row.reserved for row in rows] == [0, 20, 20, 10]


def test_a_clock_that_jumps_ahead_lets_no_time_pass() -> None:
    book = Book()
    book.change(1_000, totals(10))
    book.change(365 * 86_400_000, totals(10))
    book.change(2_000, totals(10), at_once=True)
    assert [row.observed_ms for row in book.of(DAYS)] == [1_000, 2_000]
    assert [row.observed_ms for row in book.of(FIVE_SECONDS)] == [1_000, 2_000]


def test_the_highest_has_the_capacity_of_its_time_and_the_row_the_last() -> None:
    book = Book()
    book.change(1_000, totals(90, capacity=100))
    book.change(7_000, totals(20, capacity=200))
    book.change(7_000, totals(20, capacity=200))
    (day,) = book.of(DAYS)
    assert (day.reserved, day.capacity, day.last_capacity) == (90, 100, 200)
    assert all(len(book.of(series)) >= 1 for series in SERIES)


def test_a_peak_that_lasts_no_time_is_kept_when_it_is_written_at_once() -> None:
    book = Book()
    book.change(0, totals(90))
    book.change(0, totals(3), at_once=True)
    (day,) = book.of(DAYS)
    assert (day.reserved, day.observed_ms) == (90, 0)


def test_of_several_times_with_the_same_peak_a_row_has_the_last() -> None:
    book = Book()
    for _ in range(3):
        book.change(20_000, totals(7))
    book.change(20_000, totals(3))
    [day] = book.of(DAYS)
    assert (day.reserved, day.at_ms) == (7, MIDNIGHT + 60_000)
