"""The embedded cluster in a file: what is there after the process, and what happens when the file fails."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from msgspec.structs import replace

from podtide.cluster.embedded import EmbeddedCluster, FileInUse, UnusableFile
from podtide.cluster.port import Change, Conflict, Gone, NotFound, Unavailable
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.pod import Pod, PodSpec


def lease(name: str, holder: str = "", **metadata: object) -> Lease:
    return Lease(
        metadata=ObjectMeta(**{"name": name, "namespace": "default", **metadata}),  # type: ignore[arg-type]  # as ObjectMeta checks
        spec=LeaseSpec(holder_identity=holder),
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.db"


async def test_reopening_the_file_gives_the_same_objects(file: Path) -> None:
    first = EmbeddedCluster(file)
    kept = await first.create(lease("kept", "me", labels={"a": "b"}), manager="test")
    changed = await first.create(lease("changed"), manager="test")
    changed = await first.replace(replace(changed, spec=LeaseSpec(holder_identity="you")), manager="test")
    await first.create(lease("deleted"), manager="test")
    await first.delete(Lease, "deleted", "default")
    pod = Pod(metadata=ObjectMeta(name="web", namespace="default"), spec=PodSpec(node_name="n1"))
    pod = await first.create(pod, manager="test")
    before = await first.list(Lease)
    first.close()

    second = EmbeddedCluster(file)
    assert await second.list(Lease) == before
    assert before.items == [changed, kept]
    assert (await second.list(Pod, fields="spec.nodeName=n1")).items == [pod]
    with pytest.raises(NotFound):
        await second.get(Lease, "deleted", "default")
    second.close()


async def test_versions_go_on_growing_after_the_last_object_was_deleted(file: Path) -> None:
    first = EmbeddedCluster(file)
    made = await first.create(lease("a"), manager="test")
    await first.delete(Lease, "a", "default")
    last = (await first.list(Lease)).resource_version
    first.close()
    second = EmbeddedCluster(file)
    again = await second.create(lease("a"), manager="test")
    assert int(again.metadata.resource_version) > int(last) > int(made.metadata.resource_version)
    assert again.metadata.uid != made.metadata.uid
    second.close()


async def test_a_watch_from_before_is_gone_and_one_from_the_last_version_resumes(file: Path) -> None:
    first = EmbeddedCluster(file)
    old = (await first.create(lease("a"), manager="test")).metadata.resource_version
    last = (await first.create(lease("b"), manager="test")).metadata.resource_version
    first.close()
    second = EmbeddedCluster(file)
    with pytest.raises(Gone):
        await anext(second.watch(Lease, resource_version=old))
    await second.create(lease("c"), manager="test")
    watch = second.watch(Lease, resource_version=last)
    event = await anext(watch)
    assert event.change is Change.ADDED
    assert event.item is not None
    assert event.item.metadata.name == "c"
    await watch.aclose()
    second.close()


async def test_stale_writes_are_conflicts_across_a_restart_and_owned_fields_stay_owned(file: Path) -> None:
    def config(count: int) -> NodeNetworkConfig:
        metadata = ObjectMeta(name="n1", namespace="default")
        return NodeNetworkConfig(metadata=metadata, spec=NodeNetworkConfigSpec(requested_ip_count=count))

    first = EmbeddedCluster(file)
    made = await first.create(lease("a"), manager="test")
    await first.replace(replace(made, spec=LeaseSpec(holder_identity="x")), manager="test")
    await first.apply(config(1), manager="one")
    first.close()
    second = EmbeddedCluster(file)
    with pytest.raises(Conflict):
        await second.replace(replace(made, spec=LeaseSpec(holder_identity="y")), manager="test")
    with pytest.raises(Conflict):
        await second.apply(config(2), manager="other", force=False)
    second.close()


async def test_what_was_left_to_collect_is_collected_after_a_restart(file: Path) -> None:
    first = EmbeddedCluster(file)
    owner = await first.create(lease("owner"), manager="test")
    reference = OwnerReference(
        api_version="coordination.k8s.io/v1", kind="Lease", name="owner", uid=owner.metadata.uid
    )
    await first.create(lease("owned", owner_references=[reference]), manager="test")
    await first.delete(Lease, "owner", "default")
    first.close()
    second = EmbeddedCluster(file)
    assert [item.metadata.name for item in (await second.list(Lease)).items] == ["owned"]
    await asyncio.sleep(0.1)
    assert (await second.list(Lease)).items == []
    second.close()


async def test_a_write_that_fails_leaves_everything_as_it_was(file: Path) -> None:
    cluster = EmbeddedCluster(file)
    made = await cluster.create(lease("a", "me"), manager="test")
    watch = cluster.watch(Lease, resource_version=made.metadata.resource_version)
    reading = asyncio.create_task(anext(watch))
    await asyncio.sleep(0.1)
    assert cluster.server.store._file is not None
    database = cluster.server.store._file._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Unavailable, match="nothing was changed"):
        await cluster.create(lease("large", annotations={"a": "x" * 200_000}), manager="test")
    assert (await cluster.list(Lease)).items == [made]
    assert (await cluster.list(Lease)).resource_version == made.metadata.resource_version

    database.execute("PRAGMA max_page_count = 1000000")
    later = await cluster.create(lease("later"), manager="test")
    event = await reading
    assert event.item == later
    await watch.aclose()
    cluster.close()
    reopened = EmbeddedCluster(file)
    assert (await reopened.list(Lease)).items == [made, later]
    reopened.close()


def test_what_is_no_database_is_refused_in_one_line(file: Path) -> None:
    file.write_text("these are words, many more than a header of a database would have room for\n" * 100)
    with pytest.raises(UnusableFile, match=r"cluster\.db is not a database of podtide") as refusal:
        EmbeddedCluster(file)
    assert "\n" not in str(refusal.value)
    assert file.read_text().startswith("these are words")


def test_a_database_of_somebody_else_is_refused_and_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    before = file.read_bytes()
    with pytest.raises(UnusableFile, match="not of podtide"):
        EmbeddedCluster(file)
    assert file.read_bytes() == before


def test_a_file_of_a_newer_podtide_is_refused(file: Path) -> None:
    EmbeddedCluster(file).close()
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(UnusableFile, match="schema 99"):
        EmbeddedCluster(file)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM last",
        "INSERT INTO last VALUES (99)",
        "UPDATE last SET version = 'many'",
        "UPDATE last SET version = 0",
        "DROP TABLE last",
        "DROP TABLE objects",
        "UPDATE objects SET document = '{'",
        "UPDATE objects SET document = CAST('{' AS BLOB)",
        "UPDATE objects SET document = CAST('[]' AS BLOB)",
        "UPDATE objects SET document = CAST('{}' AS BLOB)",
        "UPDATE objects SET document = X'7B2261223A22FF227D'",
        """UPDATE objects SET document = CAST('{"metadata":{"name":"a"}}' AS BLOB)""",
        """UPDATE objects SET document = CAST('{"metadata":{"name":"a","uid":"u"},"spec":3}' AS BLOB)""",
        "UPDATE objects SET version = 'first'",
    ],
)
async def test_a_file_whose_rows_cannot_be_right_is_refused_in_one_line_and_let_go(
    file: Path, damage: str
) -> None:
    cluster = EmbeddedCluster(file)
    await cluster.create(lease("a"), manager="test")
    cluster.close()
    with sqlite3.connect(file) as database:
        database.execute(damage)
    database.close()
    for _ in range(2):
        with pytest.raises(
            UnusableFile, match=r"cluster\.db is damaged: .*put a backup in its place"
        ) as refusal:
            EmbeddedCluster(file)
        assert "\n" not in str(refusal.value)


def overwrite_all_but_the_first_page(file: Path, filler: bytes) -> None:
    content = file.read_bytes()
    assert len(content) > 4096
    file.write_bytes(content[:4096] + filler * (len(content) - 4096))


@pytest.mark.parametrize("filler", [b"\0", b"\xff", b"x"])
async def test_a_file_whose_pages_were_overwritten_is_refused_in_one_line(file: Path, filler: bytes) -> None:
    cluster = EmbeddedCluster(file)
    for number in range(20):
        await cluster.create(lease(f"lease-{number}", annotations={"a": "x" * 1000}), manager="test")
    cluster.close()
    overwrite_all_but_the_first_page(file, filler)
    with pytest.raises(UnusableFile, match=r"cluster\.db is damaged: ") as refusal:
        EmbeddedCluster(file)
    assert "\n" not in str(refusal.value)


async def test_a_file_with_a_kind_the_cluster_does_not_have_is_refused(file: Path) -> None:
    cluster = EmbeddedCluster(file)
    await cluster.create(lease("a"), manager="test")
    cluster.close()
    with pytest.raises(UnusableFile, match=r"leases\.coordination\.k8s\.io"):
        EmbeddedCluster(file, kinds=[Pod])
    EmbeddedCluster(file).close()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match="nowhere"):
        EmbeddedCluster(tmp_path / "nowhere" / "cluster.db")


async def test_a_closed_cluster_is_unavailable(file: Path) -> None:
    cluster = EmbeddedCluster(file)
    cluster.close()
    with pytest.raises(Unavailable, match="closed"):
        await cluster.list(Lease)


WRITER = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from podtide.cluster.embedded import EmbeddedCluster
    from podtide.resources.base import ObjectMeta
    from podtide.resources.lease import Lease

    async def main() -> None:
        cluster = EmbeddedCluster(Path(sys.argv[1]))
        number = int(sys.argv[2])
        while True:
            made = await cluster.create(
                Lease(metadata=ObjectMeta(name=f"lease-{number}", namespace="default")), manager="child"
            )
            print(made.metadata.name, made.metadata.uid, made.metadata.resource_version, flush=True)
            number += 1

    asyncio.run(main())
""")


def acknowledged_until_killed(file: Path, first: int, enough: int) -> list[list[str]]:
    """Name, uid and version of every lease that a process made, from `first` on, before it was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file), str(first)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(enough)]
        with pytest.raises(FileInUse, match="another process"):
            EmbeddedCluster(file)
        child.send_signal(signal.SIGKILL)
        lines += [line for line in child.stdout if line.endswith("\n")]
    assert child.returncode == -signal.SIGKILL
    return [line.split() for line in lines]


async def test_nothing_acknowledged_is_lost_when_the_process_is_killed_and_two_processes_cannot_share(
    file: Path,
) -> None:
    found: list[list[str]] = []
    acknowledged: list[list[str]] = []
    for _ in range(2):
        before = len(found)
        acknowledged += acknowledged_until_killed(file, first=before, enough=20)
        cluster = EmbeddedCluster(file)
        page = await cluster.list(Lease)
        cluster.close()
        found = [
            [item.metadata.name, item.metadata.uid, item.metadata.resource_version] for item in page.items
        ]
        assert all(line in found for line in acknowledged)
        # Each time, the one write under way may have been made without anybody having heard of it.
        assert len(found) - len(acknowledged) <= 2
