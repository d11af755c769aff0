"""Bringing a database to the schema this podtide knows.

Every database carries the number of its schema. alembic knows the steps from one to the next and spells them for either
database; they are run by our own drivers, under a lock and in one transaction: all of it, or nothing. alembic is only
imported here, when there is something to do.
"""

from collections.abc import Callable
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple, cast

from podtide import __version__
from podtide.allocator.errors import AllocatorError
from podtide.allocator.store.legacy_gateways import give_gateways
from podtide.allocator.store.script import Query, Script
from podtide.core.errors import FixError

SCHEMA = "0006"
"""The schema that this podtide reads and writes."""
KNOWN = frozenset(f"{number:04}" for number in range(1, int(SCHEMA) + 1))
"""The schemas that this podtide can read or migrate."""
_MIGRATIONS = Path(__file__).parent.parent / "migrations"
_READ = "SELECT version_num FROM alembic_version"


class UnusableDatabase(AllocatorError, FixError):
    """The database is another program's, of a newer podtide, or must be migrated first."""


class Dialect(NamedTuple):
    """How to ask one kind of database about its schema."""

    name: str
    """As alembic calls it."""
    tables: Query
    """Its tables by name."""
    lock: Query | None = None
    """What keeps others from migrating until the transaction ends, where beginning to write does not."""


SQLITE = Dialect("sqlite", Query("SELECT name FROM sqlite_schema WHERE type = 'table'"))
POSTGRESQL = Dialect(
    "postgresql",
    Query("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()"),
    Query("SELECT pg_advisory_xact_lock(8103486518)"),
)


def migrate(name: str, dialect: Dialect) -> Callable[[float], Script[None]]:
    """A script that brings the database at `name` to this podtide's schema, if it is behind; refuses one that is ahead."""

    def script(now: float) -> Script[None]:
        if dialect.lock is not None:
            yield dialect.lock
        schema = yield from _schema(name, dialect)
        _refuse_newer(name, schema)
        if schema != SCHEMA:
            for step in _steps(dialect.name, schema):
                yield Query(step)
            if schema:
                yield from give_gateways(now)

    return script


def check_schema(name: str, dialect: Dialect) -> Callable[[float], Script[None]]:
    """A script that raises UnusableDatabase unless the schema of the database at `name` is this podtide's own."""

    def script(_now: float) -> Script[None]:
        schema = yield from _schema(name, dialect)
        _refuse_newer(name, schema)
        if schema != SCHEMA:
            found = f"has schema {schema}" if schema else "has no schema yet"
            raise UnusableDatabase(
                f"--database {name} {found}, and this podtide needs {SCHEMA}: start `podtide allocator` on it, which migrates"
            )

    return script


def check_ours(name: str, dialect: Dialect) -> Callable[[float], Script[None]]:
    """A script that raises UnusableDatabase where `migrate` would, and writes nothing."""

    def script(_now: float) -> Script[None]:
        _refuse_newer(name, (yield from _schema(name, dialect)))

    return script


def _schema(name: str, dialect: Dialect) -> Script[str]:
    """The schema's revision, "" for an empty database."""
    tables = {table for (table,) in (yield dialect.tables)}
    if not tables:
        return ""
    if not {"alembic_version", "subnets"} <= tables:
        raise UnusableDatabase(
            f"--database {name} has tables of something else ({', '.join(sorted(tables)[:3])}): name one for podtide alone"
        )
    ((schema,),) = yield Query(_READ)
    return cast("str", schema)


def _refuse_newer(name: str, schema: str) -> None:
    if schema and schema not in KNOWN:
        raise UnusableDatabase(
            f"--database {name} has schema {schema}, and this podtide {__version__} knows schemas up to {SCHEMA}: install "
            "one as new as the one that migrated it, or restore a backup from before; nothing was changed"
        )


class _Statements(StringIO):
    """Collects the statements that alembic would print."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []

    def write(self, text: str) -> int:
        if not text.startswith("--"):  # a comment on which step begins
            self.taken.append(text)
        return len(text)


@cache
def _steps(dialect: str, schema: str) -> tuple[str, ...]:
    """The statements that migrate a schema to this podtide's: always the same, and a simulation opens many databases."""
    from alembic.config import Config  # noqa: PLC0415 - takes 200 ms, and is needed once per release
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415 - as above
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - as above

    directory = ScriptDirectory(str(_MIGRATIONS))
    output = _Statements()
    with EnvironmentContext(
        Config(),
        directory,
        fn=lambda revision, _context: directory._upgrade_revs(SCHEMA, revision),  # noqa: SLF001 - alembic's documentation does the same
        as_sql=True,
        starting_rev=schema or None,
        destination_rev=SCHEMA,
    ) as environment:
        environment.configure(dialect_name=dialect, output_buffer=output, transactional_ddl=False)
        environment.run_migrations()
    return tuple(output.taken)
