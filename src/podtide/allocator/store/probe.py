"""A write that changes nothing anybody reads: whether the database takes writes is known only by writing.

A full disk, a file system that went read-only or a PostgreSQL that became a standby answers every question and keeps
nothing. The row is one of `samples`, of a subnet that there is not; its time differs each time, because a database
need not write what is there already.
"""

from podtide.allocator.store.script import Query, Script

_NO_SUBNET = -1
_WRITE = """INSERT INTO samples (subnet, step, slot, at, capacity, reserved) VALUES ($1, 0, 0, $2, 0, 0)
    ON CONFLICT (subnet, step, slot) DO UPDATE SET at = excluded.at"""


def write_probe(now: float) -> Script[None]:
    """Write it."""
    yield Query(_WRITE, (_NO_SUBNET, now))
