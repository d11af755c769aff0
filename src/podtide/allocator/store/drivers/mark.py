"""The mark beside a SQLite database: how far the database had come, kept where a restored copy does not reach.

It is written after every commit that changed what is granted, before the call is answered, so it is never ahead of the
database, and an older copy of the database is behind it. It is not synced: a kill does not lose it, and after a loss of
power it is a little behind, which harms nothing.
"""

import os
import sqlite3
from pathlib import Path

from podtide.allocator.errors import AllocatorUnavailable
from podtide.core.subnet.store_continuity import StoreMark

SUFFIX = ".mark"
PROGRESS = """SELECT store.uid, store.removed_sequences + coalesce((SELECT sum(sequence) FROM subnets), 0) FROM store"""
"""The store, and how far it has come: this never shrinks, also when a subnet is removed."""


class MarkFile:
    """The mark of the database at a path."""

    def __init__(self, database: str) -> None:
        self.path = Path(f"{database}{SUFFIX}")
        self.is_examined = False
        """Until the database was compared with it, the mark is only ever moved on: see `continuity_check`."""
        self._written: StoreMark | None = None

    def read(self) -> StoreMark | None:
        """The mark; None when there is none."""
        try:
            store, progress = self.path.read_text().split()
            return StoreMark(store, int(progress))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return StoreMark("unreadable", 0)

    def follow(self, connection: sqlite3.Connection) -> None:
        """Write how far the database has come, if that changed. Before its first use there is nothing to write."""
        try:
            ((store, progress),) = connection.execute(PROGRESS).fetchall()
        except sqlite3.OperationalError:
            return  # of an older schema, or none yet
        mark = StoreMark(store, progress)
        if not store or mark == self._written or not (self.is_examined or self._moves_on(mark)):
            return
        self._write(mark)
        self._written = mark

    def _moves_on(self, mark: StoreMark) -> bool:
        """Whether the mark is of the same database, and not ahead of it."""
        there = self.read()
        return there is not None and there.store == mark.store and there.progress <= mark.progress

    def _write(self, mark: StoreMark) -> None:
        """Overwrite the mark with a line of the same length in one write: it is never half of two."""
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(handle, f"{mark.store} {mark.progress:020d}\n".encode(), 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise AllocatorUnavailable(
                f"the mark {self.path} beside the database cannot be written ({error.strerror}): without it an older "
                "copy of the database could not be recognised; make room, or let the allocator write there"
            ) from error
