"""A database that was restored from a backup is found out when it is opened, by what stands outside of it."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from allocator.contract.harness import end_due
from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import spec, wish
from podtide.allocator.errors import StoreRecovering
from podtide.allocator.store import DatabaseAllocator
from podtide.allocator.store.drivers.mark import MarkFile
from podtide.allocator.terms import TermClaim

CLAIM = TermClaim(cluster="east", cluster_uid="uid", holder="one")


async def fill(allocator: DatabaseAllocator) -> None:
    await allocator.add_subnet(spec("10.1.0.0/24"))
    await allocator.open_term(CLAIM)
    await allocator.put_container(wish("a", 3, cluster_uid="uid"))


async def reason(allocator: DatabaseAllocator) -> str:
    registry = await allocator.list_clusters()
    if registry.recovering:
        assert registry.awaited == ("east",)
        with pytest.raises(StoreRecovering):
            await allocator.put_container(wish("b", 3, cluster_uid="uid"))
    return registry.recovering


def files_of(database: DatabaseUnderTest) -> Path:
    if not database.is_sqlite:
        pytest.skip("a file is SQLite's")
    return Path(database.url.removeprefix("sqlite:///"))


async def test_a_database_that_is_opened_again_grants(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await fill(allocator)
    for _ in range(2):
        async with database.replica() as allocator:
            assert await reason(allocator) == ""
            await allocator.put_container(wish("a", 3, cluster_uid="uid"))


async def test_an_older_copy_grants_nothing(database: DatabaseUnderTest) -> None:
    path = files_of(database)
    async with database.allocator() as allocator:
        await fill(allocator)
        source, copy = sqlite3.connect(path), sqlite3.connect(path.with_name("copy"))
        source.backup(copy)
        source.close()
        copy.close()
        await allocator.put_container(wish("b", 1, cluster_uid="uid"))
    shutil.copy(path.with_name("copy"), path)
    async with database.replica() as allocator:
        assert "it is an older copy" in await reason(allocator)
    async with database.replica() as allocator:  # a restart is no way out of it
        assert "it is an older copy" in await reason(allocator)
        number = (await allocator.open_term(CLAIM)).recovery
        await allocator.finish_report("east", cluster_uid="uid", recovery=number)
    async with database.replica() as allocator:
        assert await reason(allocator) == ""
    shutil.copy(path.with_name("copy"), path)
    async with database.replica() as allocator:  # and neither is it to restore the same copy once more
        assert "it is an older copy" in await reason(allocator)


async def test_a_copy_of_the_last_moment_is_no_older_one(database: DatabaseUnderTest) -> None:
    path = files_of(database)
    async with database.allocator() as allocator:
        await fill(allocator)
    shutil.copy(path, path.with_name("copy"))
    shutil.copy(path.with_name("copy"), path)
    async with database.replica() as allocator:
        assert await reason(allocator) == ""


async def test_a_removed_subnet_does_not_make_a_database_look_older(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await fill(allocator)
        await allocator.add_subnet(spec("10.2.0.0/24", name="other"))
        await allocator.put_container(wish("o", 3, subnet="other", cluster_uid="uid"))
        await allocator.delete_container("o", cluster="east", cluster_uid="uid")
        database.clock.now += 1000
        await end_due(allocator)
        await allocator.remove_subnet("blue", "other")
    async with database.replica() as allocator:
        assert await reason(allocator) == ""


@pytest.mark.parametrize("text", [None, "someone-else 00000000000000000000\n", "nonsense"])
async def test_a_database_without_its_own_mark_grants_nothing(
    database: DatabaseUnderTest, text: str | None
) -> None:
    mark = MarkFile(str(files_of(database))).path
    async with database.allocator() as allocator:
        await fill(allocator)
    mark.unlink()
    if text is not None:
        mark.write_text(text)
    async with database.replica() as allocator:
        assert "the mark beside the database is" in await reason(allocator)


async def test_a_new_database_in_the_place_of_an_old_one_grants_nothing(database: DatabaseUnderTest) -> None:
    path = files_of(database)
    async with database.allocator() as allocator:
        await fill(allocator)
    path.unlink()
    async with database.replica() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.open_term(CLAIM)
        assert "the database is new" in await reason(allocator)


async def test_a_server_that_lost_its_last_transactions_is_found_out(database: DatabaseUnderTest) -> None:
    """What a failover, a recovery to a point in time or a dump that is read in changes is the server's own mark."""
    if database.is_sqlite:
        pytest.skip("a server is PostgreSQL's")
    import asyncpg  # noqa: PLC0415 - SQLite needs none

    async with database.allocator() as allocator:
        await fill(allocator)
    for doing in (
        "UPDATE store SET mark = replace(mark, '/0000000', '/0000001')",  # another timeline
        "CREATE TABLE again AS SELECT * FROM store; DROP TABLE store; ALTER TABLE again RENAME TO store",  # a dump
    ):
        connection = await asyncpg.connect(database.url)
        await connection.execute(doing)
        await connection.close()
        async with database.replica() as allocator:
            assert "on another server or timeline" in await reason(allocator)
            number = (await allocator.open_term(CLAIM)).recovery
            await allocator.finish_report("east", cluster_uid="uid", recovery=number)
        async with database.replica() as allocator:
            assert await reason(allocator) == ""


