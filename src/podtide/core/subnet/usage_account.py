"""How full a subnet was, accounted for exactly: the highest, and the mean over time.

What is reserved changes with every grant, and is written down at most once in five seconds. In between, the subnet's own
row keeps what is needed to miss nothing (it is written with every grant anyway):

    written     when rows were last written
    accrued     up to when the time since then is accounted for
    peak        the highest R since then
    reserved    Σ R·milliseconds since then

All that happens between `written` and `accrued` is in one row of five seconds, so it belongs as a whole to one row of each
series. From `accrued` to now R was constant, and that stretch is divided among the rows it goes through.
"""

from msgspec import Struct
from msgspec.structs import replace

from podtide.core.subnet.usage_series import (
    FIVE_SECONDS,
    SERIES,
    UsageSeries,
    countable_ms,
    divide,
    is_set_back,
)


class SubnetTotals(Struct, frozen=True, kw_only=True):
    """A subnet's totals at one instant, and what is in force in it."""

    capacity: int
    reserved: int
    owed: int
    containers: int
    batch: int
    exhausted: bool
    starved: bool

    @property
    def in_force(self) -> tuple[int, bool, bool]:
        """What is written down as soon as it changes, because the time that it lasts is counted."""
        return self.batch, self.exhausted, self.starved


class UsageAccount(Struct, frozen=True):
    """What is accounted for and not written yet. Times are milliseconds since 1970."""

    written_ms: int = 0
    """0 for a subnet of which nothing was ever written."""
    accrued_ms: int = 0
    peak: int = 0
    reserved_ms: int = 0


class UsageRow(Struct, frozen=True, kw_only=True):
    """What is to be added to the row of a series, which may have something already."""

    step_seconds: int
    slot: int
    at_ms: int
    """When `reserved`, the highest, was so. Of several such times, the last."""
    capacity: int
    """What the capacity was then."""
    reserved: int
    last_capacity: int
    """The last one of the row's time, and so is the batch."""
    batch: int
    owed: int
    """The highest, and so is the number of containers."""
    containers: int
    observed_ms: int = 0
    """How much of the row's time this is."""
    reserved_ms: int = 0
    """Σ R·milliseconds over it."""
    exhausted_ms: int = 0
    starved_ms: int = 0

    def with_later(self, later: "UsageRow") -> "UsageRow":
        """This and what came later in the same row."""
        highest = later if later.reserved >= self.reserved else self
        return replace(
            later,
            at_ms=highest.at_ms,
            capacity=highest.capacity,
            reserved=highest.reserved,
            owed=max(self.owed, later.owed),
            containers=max(self.containers, later.containers),
            observed_ms=self.observed_ms + later.observed_ms,
            reserved_ms=self.reserved_ms + later.reserved_ms,
            exhausted_ms=self.exhausted_ms + later.exhausted_ms,
            starved_ms=self.starved_ms + later.starved_ms,
        )


def account_for(
    account: UsageAccount, before: SubnetTotals, after: SubnetTotals, now_ms: int, *, at_once: bool = False
) -> tuple[UsageAccount, tuple[UsageRow, ...]]:
    """The account once the totals have changed at this instant, and the rows to write, by series and time.

    They are written when five seconds are over, what is in force has changed, or `at_once`. A clock that is a little behind
    is another replica's: until it has caught up, no time passes, and only the peak is kept.
    """
    passed_ms = countable_ms(account.accrued_ms, now_ms)
    peak = max(account.peak, after.reserved)
    if passed_ms is None and account.accrued_ms > now_ms and not is_set_back(account.accrued_ms, now_ms):
        return replace(account, peak=peak), ()
    is_same_row = FIVE_SECONDS.slot(account.written_ms) == FIVE_SECONDS.slot(now_ms)
    if passed_ms is not None and is_same_row and before.in_force == after.in_force and not at_once:
        reserved_ms = account.reserved_ms + before.reserved * passed_ms
        return UsageAccount(account.written_ms, now_ms, peak, reserved_ms), ()
    return UsageAccount(now_ms, now_ms, after.reserved), tuple(
        row for series in SERIES for row in _rows(series, account, before, after, now_ms)
    )


def _rows(
    series: UsageSeries, account: UsageAccount, before: SubnetTotals, after: SubnetTotals, now_ms: int
) -> list[UsageRow]:
    """What is to be added to the rows of a series, oldest first."""
    step = series.step_seconds
    rows: list[UsageRow] = []
    passed_ms = countable_ms(account.accrued_ms, now_ms)
    length_ms = account.accrued_ms - account.written_ms
    # Mostly nothing is pending, and what was reserved then is in the stretch that follows.
    if account.written_ms and (length_ms or not passed_ms or account.peak > before.reserved):
        slot = series.slot(account.written_ms)
        pending = _row(step, slot, account.accrued_ms, before, length_ms)
        rows.append(replace(pending, reserved=account.peak, reserved_ms=account.reserved_ms))
    if passed_ms:
        for part in divide(series, account.accrued_ms, now_ms):
            _add(rows, _row(step, part.slot, part.since_ms, before, part.length_ms))
    _add(rows, _row(step, series.slot(now_ms), now_ms, after, 0))
    return rows


def _add(rows: list[UsageRow], row: UsageRow) -> None:
    """Append a row, or join it with the last if it is the same."""
    if rows and rows[-1].slot == row.slot:
        rows[-1] = rows[-1].with_later(row)
    else:
        rows.append(row)


def _row(step: int, slot: int, at_ms: int, totals: SubnetTotals, length_ms: int) -> UsageRow:
    return UsageRow(
        step_seconds=step,
        slot=slot,
        at_ms=at_ms,
        capacity=totals.capacity,
        reserved=totals.reserved,
        last_capacity=totals.capacity,
        batch=totals.batch,
        owed=totals.owed,
        containers=totals.containers,
        observed_ms=length_ms,
        reserved_ms=totals.reserved * length_ms,
        exhausted_ms=length_ms if totals.exhausted else 0,
        starved_ms=length_ms if totals.starved else 0,
    )
