"""A database is opened by its URL, and only if it is one that this podtide can use; what is wrong is said in one line."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from allocator.store.databases import DatabaseUnderTest, HandClock
from allocator.store.wishes import spec
from podtide.allocator.port import AllocatorUnavailable
from podtide.allocator.store import InvalidDatabaseUrl, UnusableDatabase, open_allocator
from podtide.allocator.store.migrating import SCHEMA


async def execute(database: DatabaseUnderTest, statement: str) -> None:
    """Something that another program does to the database."""
    if database.is_sqlite:
        with sqlite3.connect(database.url.removeprefix("sqlite:///")) as file:
            file.execute(statement)
        file.close()
    else:
        connection = await asyncpg.connect(database.url)
        await connection.execute(statement)
        await connection.close()


async def drop_everything(database: DatabaseUnderTest) -> None:
    if database.is_sqlite:
        await database.empty()
    else:
        await execute(database, "DROP SCHEMA public CASCADE")
        await execute(database, "CREATE SCHEMA public")


async def test_a_database_without_a_schema_is_refused_unless_told_to_migrate(
    database: DatabaseUnderTest,
) -> None:
    await drop_everything(database)
    with pytest.raises(UnusableDatabase, match=f"has no schema yet, and this podtide needs {SCHEMA}"):
        async with database.replica(migrate=False):
            pass
    async with database.replica(migrate=True) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
    async with database.replica(migrate=True) as allocator, database.replica(migrate=False) as other:
        assert await allocator.list_subnets() == await other.list_subnets() != ()


async def test_replicas_that_start_at_once_migrate_once(database: DatabaseUnderTest) -> None:
    await drop_everything(database)

    async def start() -> None:
        async with database.replica(migrate=True) as allocator:
            assert await allocator.list_subnets() == ()

    await asyncio.gather(*(start() for _ in range(4)))


async def test_a_newer_schema_is_refused_even_when_told_to_migrate(database: DatabaseUnderTest) -> None:
    async with database.allocator():
        pass
    await execute(database, "UPDATE alembic_version SET version_num = '9999'")
    try:
        for migrate in (False, True):
            with pytest.raises(UnusableDatabase, match=f"has schema 9999, and this podtide knows {SCHEMA}"):
                async with database.replica(migrate=migrate):
                    pass
    finally:
        await drop_everything(database)


async def test_somebody_elses_database_is_left_alone(database: DatabaseUnderTest) -> None:
    await drop_everything(database)
    await execute(database, "CREATE TABLE orders (id INTEGER)")
    with pytest.raises(UnusableDatabase, match=r"has tables of something else \(orders\)"):
        async with database.replica(migrate=True):
            pass
    await drop_everything(database)


@pytest.mark.parametrize("url", ["", "sqlite:///", "mysql://u:secret@h/d", "/var/lib/x.db", "secret"])
async def test_what_names_no_database_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidDatabaseUrl, match="use sqlite:///path") as refusal:
        await open_allocator(url, clock=HandClock())
    assert "\n" not in str(refusal.value)
    assert "h/d" not in str(refusal.value)


@pytest.mark.real_time
@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////nowhere/at/all.db",
        "postgresql://me:secret@127.0.0.1:1/db",
        "postgresql://me:secret@/db?host=/nowhere",
        "postgresql://me:secret@127.0.0.1:port/db",
    ],
)
async def test_a_database_out_of_reach_is_said_in_one_line_without_its_password(url: str) -> None:
    with pytest.raises((AllocatorUnavailable, InvalidDatabaseUrl)) as refusal:
        await open_allocator(url, clock=HandClock())
    assert "\n" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


async def test_a_file_that_is_no_database_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("to do: buy milk\n" * 100)
    with pytest.raises(AllocatorUnavailable, match="file is not a database"):
        await open_allocator(f"sqlite:///{tmp_path}/notes.db", clock=HandClock(), migrate=True)


def test_the_schema_this_podtide_knows_is_the_last_migration() -> None:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - only where it is needed, as in production

    from podtide.allocator import migrations  # noqa: PLC0415 - as above

    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_heads() == [SCHEMA]


def test_alembic_is_imported_only_when_migrating() -> None:
    program = "import podtide.allocator.store, podtide.allocator.store.postgresql, sys; print('alembic' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert answer.stdout == "False\n"
