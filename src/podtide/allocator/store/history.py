"""How full a subnet was: readings written along with other changes, thinned out the further back they lie.

Each reading goes into three series, of which one row stands for 5 seconds, a minute and a quarter of an hour; a row keeps the
highest reading of its time, because what matters later is how close it came to running out. Older rows of a series are
dropped as new ones come, so a subnet's history never grows beyond some 11,000 rows, and nothing is ever thinned out in bulk.
"""

from typing import NamedTuple

from podtide.allocator.store.script import Many, Query, Script
from podtide.allocator.store.subnet_row import SubnetRow
from podtide.allocator.subnets import Utilization
from podtide.resources.timestamps import to_time

_NO_SUBNET = -1
_WRITE = """INSERT INTO samples (subnet, step, slot, at, capacity, reserved) VALUES ($1, 0, 0, $2, 0, 0)
    ON CONFLICT (subnet, step, slot) DO UPDATE SET at = excluded.at"""


class Series(NamedTuple):
    """Readings of which one in `step_seconds` is kept for `kept_seconds`."""

    step_seconds: int
    kept_seconds: int


SERIES = (Series(5, 3_600), Series(60, 86_400), Series(900, 90 * 86_400))
"""From the finest to the coarsest."""

_PUT = """INSERT INTO samples (subnet, step, slot, at, capacity, reserved) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (subnet, step, slot) DO UPDATE
    SET at = excluded.at, capacity = excluded.capacity, reserved = excluded.reserved
    WHERE excluded.reserved >= samples.reserved"""
_DROP = "DELETE FROM samples WHERE subnet = $1 AND step = $2 AND slot < $3"
_READ = """SELECT at, capacity, reserved FROM samples
    WHERE subnet = $1 AND step = $2 AND slot >= $3 AND slot <= $4 AND at >= $5 AND at < $6 ORDER BY slot"""


def note_sample(subnet: SubnetRow, now: float) -> Script[None]:
    """Write down how full the subnet is, unless that was done a moment ago. The caller saves the subnet's row."""
    if 0 <= now - subnet.sampled < SERIES[0].step_seconds:
        return
    subnet.sampled = now
    yield Many(
        _PUT,
        [
            (subnet.id, step, int(now // step), now, subnet.capacity, subnet.reserved)
            for step, _kept in SERIES
        ],
    )
    yield Many(_DROP, [(subnet.id, step, int((now - kept) // step)) for step, kept in SERIES])


def read_samples(
    subnet: SubnetRow, since: float, until: float, now: float
) -> Script[tuple[Utilization, ...]]:
    """The readings from `since` to before `until`, each time by the finest series that reaches back to it."""
    readings: list[Utilization] = []
    newer = until
    for step, kept in SERIES:
        older = max(since, now - kept)
        if older < newer:
            rows = yield Query(_READ, (subnet.id, step, int(older // step), int(newer // step), older, newer))
            readings = [Utilization(to_time(at), *counts) for at, *counts in rows] + readings
            newer = older
    return tuple(readings)


def write_probe(now: float) -> Script[None]:
    """Write a row that is never read: whether the database takes writes is known only by writing.

    A full disk, a file system that went read-only or a PostgreSQL that became a standby answers every question and keeps
    nothing. The row is one of `samples`, of a subnet that does not exist; its time differs each time, because a database
    need not write what is there already.
    """
    yield Query(_WRITE, (_NO_SUBNET, now))
