"""How a subnet was used: rows of four series, written along with other changes.

What a row is, and what of it is exact, is told in `core.subnet.usage_account`; how demand is read once a minute, in
`subnet_usage`. Each write drops a few rows that are older than their series keeps, so a subnet's history never grows beyond
some 11,500 rows, and nothing is ever thinned out in bulk. Only a few: a clock that shows next year for a minute must not be
able to delete this one. A row from the future is kept for the same reason, and is not answered before its time.

A row's seconds never exceed its length: where a clock was set back, and a time is lived again, what would exceed it is not
counted, and only the highest figures are.
"""

from typing import Any

from podtide.allocator.store.script import Query, Script, TableChange, execute_changes
from podtide.allocator.store.tables.subnet_row import SubnetRow
from podtide.allocator.subnets import SubnetUsage, UsageStep, Utilization
from podtide.core.subnet.demand_reading import DemandReading
from podtide.core.subnet.usage_account import UsageRow, account_for
from podtide.core.subnet.usage_series import (
    MILLISECONDS,
    SERIES,
    SERIES_WITH_DEMAND,
    UsageSeries,
    choose_series,
    countable_ms,
    to_milliseconds,
)
from podtide.resources.timestamps import to_time

_NO_SUBNET = -1
_WRITE = """INSERT INTO samples (subnet, step, slot, at, capacity, reserved) VALUES ($1, 0, 0, $2, 0, 0)
    ON CONFLICT (subnet, step, slot) DO UPDATE SET at = excluded.at"""
_DROPPED_AT_ONCE = 8

_FITS = "samples.observed_ms + excluded.observed_ms <= samples.step * 1000"
_SUMS = ("observed_ms", "reserved_ms", "exhausted_ms", "starved_ms")
_HIGHEST = ("owed", "containers")
_OF_THE_PEAK = ("at", "capacity", "reserved")
_COLUMNS = ("subnet", "step", "slot", *_OF_THE_PEAK, "last_capacity", "batch", *_HIGHEST, *_SUMS)
_PUT = f"""INSERT INTO samples ({", ".join(_COLUMNS)})
    VALUES ({", ".join(f"${number}" for number in range(1, len(_COLUMNS) + 1))})
    ON CONFLICT (subnet, step, slot) DO UPDATE SET last_capacity = excluded.last_capacity, batch = excluded.batch,
    {", ".join(f"{column} = CASE WHEN excluded.reserved >= samples.reserved THEN excluded.{column} ELSE samples.{column} END" for column in _OF_THE_PEAK)},
    {", ".join(f"{column} = CASE WHEN samples.{column} > excluded.{column} THEN samples.{column} ELSE excluded.{column} END" for column in _HIGHEST)},
    {", ".join(f"{column} = samples.{column} + CASE WHEN {_FITS} THEN excluded.{column} ELSE 0 END" for column in _SUMS)}"""  # noqa: S608 - our own columns

_READINGS = DemandReading.__struct_fields__
_READ_FITS = "read_ms + $4 <= step * 1000"
_PUT_READING = f"""UPDATE samples SET
    {", ".join(f"{column} = CASE WHEN {column} > ${number} THEN {column} ELSE ${number} END" for number, column in enumerate(_READINGS, 5))},
    {", ".join(f"{column}_ms = {column}_ms + CASE WHEN {_READ_FITS} THEN $4 * ${number} ELSE 0 END" for number, column in enumerate(_READINGS, 5))},
    read_ms = read_ms + CASE WHEN {_READ_FITS} THEN $4 ELSE 0 END
    WHERE subnet = $1 AND step = $2 AND slot = $3"""  # noqa: S608 - our own columns

_DROP = f"""DELETE FROM samples WHERE subnet = $1 AND step = $2 AND slot IN
    (SELECT slot FROM samples WHERE subnet = $1 AND step = $2 AND slot < $3 ORDER BY slot LIMIT {_DROPPED_AT_ONCE})"""  # noqa: S608 - a number
_READ = """SELECT at, capacity, reserved FROM samples
    WHERE subnet = $1 AND step = $2 AND slot >= $3 AND slot <= $4 AND at >= $5 AND at < $6 ORDER BY slot"""
_READ_USAGE = f"""SELECT slot, last_capacity, reserved, batch, {", ".join((*_HIGHEST, *_SUMS, "read_ms"))},
    {", ".join(f"{column}, {column}_ms" for column in _READINGS)}
    FROM samples WHERE subnet = $1 AND step = $2 AND slot BETWEEN $3 AND $4 ORDER BY slot"""  # noqa: S608 - our own columns