async def test_clusters_with_a_token_are_awaited_too(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await fill(allocator)
        allocator.expected_clusters = lambda: frozenset({"east", "west"})
        await allocator.begin_recovery("restored")
        assert (await allocator.list_clusters()).awaited == ("east", "west")
        number = (await allocator.open_term(CLAIM)).recovery
        await allocator.finish_report("east", cluster_uid="uid", recovery=number)
        registry = await allocator.list_clusters()
        assert (registry.awaited, registry.recovering) == (("west",), "restored")


async def test_a_command_that_uses_the_database_before_it_is_served_hides_nothing(
    database: DatabaseUnderTest,
) -> None:
    path = files_of(database)
    async with database.allocator() as allocator:
        await fill(allocator)
    shutil.copy(path, path.with_name("copy"))
    async with database.replica() as allocator:
        await allocator.put_container(wish("b", 1, cluster_uid="uid"))
    shutil.copy(path.with_name("copy"), path)
    async with database.replica(migrate=False) as allocator:
        await allocator.grow_subnet("blue", "pods", ("10.9.0.0/24",))
    async with database.replica() as allocator:
        assert "it is an older copy" in await reason(allocator)


async def test_no_two_recoveries_have_one_number_even_if_the_store_forgot_the_first(
    database: DatabaseUnderTest,
) -> None:
    path = files_of(database)
    async with database.allocator() as allocator:
        await fill(allocator)
    shutil.copy(path, path.with_name("copy"))
    numbers = []
    for _ in range(2):
        async with database.replica() as allocator:
            await allocator.put_container(wish("b", 1, cluster_uid="uid"))
        shutil.copy(path.with_name("copy"), path)
        database.clock.now += 1
        async with database.replica() as allocator:
            numbers.append((await allocator.open_term(CLAIM)).recovery)
            await allocator.end_recovery()
    assert numbers[0] != numbers[1]


async def test_a_copy_of_a_store_that_recovered_waits_for_all_reports_anew(
    database: DatabaseUnderTest,
) -> None:
    path = files_of(database)
    async with database.allocator() as allocator:
        await fill(allocator)
        await allocator.open_term(TermClaim(cluster="west", cluster_uid="uid-w", holder="two"))
        await allocator.begin_recovery("restored")
        number = (await allocator.open_term(CLAIM)).recovery
        await allocator.finish_report("east", cluster_uid="uid", recovery=number)
        assert (await allocator.list_clusters()).awaited == ("west",)
    shutil.copy(path, path.with_name("copy"))
    async with database.replica() as allocator:
        await allocator.end_recovery()
        await allocator.put_container(wish("b", 1, cluster_uid="uid"))
    shutil.copy(path.with_name("copy"), path)
    async with database.replica() as allocator:
        assert (await allocator.list_clusters()).awaited == ("east", "west")
