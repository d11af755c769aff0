"""Copies of a SQLite database, taken while it is used, and put back while it is not.

A database that was put back recovers before it grants anything: what was granted since the copy was taken is held by
nodes, and only they know it (`core.subnet.store_continuity`). PostgreSQL has tools of its own; afterwards it is told here.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from podtide import __version__
from podtide.allocator.store.migration import KNOWN, SCHEMA, UnusableDatabase
from podtide.allocator.store.tables.transaction_context import recovery_number

_BEGIN = "UPDATE store SET recovery = max(recovery + 1, ?3), recovering_since = ?1, reason = ?2"
_BUSY_SECONDS = 1.0
WITH_A_PAST = "0003"
"""The first schema that can say that it was restored."""


def backup(database: str, copy: Path) -> None:
    """Copy the database while it is in use; an existing file is not overwritten."""
    if copy.exists():
        raise UnusableDatabase(f"{copy} is there already: give the name of a new file")
    with (
        _readable_errors(f"back {database} up to {copy}"),
        closing(_open_existing(database, f"--database sqlite:///{database}")) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def restore(database: str, copy: Path, now: float) -> None:
    """Replace the database by a copy, and begin a recovery; refused while any process has the database open."""
    with (
        _readable_errors(f"restore {database} from {copy}"),
        closing(_open_existing(str(copy), f"FILE {copy}")) as source,
    ):
        _refuse_stranger(source, copy)
        with closing(sqlite3.connect(database, timeout=_BUSY_SECONDS, isolation_level=None)) as target:
            _refuse_to_lose(target, database)
            _refuse_live(target, database)
            source.backup(target)
            target.execute(_BEGIN, (now, f"it was restored from {copy.name}", recovery_number(now)))


def _open_existing(path: str, named: str) -> sqlite3.Connection:
    if not Path(path).is_file():
        raise UnusableDatabase(f"{named} names no file: correct the path")
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)


def _refuse_stranger(source: sqlite3.Connection, copy: Path) -> None:
    schema = _schema(source)
    if not schema or schema < WITH_A_PAST:
        raise UnusableDatabase(
            f"{copy} is not a database of podtide's allocator: give a file that `backup` made"
        )
    if schema not in KNOWN:
        raise UnusableDatabase(
            f"{copy} has schema {schema}, and this podtide {__version__} knows schemas up to {SCHEMA}: install one as new "
            "as the one that made it, or give an older backup; nothing was changed"
        )


def _refuse_to_lose(target: sqlite3.Connection, database: str) -> None:
    """Refuse to overwrite a file that is not a database of the allocator."""
    ((tables,),) = target.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    if tables and not _schema(target):
        raise UnusableDatabase(
            f"{database} is another program's database: give the allocator's own with --database, or a new file"
        )


def _refuse_live(target: sqlite3.Connection, database: str) -> None:
    """Refuse a database that is in use: it cannot leave its write-ahead log, and asking it to does no harm."""
    try:
        ((mode,),) = target.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.OperationalError:
        mode = "locked"
    if mode != "delete":
        raise UnusableDatabase(
            f"{database} is open: stop the allocator, or the controller, that uses it, and try again"
        )


def _schema(connection: sqlite3.Connection) -> str:
    try:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.DatabaseError:
        return ""
    return str(rows[0][0]) if rows else ""


@contextmanager
def _readable_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise UnusableDatabase(f"cannot {doing}: {error}") from error