def note_usage(
    subnet: SubnetRow, before: SubnetRow, now: float, reading: DemandReading | None = None
) -> Script[None]:
    """Account for a change of the subnet's totals, and write it down if it is time to. The caller saves the subnet's row.

    A reading of the demand is written at once.
    """
    now_ms, written_ms = to_milliseconds(now), to_milliseconds(subnet.sampled)
    account, rows = account_for(
        subnet.account, before.totals, subnet.totals, now_ms, at_once=reading is not None
    )
    subnet.account = account
    if not rows:
        return
    yield from execute_changes(TableChange(_PUT, [_values(subnet.id, row) for row in rows]))
    if reading is not None:
        yield from _note_reading(subnet, reading, now_ms)
    oldest = [
        (subnet.id, series.step_seconds, series.oldest_slot(now))
        for series in SERIES
        if series.slot(written_ms) != series.slot(now_ms)
    ]
    yield from execute_changes(TableChange(_DROP, oldest))


def _note_reading(subnet: SubnetRow, reading: DemandReading, now_ms: int) -> Script[None]:
    """Write a reading down: it counts for the time since the one before it, in the rows that it is taken in."""
    weight = countable_ms(to_milliseconds(subnet.demand_read), now_ms) or 0
    figures = [getattr(reading, column) for column in _READINGS]
    readings = [
        (subnet.id, series.step_seconds, series.slot(now_ms), min(weight, series.step_ms), *figures)
        for series in SERIES_WITH_DEMAND
    ]
    yield from execute_changes(TableChange(_PUT_READING, readings))
    subnet.demand_read = now_ms / MILLISECONDS


def _values(subnet: int, row: UsageRow) -> tuple[object, ...]:
    return (
        *(subnet, row.step_seconds, row.slot),
        *(row.at_ms / MILLISECONDS, row.capacity, row.reserved),
        *(row.last_capacity, row.batch, row.owed, row.containers),
        *(row.observed_ms, row.reserved_ms, row.exhausted_ms, row.starved_ms),
    )


def read_samples(
    subnet: SubnetRow, since: float, until: float, now: float
) -> Script[tuple[Utilization, ...]]:
    """The readings from `since` to before `until`, each time by the finest series that reaches back to it."""
    readings: list[Utilization] = []
    newer = until
    for series in SERIES:
        step, older = series.step_seconds, max(since, now - series.kept_seconds)
        if older < newer:
            rows = yield Query(_READ, (subnet.id, step, int(older // step), int(newer // step), older, newer))
            readings = [Utilization(to_time(at), *counts) for at, *counts in rows] + readings
            newer = older
    return tuple(readings)


def read_usage(
    subnet: SubnetRow, since: float, until: float, now: float, step: UsageStep
) -> Script[tuple[SubnetUsage, ...]]:
    """The rows that the time from `since` to before `until` touches, of a series that is kept."""
    series = _series(step, since, until, now)
    oldest = max(series.oldest_slot(now), int(max(since, 0) // series.step_seconds))
    last_ms = min(to_milliseconds(now), to_milliseconds(min(until, now + 1)) - 1)
    if since >= until or last_ms < 0:
        return ()
    rows = yield Query(_READ_USAGE, (subnet.id, series.step_seconds, oldest, series.slot(last_ms)))
    return tuple(_usage(series.step_seconds, *row) for row in rows)


def _series(step: UsageStep, since: float, until: float, now: float) -> UsageSeries:
    if step == "auto":
        return choose_series(since, until, now)
    return next(series for series in SERIES if series.name == step)


def _usage(  # noqa: PLR0913, PLR0917 - a row's columns
    step: int,
    slot: int,
    capacity: int,
    reserved: int,
    batch: int | None,
    owed: int | None,
    containers: int | None,
    observed_ms: int,
    reserved_ms: int,
    exhausted_ms: int,
    starved_ms: int,
    read_ms: int,
    *readings: int | None,
) -> SubnetUsage:
    named: dict[str, Any] = {}
    for column, highest, sum_ms in zip(_READINGS, readings[::2], readings[1::2], strict=True):
        named[column] = highest
        named[f"{column}_mean"] = None if highest is None else _mean(sum_ms or 0, read_ms, highest)
    return SubnetUsage(
        timestamp=to_time(slot * step),
        step_seconds=step,
        observed_seconds=observed_ms / MILLISECONDS,
        capacity=capacity,
        reserved=reserved,
        reserved_mean=_mean(reserved_ms, observed_ms, reserved),
        owed=owed,
        containers=containers,
        batch=batch,
        exhausted_seconds=exhausted_ms / MILLISECONDS,
        starved_seconds=starved_ms / MILLISECONDS,
        **named,
    )


def _mean(sum_ms: int, observed_ms: int, highest: int) -> float:
    return sum_ms / observed_ms if observed_ms else float(highest)


def write_probe(now: float) -> Script[None]:
    """Write a row that is never read: whether the database takes writes is known only by writing.

    A full disk, a file system that went read-only or a PostgreSQL that became a standby answers every question and keeps
    nothing. The row is one of `samples`, of a subnet that does not exist; its time differs each time, because a database
    need not write what is there already.
    """
    yield Query(_WRITE, (_NO_SUBNET, now))
