"""Opening the allocator's database by its URL.

    sqlite:///relative/path.db     sqlite:////absolute/path.db     sqlite:///:memory:
    postgresql://user@host/database     postgresql://user@first:5432,second:5432/database

Errors name the database without its password.

What is at the path of a SQLite database is looked at before SQLite opens it. SQLite makes a file where there is none,
so a slip in a path would be an empty database, and a question about subnets would leave a file behind. And its messages
about a directory, or another program's file, do not say what to do.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

from podtide.allocator.store.allocator import DatabaseAllocator
from podtide.allocator.store.drivers.database import Database, InvalidDatabaseUrl
from podtide.allocator.store.drivers.executors import Executor, ThreadExecutor
from podtide.allocator.store.drivers.sqlite import IN_MEMORY, SqliteDatabase, read_untouched
from podtide.allocator.store.migration import (
    POSTGRESQL,
    SQLITE,
    Dialect,
    UnusableDatabase,
    check_ours,
    check_schema,
)
from podtide.allocator.store.migration import migrate as migration
from podtide.allocator.store.rules import StoreRules
from podtide.runtime.clock import Clock

_MAGIC = b"SQLite format 3\0"


def require_database_file(path: str, *, may_be_made: bool) -> None:
    """Raise UnusableDatabase for a path where there is no database, unless `may_be_made` and one can be created there."""
    file = Path(path)
    where = f"--database sqlite:///{path}"
    if file.is_dir():
        raise UnusableDatabase(
            f"{where} names a directory: name a file in it, such as sqlite:///{path}/podtide.db"
        )
    try:
        begins_with = _beginning(file)
    except FileNotFoundError:
        _require_can_be_made(file, where, may_be_made=may_be_made)
        return
    except OSError as error:
        raise UnusableDatabase(
            f"{where} cannot be read ({error.strerror}): correct the path, or who may read it"
        ) from error
    if begins_with not in {b"", _MAGIC}:
        raise UnusableDatabase(
            f"{where} names a file that is not a SQLite database: name another, or a path where there is none yet"
        )
    if not os.access(file, os.W_OK):
        raise UnusableDatabase(f"{where} may not be written by this user: correct who owns it, or its mode")


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC))


def _require_can_be_made(file: Path, where: str, *, may_be_made: bool) -> None:
    if not may_be_made:
        raise UnusableDatabase(
            f"{where} names no file: correct the path, or start `podtide allocator` on it, which makes one"
        )
    directory = file.absolute().parent
    if not directory.is_dir():
        raise UnusableDatabase(
            f"{where} is in {directory}, which is not a directory: make it, or correct the path"
        )
    if not os.access(directory, os.W_OK):
        raise UnusableDatabase(f"{where} cannot be made: this user may not write in {directory}")


_SQLITE = "sqlite:///"
_POSTGRESQL = ("postgresql://", "postgres://")


async def open_allocator(
    url: str,
    *,
    clock: Clock,
    rules: StoreRules | None = None,
    executor: Executor | None = None,
    migrate: bool = False,
) -> DatabaseAllocator:
    """The allocator on the database at `url`, which is brought to this podtide's schema first if `migrate` says so.

    Such a one is to be served: it is then examined, too, whether it is the one it was (see `continuity_check`).

    UnusableDatabase when its schema is another, AllocatorUnavailable when it cannot be reached. `executor` is where SQLite
    is used, by default in a thread of its own; PostgreSQL needs none.
    """
    rules = rules or StoreRules()
    if url.startswith(_SQLITE) and (path := url.removeprefix(_SQLITE)) not in {"", IN_MEMORY}:
        _look_at_file(path, clock, migrate=migrate)
    named = url if url.startswith(_SQLITE) else _without_password(url)
    database, dialect = await _open(url, clock, rules, executor)
    try:
        if migrate:
            await database.migrate(migration(named, dialect))
        else:
            await database.read(check_schema(named, dialect))
        store = DatabaseAllocator(database, clock=clock, rules=rules)
        if migrate:
            await store.examine()
    except BaseException:
        await database.close()
        raise
    return store


def _look_at_file(path: str, clock: Clock, *, migrate: bool) -> None:
    """Refuse a file that is not a database of the allocator, before opening it would change it."""
    require_database_file(path, may_be_made=migrate)
    if Path(path).exists():
        check = check_ours if migrate else check_schema
        read_untouched(path, check(f"{_SQLITE}{path}", SQLITE)(clock.wall()))


async def _open(
    url: str, clock: Clock, rules: StoreRules, executor: Executor | None
) -> tuple[Database, Dialect]:
    if url.startswith(_SQLITE) and url != _SQLITE:
        path = url.removeprefix(_SQLITE)
        return SqliteDatabase(path, clock=clock, rules=rules, executor=executor or ThreadExecutor()), SQLITE
    if url.startswith(_POSTGRESQL):
        from podtide.allocator.store.drivers.postgresql import connect  # noqa: PLC0415 - asyncpg is not needed on SQLite

        return await connect(url, _without_password(url), clock=clock, rules=rules), POSTGRESQL
    raise InvalidDatabaseUrl(
        f"--database with a URL that begins with {url.partition(':')[0]!r} is refused: "
        "use sqlite:///path/to/file.db or postgresql://user@host/database"
    )


def _without_password(url: str) -> str:
    """The URL for messages, without its password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "postgresql://…"
    user, _at, host = parts.netloc.rpartition("@")
    user = user.partition(":")[0]
    return f"{parts.scheme}://{user}@{host}{parts.path}" if user else f"{parts.scheme}://{host}{parts.path}"
