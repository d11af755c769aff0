"""A database is opened by its URL, and only if it is one that this podtide can use; what is wrong is said in one line."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from allocator.contract.harness import end_due
from allocator.store.before_0005 import UNDO_0005
from allocator.store.databases import DatabaseUnderTest, HandClock
from allocator.store.wishes import named, spec, wish
from podtide.allocator.errors import AllocatorUnavailable, SubnetFull
from podtide.allocator.store import InvalidDatabaseUrl, UnusableDatabase, open_allocator
from podtide.allocator.store.drivers.mark import MarkFile
from podtide.allocator.store.migration import SCHEMA

SINCE_0002 = (
    "quarantined", "batch", "buffer", "top", "exhausted", "starved", "step", "reason", "serial", "changed_at",
)  # fmt: skip
SINCE_0003 = (
    "DROP TABLE store",
    "DROP TABLE clusters",
    "ALTER TABLE subnets DROP COLUMN sequence",
    "ALTER TABLE containers DROP COLUMN cluster_uid",
    "ALTER TABLE containers DROP COLUMN confirmed",
)


def forget_mark(database: DatabaseUnderTest) -> None:
    """A database of an older schema never had one."""
    if database.is_sqlite:
        MarkFile(database.url.removeprefix("sqlite:///")).path.unlink()


WITHOUT_0004 = (
    "DROP TABLE quarantines",
    "DROP INDEX quarantined_by_holder",
    *(f"ALTER TABLE containers DROP COLUMN {column}" for column in ("machine_id", "system_uuid", "boot_id")),
)


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
    if database.is_sqlite:
        with sqlite3.connect(database.url.removeprefix("sqlite:///")) as file:
            file.execute("PRAGMA user_version = 0")  # SQLite makes the file with the first that it writes
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


async def test_a_database_from_before_the_counts_is_counted_when_it_is_migrated(
    database: DatabaseUnderTest,
) -> None:
    await drop_everything(database)
    async with database.replica() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/25"))
        await allocator.add_subnet(spec("10.2.0.0/25", name="empty"))
        await allocator.put_container(wish("a", 35))
        await allocator.put_container(wish("b", 35, cluster="west"))
        await allocator.put_container(wish("c", 5))
        await allocator.put_container(wish("c", 1, 2))  # holds more than it wants
        held = await allocator.put_container(wish("e", 8))
        await allocator.put_container(wish("gone", 19))
        await allocator.delete_container("gone", cluster="east")
        await allocator.put_container(wish("d", 90))  # wants more than it holds
        await allocator.put_container(wish("e", 2, 2, release=tuple(named(held))[:6]))  # these cool down
        with pytest.raises(SubnetFull):
            await allocator.put_container(wish("waits", 3))
        before = await allocator.demand("blue", "pods")
        versions = {each.id: each.version for each in (await allocator.list_containers()).items}
    for statement in (
        *WITHOUT_0004,
        *SINCE_0003,
        "DROP TABLE alike",
        "DROP TABLE bounds",
        *(f"ALTER TABLE subnets DROP COLUMN {column}" for column in SINCE_0002),
        "ALTER TABLE containers DROP COLUMN stated",
        "ALTER TABLE containers DROP COLUMN statement_number",
        *UNDO_0005,
        "UPDATE subnets SET gateway = '10.2.0.1' WHERE name = 'empty'",
        "UPDATE alembic_version SET version_num = '0001'",
    ):
        await execute(database, statement)
    with pytest.raises(UnusableDatabase, match=f"has schema 0001, and this podtide needs {SCHEMA}"):
        async with database.replica(migrate=False):
            pass
    forget_mark(database)
    async with database.replica(migrate=True) as allocator:
        assert await allocator.audit() == ()
        page = await allocator.list_containers()
        assert {each.id: (each.version, each.cluster_uid) for each in page.items} == {
            id_: (version, "") for id_, version in versions.items()
        }
        assert await allocator.demand("blue", "pods") == before
        counted = {(alike.taken, alike.containers) for alike in before.alike}
        assert counted == {(36, 2), (6, 1), (91, 1), (4, 1), (3, 1)}
        assert before.subnet.quarantined == 20
        await allocator.delete_container("a", cluster="east")
        assert await allocator.audit() == ()
        given_back = list(named(await allocator.get_container("e", cluster="east")))[:1]
        changed = await allocator.put_container(wish("e", 1, 3, release=tuple(given_back)))
        assert changed.version > max(versions.values())


async def test_a_quarantine_from_before_it_ended_by_word_is_written_down_when_it_is_migrated(
    database: DatabaseUnderTest,
) -> None:
    await drop_everything(database)
    async with database.replica() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/25"))
        await allocator.put_container(wish("gone", 40))
        await allocator.put_container(wish("stays", 3))
        await allocator.delete_container("gone", cluster="east")
        before = await allocator.quarantined()
        assert len(before.items[0].addresses) == 41
    for statement in (*UNDO_0005, *WITHOUT_0004, "UPDATE alembic_version SET version_num = '0003'"):
        await execute(database, statement)
    async with database.replica(migrate=True) as allocator:
        assert await allocator.audit() == ()
        assert await allocator.quarantined() == before
        database.clock.now += 361
        await end_due(allocator)
        assert (await allocator.get_subnet("blue", "pods")).reserved == 4
        assert await allocator.audit() == ()


async def test_a_newer_schema_is_refused_even_when_told_to_migrate(database: DatabaseUnderTest) -> None:
    async with database.allocator():
        pass
    try:
        for schema in ("9999", "0004b"):  # the latter is of no podtide that this one knows
            await execute(database, f"UPDATE alembic_version SET version_num = '{schema}'")  # noqa: S608 - one of the two
            for migrate in (False, True):
                with pytest.raises(
                    UnusableDatabase,
                    match=f"has schema {schema}, and this podtide .* up to {SCHEMA}: install one",
                ):
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
    with pytest.raises((AllocatorUnavailable, InvalidDatabaseUrl, UnusableDatabase)) as refusal:
        await open_allocator(url, clock=HandClock())
    assert "\n" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


async def test_a_file_that_is_no_database_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("to do: buy milk\n" * 100)
    with pytest.raises(UnusableDatabase, match="names a file that is not a SQLite database"):
        await open_allocator(f"sqlite:///{tmp_path}/notes.db", clock=HandClock(), migrate=True)


def test_the_schema_this_podtide_knows_is_the_last_migration() -> None:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - only where it is needed, as in production

    from podtide.allocator import migrations  # noqa: PLC0415 - as above

    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_heads() == [SCHEMA]


def test_alembic_is_imported_only_when_migrating() -> None:
    program = "import podtide.allocator.store, podtide.allocator.store.drivers.postgresql, sys; print('alembic' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert answer.stdout == "False\n"
