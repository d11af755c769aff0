"""`podtide allocator cluster`, `release`, `backup` and `restore`: on a database and on a running allocator."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from allocator.contract.harness import a_wish
from cli.conftest import Run
from cli.test_subnet import Where, where  # noqa: F401 - a fixture
from podtide.allocator.client import AllocatorAddress, HttpAllocator
from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.store import DatabaseAllocator, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import SeenVersion, TermClaim
from podtide.runtime.clock import SystemClock

CLAIM = TermClaim(cluster="east", cluster_uid="uid-east", holder="controller-1")


async def opened(where: Where) -> AdministeredAllocator:  # noqa: F811 - what the fixture gives
    option, url = where
    if option == "--allocator":
        return HttpAllocator(AllocatorAddress(url=url))
    return await open_allocator(url, clock=SystemClock())


async def fill(allocator: AdministeredAllocator) -> None:
    await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
    await allocator.open_term(CLAIM)
    await allocator.put_container(a_wish("a", 3, cluster_uid="uid-east"))
    await allocator.put_container(a_wish("w", 3, cluster="west"))


def renew(where: Where) -> None:  # noqa: F811
    async def renew_there() -> None:
        allocator = await opened(where)
        await allocator.open_term(CLAIM)
        await allocator.close()  # type: ignore[attr-defined]  # both have it

    asyncio.run(renew_there())


def filled(where: Where) -> None:  # noqa: F811
    async def fill_there() -> None:
        allocator = await opened(where)
        await fill(allocator)
        await allocator.close()  # type: ignore[attr-defined]  # both have it

    asyncio.run(fill_there())


def test_on_eighty_columns_no_row_is_broken_and_a_uid_is_whole(
    podtide: Run,
    where: Where,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uid = "0f8fad5b-d9cb-469f-a165-70867728950e"

    async def claim() -> None:
        allocator = await opened(where)
        await allocator.open_term(
            replace(CLAIM, cluster_uid=uid, holder="podtide-controller-6d4cf56db6-x7k2p_4711")
        )
        await allocator.close()  # type: ignore[attr-defined]  # both have it

    asyncio.run(claim())
    monkeypatch.setattr("podtide.cli.output.formats.screen_width", lambda: 80)
    lines = podtide("allocator", "cluster", "list", *where).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:2] == ["east", uid]


def test_clusters_are_listed_moved_and_forgotten(podtide: Run, where: Where) -> None:  # noqa: F811
    filled(where)
    assert podtide("allocator", "cluster", "list", *where).out.splitlines() == [
        "NAME  UID       CONTAINERS  OF ANOTHER UID  WITHOUT UID  CONTROLLER    REPORTED",
        "east  uid-east  1           0               0            controller-1  yes",
        "west  -         0           0               1            -             yes",
    ]
    moved = podtide("allocator", "cluster", "move", "east", "--to-uid", "uid-new", *where)
    assert moved.out == "the name east belongs to uid-new\n"
    forgotten = podtide("allocator", "cluster", "forget", "east", "--uid", "uid-east", *where)
    assert forgotten.out == "1 container is deleted\n"
    assert (
        podtide("allocator", "cluster", "forget", "west", "--without-uid", *where).out
        == "1 container is deleted\n"
    )
    gone = podtide("allocator", "cluster", "forget", "east", *where)
    assert gone.out == "0 containers are deleted, and the name east is free\n"
    listed = json.loads(podtide("allocator", "cluster", "list", *where, "-o", "json").out)
    assert listed == {"clusters": [], "recovering": "", "since": 0.0, "awaited": []}


def test_a_cluster_for_which_a_controller_acts_is_forgotten_only_by_force(
    podtide: Run,
    where: Where,  # noqa: F811
) -> None:
    filled(where)
    for which in ((), ("--uid", "uid-east")):
        renew(where)  # a command may take long on a busy machine
        refused = podtide("allocator", "cluster", "forget", "east", *which, *where)
        assert refused.status == 2
        assert "controller controller-1 acts for cluster east until 20" in refused.err
        assert "say --force" in refused.err
    rest = podtide("allocator", "cluster", "forget", "east", "--uid", "uid-before", *where)
    assert rest.out == "0 containers are deleted\n"  # of another cluster, for which nobody acts
    assert podtide("allocator", "cluster", "forget", "east", "--without-uid", *where).status == 0
    forced = podtide("allocator", "cluster", "forget", "east", "--force", *where)
    assert forced.out == "1 container is deleted, and the name east is free\n"


@pytest.mark.parametrize(
    "command",
    [
        ("allocator", "cluster", "move", "eats", "--to-uid", "uid-new"),
        ("allocator", "cluster", "forget", "eats"),
        ("allocator", "cluster", "forget", "eats", "--force"),
        ("allocator", "cluster", "forget", "eats", "--uid", "uid-east"),
        ("quarantine", "release-cluster", "eats", "--reason", "gone", "--force"),
    ],
)
def test_a_name_that_is_not_known_is_refused_with_those_that_are(
    podtide: Run,
    where: Where,  # noqa: F811
    command: tuple[str, ...],
) -> None:
    filled(where)
    refused = podtide(*command, *where)
    assert refused.status == 2
    assert "the allocator knows no cluster eats: it knows east, west; correct the name" in refused.err
    listed = json.loads(podtide("allocator", "cluster", "list", *where, "-o", "json").out)
    assert [each["name"] for each in listed["clusters"]] == ["east", "west"]


def test_a_cluster_of_which_only_a_quarantine_is_left_can_be_forgotten(podtide: Run, where: Where) -> None:  # noqa: F811
    filled(where)

    async def remove() -> None:
        allocator = await opened(where)
        await allocator.delete_container("w", cluster="west")
        await allocator.close()  # type: ignore[attr-defined]  # both have it

    asyncio.run(remove())
    assert podtide("allocator", "cluster", "forget", "west", *where).status == 0
    assert json.loads(podtide("quarantine", "list", "-o", "json", *where).out) == []


def test_a_store_that_waits_says_so_and_can_be_released(podtide: Run, where: Where) -> None:  # noqa: F811
    filled(where)

    async def go_back() -> None:
        allocator = await opened(where)
        seen = (SeenVersion("blue", "pods", 99),)
        await allocator.open_term(
            TermClaim(cluster="east", cluster_uid="uid-east", holder="controller-1", seen=seen)
        )
        await allocator.close()  # type: ignore[attr-defined]  # both have it

    asyncio.run(go_back())
    first, *rows = podtide("allocator", "cluster", "list", *where).out.splitlines()
    assert first.startswith(
        "NOTHING IS GRANTED: the store went back (cluster east has seen version 99 in subnet pods"
    )
    assert "it waits for the report of east, west." in first
    assert [row.split()[-1] for row in rows[1:]] == ["AWAITED", "AWAITED"]
    assert podtide("allocator", "release", *where).out == "it grants again, without a report of east, west\n"
    assert podtide("allocator", "release", *where).out == "it did not wait for any cluster\n"


def test_which_containers_to_forget_is_said_in_one_way(podtide: Run, where: Where) -> None:  # noqa: F811
    outcome = podtide("allocator", "cluster", "forget", "east", "--uid", "u", "--without-uid", *where)
    assert (outcome.status, "give one of them" in outcome.err) == (2, True)


def database_of(path: Path) -> str:
    return f"sqlite:///{path / 'subnets.db'}"


async def open_here(path: Path) -> DatabaseAllocator:
    return await open_allocator(database_of(path), clock=SystemClock(), migrate=True)


def test_a_database_is_backed_up_while_it_is_used_and_restored_while_it_is_not(
    podtide: Run, tmp_path: Path
) -> None:
    copy, database = tmp_path / "copy", ("--database", database_of(tmp_path))

    async def use() -> None:
        async with await open_here(tmp_path) as allocator:
            await fill(allocator)
            made = podtide("allocator", "backup", str(copy), *database)
            assert made.out == f"{copy} is a copy of {tmp_path}/subnets.db\n"
            beside = str(tmp_path / "beside")
            told = json.loads(podtide("allocator", "backup", beside, *database, "-o", "json").out)
            assert told == {"file": beside, "database": f"{tmp_path}/subnets.db"}
            await allocator.put_container(a_wish("b", 5, cluster_uid="uid-east"))
            refused = podtide("allocator", "restore", str(copy), *database)
            assert (refused.status, "subnets.db is open: stop the allocator" in refused.err) == (2, True)
            assert (await allocator.get_subnet("blue", "pods")).containers == 3

    asyncio.run(use())
    again = podtide("allocator", "backup", str(copy), *database)
    assert (again.status, "is there already" in again.err) == (2, True)
    restored = podtide("allocator", "restore", str(copy), *database)
    assert restored.out.startswith(
        "the database was restored: it grants nothing until every cluster has reported"
    )

    async def look() -> None:
        async with await open_here(tmp_path) as allocator:
            assert (await allocator.get_subnet("blue", "pods")).containers == 2
            registry = await allocator.list_clusters()
            assert (bool(registry.recovering), registry.awaited) == (True, ("east", "west"))

    asyncio.run(look())


def test_a_database_that_lost_its_mark_as_well_is_restored_and_waits(podtide: Run, tmp_path: Path) -> None:
    copy, database = tmp_path / "copy", ("--database", database_of(tmp_path))

    async def use() -> None:
        async with await open_here(tmp_path) as allocator:
            await fill(allocator)

    asyncio.run(use())
    podtide("allocator", "backup", str(copy), *database)
    for file in tmp_path.glob("subnets.db*"):
        file.unlink()
    told = podtide("allocator", "restore", str(copy), *database, "-o", "json")
    assert json.loads(told.out) == {"restored_from": str(copy), "waits_for_reports": True}

    async def look() -> None:
        async with await open_here(tmp_path) as allocator:
            assert (await allocator.list_clusters()).recovering == "the mark beside the database is missing"

    asyncio.run(look())


def test_no_backup_is_restored_over_another_programs_database(podtide: Run, tmp_path: Path) -> None:
    async def use() -> None:
        async with await open_here(tmp_path) as allocator:
            await fill(allocator)

    asyncio.run(use())
    copy, foreign = tmp_path / "copy", tmp_path / "foreign.db"
    podtide("allocator", "backup", str(copy), "--database", database_of(tmp_path))
    with closing(sqlite3.connect(foreign)) as other:
        other.execute("CREATE TABLE theirs (what TEXT)")
    before = foreign.read_bytes()
    refused = podtide("allocator", "restore", str(copy), "--database", f"sqlite:///{foreign}")
    assert refused.status == 2
    assert f"{foreign} is another program's database" in refused.err
    assert foreign.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("backup", "{tmp}/copy", "--database", "sqlite:///{tmp}/none"),
            "--database sqlite:///{tmp}/none names no file: correct the path",
        ),
        (("backup", "{tmp}/copy", "--database", "postgresql://me@h/d"), "pg_basebackup"),
        (
            ("restore", "{tmp}/none", "--database", "sqlite:///{tmp}/db"),
            "FILE {tmp}/none names no file: correct the path",
        ),
        (
            ("restore", "{tmp}/other", "--database", "sqlite:///{tmp}/db"),
            "is not a database of podtide's allocator",
        ),
        (("restore", "--database", "sqlite:///{tmp}/db"), "give the FILE"),
        (("restore", "{tmp}/other", "--database", "postgresql://me@h/d"), "by its own tools"),
        ((), "Missing option '--database'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    podtide: Run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "other").write_text("something else, and long enough to be no SQLite file")
    outcome = podtide("allocator", *(each.format(tmp=tmp_path) for each in arguments))
    assert outcome.status == 2
    assert words.format(tmp=tmp_path) in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "db").exists()


def test_a_restored_postgresql_is_told_that_it_was(podtide: Run, postgresql_url: str) -> None:
    async def use() -> None:
        async with await open_allocator(postgresql_url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.end_recovery()

    asyncio.run(use())
    assert podtide("allocator", "restore", "--database", postgresql_url).status == 0

    async def look() -> None:
        async with await open_allocator(postgresql_url, clock=SystemClock()) as allocator:
            assert (await allocator.list_clusters()).recovering == "it was restored by PostgreSQL's own tools"
            await allocator.end_recovery()

    asyncio.run(look())
