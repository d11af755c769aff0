"""What a newer podtide wrote is refused by one sentence that says what to do, and is left as it was."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.conftest import Run
from podtide import __version__
from podtide.agent.pool.journal import encode_record
from podtide.allocator.store import open_allocator
from podtide.allocator.store.migration import SCHEMA
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import TermClaim
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.runtime.clock import SystemClock

NEWER = "9.1.0"
STATED = encode_record(b'{"format":2,"podtide":"9.1.0","what":"only a newer one knows"}')
UNSTATED = encode_record(b'{"format":2}')


def contents(directory: Path) -> dict[str, bytes]:
    """Every file but the lock, which is empty and is left by every agent."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != "agent.lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def refusal(podtide: Run, directory: Path, *arguments: str) -> str:
    """What a command says that ends with the status of bad input, and changes no file."""
    before = contents(directory)
    outcome = podtide(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert contents(directory) == before
    return outcome.err.splitlines()[-1]  # before it the program may have logged


def agent(directory: Path, *options: str) -> tuple[str, ...]:
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1")
    return (
        *("agent", "--kubeconfig", str(kubeconfig), "--node-name", "node-1"),
        *("--state-directory", str(directory / "state"), "--socket", str(directory / "agent.sock"), *options),
    )


@pytest.mark.parametrize(
    ("options", "file", "way_out"),
    [
        ((), "agent.journal", "move that file away: the pool is then rebuilt from the cluster"),
        (("--no-node-pool",), "networks.journal", "move that file away: should etcd then be restored"),
    ],
)
@pytest.mark.parametrize(
    ("content", "writer", "wanted"),
    [
        (STATED, f"podtide {NEWER}", f"podtide {NEWER} or newer"),
        (UNSTATED, "a newer podtide", "a newer podtide"),
    ],
)
def test_an_agent_refuses_a_journal_of_a_newer_one(  # noqa: PLR0917 - a column each
    podtide: Run,
    tmp_path: Path,
    options: tuple[str, ...],
    file: str,
    way_out: str,
    content: bytes,
    writer: str,
    wanted: str,
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / file).write_bytes(content)
    said = refusal(podtide, tmp_path, *agent(tmp_path, *options))
    assert said.startswith(
        f"podtide: {file} in the state directory was written by {writer} in format 2, and this podtide {__version__} "
        f"reads up to format 1: install {wanted}, or {way_out}"
    )


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)


def make_database(path: Path) -> None:
    async def make() -> None:
        async with await open_allocator(f"sqlite:///{path}", clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
            await allocator.open_term(TermClaim(cluster="east", cluster_uid="uid", holder="one"))

    asyncio.run(make())


def make_newer(path: Path) -> None:
    """Let the database be as a newer podtide would leave it."""
    execute(path, "UPDATE alembic_version SET version_num = '9999'")
    execute(path, "ALTER TABLE subnets RENAME COLUMN name TO only_a_newer_one_knows")


@pytest.mark.parametrize("command", [("allocator",), ("subnet", "list")])
def test_a_database_of_a_newer_allocator_is_refused(
    podtide: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    make_database(tmp_path / "subnets.db")
    make_newer(tmp_path / "subnets.db")
    url = f"sqlite:///{tmp_path}/subnets.db"
    assert refusal(podtide, tmp_path, *command, "--database", url) == (
        f"podtide: --database {url} has schema 9999, and this podtide {__version__} knows schemas up to {SCHEMA}: install "
        "one as new as the one that migrated it, or restore a backup from before; nothing was changed"
    )


def test_a_backup_of_a_newer_allocator_is_refused(podtide: Run, tmp_path: Path) -> None:
    for name in ("subnets.db", "copy"):
        make_database(tmp_path / name)
    make_newer(tmp_path / "copy")
    url = f"sqlite:///{tmp_path}/subnets.db"
    assert refusal(podtide, tmp_path, "allocator", "restore", str(tmp_path / "copy"), "--database", url) == (
        f"podtide: {tmp_path}/copy has schema 9999, and this podtide {__version__} knows schemas up to {SCHEMA}: install one "
        "as new as the one that made it, or give an older backup; nothing was changed"
    )


def test_a_backup_from_before_is_restored_over_a_newer_database_and_waits_for_reports(
    podtide: Run, tmp_path: Path
) -> None:
    path, copy = tmp_path / "subnets.db", tmp_path / "copy"
    make_database(path)
    url = f"sqlite:///{path}"
    assert podtide("allocator", "backup", str(copy), "--database", url).status == 0
    make_newer(path)
    assert podtide("allocator", "restore", str(copy), "--database", url).status == 0

    async def look() -> tuple[bool, tuple[str, ...]]:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            registry = await allocator.list_clusters()
            return bool(registry.recovering), registry.awaited

    assert asyncio.run(look()) == (True, ("east",))


def test_a_file_of_a_newer_embedded_cluster_is_refused(podtide: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.db"
    EmbeddedCluster(file).close()
    execute(file, "PRAGMA user_version = 99")
    assert refusal(podtide, tmp_path, "cluster", "--file", str(file)) == (
        f"podtide: {file} has schema 99, and this podtide {__version__} knows 1: install one as new as the one that wrote it, "
        "or name another file; nothing was changed"
    )
