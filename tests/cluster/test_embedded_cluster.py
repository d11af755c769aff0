"""What is particular to the embedded cluster as a whole: its parameters, its leniencies, its background work."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.embedded.naming import made_up_name
from podtide.cluster.port import Gone, Invalid, NotFound
from podtide.resources import codec
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.lease import Lease
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase, PodSpec, PodStatus
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness


def pod(name: str, node: str = "") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(node_name=node))


def lease(name: str, *owners: Lease) -> Lease:
    references = [
        OwnerReference(
            api_version="coordination.k8s.io/v1",
            kind="Lease",
            name=owner.metadata.name,
            uid=owner.metadata.uid,
        )
        for owner in owners
    ]
    return Lease(metadata=ObjectMeta(name=name, namespace="default", owner_references=references))


async def some_writes(seed: int) -> list[Lease]:
    cluster = EmbeddedCluster(clock=LoopClock(), randomness=seeded_randomness(seed))
    made = []
    for _ in range(3):
        made.append(
            await cluster.create(
                Lease(metadata=ObjectMeta(generate_name="l-", namespace="default")), manager="test"
            )
        )
        await asyncio.sleep(1.5)
    await cluster.delete(Lease, made[1].metadata.name, "default")
    return [*made, *(await cluster.list(Lease)).items]


async def test_the_same_calls_give_the_same_answers_for_the_same_clock_and_randomness() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    first = await some_writes(1)
    assert first[0].metadata.creation_timestamp != first[1].metadata.creation_timestamp
    second = await some_writes(1)
    assert [item.metadata.uid for item in first] == [item.metadata.uid for item in second]
    assert [item.metadata.name for item in first] == [item.metadata.name for item in second]
    assert [item.metadata.name for item in await some_writes(2)] != [item.metadata.name for item in first]
    assert loop.time() == start + 3 * 4.5


async def test_versions_come_from_one_counter_for_the_whole_cluster() -> None:
    cluster = EmbeddedCluster()
    versions = [
        (await cluster.create(lease("a"), manager="test")).metadata.resource_version,
        (await cluster.create(pod("a"), manager="test")).metadata.resource_version,
        (await cluster.create(Node(metadata=ObjectMeta(name="a")), manager="test")).metadata.resource_version,
    ]
    assert versions == ["2", "3", "4"]
    assert (await cluster.list(NodeNetworkConfig)).resource_version == "4"


async def test_a_kind_the_cluster_does_not_have_is_not_found() -> None:
    cluster = EmbeddedCluster(kinds=[Pod])
    with pytest.raises(NotFound, match="Lease"):
        await cluster.list(Lease)


async def test_a_call_gives_other_tasks_a_turn_first() -> None:
    cluster = EmbeddedCluster()
    turns: list[str] = []

    async def other() -> None:
        turns.append("other")

    task = asyncio.create_task(other())
    await cluster.list(Lease)
    turns.append("listed")
    await task
    assert turns == ["other", "listed"]


async def test_a_write_without_a_manager_is_invalid() -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(Invalid, match="field manager"):
        await cluster.create(lease("a"), manager="")


async def test_a_list_limited_to_fewer_than_none_is_invalid() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(lease("a"), manager="test")
    with pytest.raises(Invalid, match="limited to -1"):
        await cluster.list(Lease, limit=-1)


async def test_every_namespace_exists_if_it_can_be_one() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(Lease(metadata=ObjectMeta(name="a", namespace="never-made")), manager="test")
    with pytest.raises(Invalid, match="namespace"):
        await cluster.create(Lease(metadata=ObjectMeta(name="a", namespace="a/b")), manager="test")


async def test_a_page_decodes_only_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = EmbeddedCluster()
    for number in range(50):
        await cluster.create(pod(f"p{number:02}", f"n{number % 5}"), manager="test")
    decoded = 0

    def counting(kind: type[Pod], data: bytes) -> Pod:
        nonlocal decoded
        decoded += 1
        return codec.decode(kind, data)

    monkeypatch.setattr("podtide.cluster.embedded.records.decode", counting)
    first = await cluster.list(Pod, limit=7)
    assert decoded == 7
    await cluster.list(Pod, limit=7, more=first.more)
    assert decoded == 14
    await cluster.list(Pod, fields="spec.nodeName=n3")
    assert decoded == 24


async def test_a_token_of_another_cluster_that_was_further_is_gone() -> None:
    further, behind = EmbeddedCluster(), EmbeddedCluster()
    for name in ("a", "b"):
        await further.create(lease(name), manager="test")
    page = await further.list(Lease, limit=1)
    with pytest.raises(Gone):
        await behind.list(Lease, limit=1, more=page.more)


async def test_a_replace_may_bind_a_pod_to_a_node() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(pod("a"), manager="test")
    await cluster.replace(replace(made, spec=PodSpec(node_name="n1")), manager="scheduler")
    assert (await cluster.list(Pod, fields="spec.nodeName=")).items == []
    assert len((await cluster.list(Pod, fields="spec.nodeName=n1")).items) == 1


async def test_a_bound_pods_deletion_time_is_the_end_of_its_grace_and_ends_when_it_is_finished() -> None:
    cluster = EmbeddedCluster(clock=LoopClock(epoch=0.0))
    made = await cluster.create(pod("a", "n1"), manager="test")
    finalized = replace(made.metadata, finalizers=["example.org/x"])
    await cluster.replace(replace(made, metadata=finalized), manager="test")
    await cluster.delete(Pod, "a", "default")
    marked = await cluster.get(Pod, "a", "default")
    assert marked.metadata.deletion_timestamp == "1970-01-01T00:00:30Z"
    assert marked.metadata.generation == 2
    await cluster.replace_status(
        replace(marked, status=PodStatus(phase=PodPhase.SUCCEEDED)), manager="kubelet"
    )
    await cluster.delete(Pod, "a", "default")
    ended = await cluster.get(Pod, "a", "default")
    assert ended.metadata.deletion_grace_period_seconds == 0
    assert ended.metadata.generation == 2
    await cluster.replace(replace(ended, metadata=replace(ended.metadata, finalizers=[])), manager="test")
    assert (await cluster.list(Pod)).items == []


async def test_an_owner_in_another_namespace_counts_as_gone() -> None:
    cluster = EmbeddedCluster()
    owner = await cluster.create(Lease(metadata=ObjectMeta(name="o", namespace="elsewhere")), manager="test")
    await cluster.create(lease("owned", owner), manager="test")
    await asyncio.sleep(0.1)
    assert [item.metadata.name for item in (await cluster.list(Lease)).items] == ["o"]


async def test_a_chain_of_owners_is_collected_to_its_end() -> None:
    cluster = EmbeddedCluster()
    made = [await cluster.create(lease("l0"), manager="test")]
    for number in range(1, 50):
        made.append(await cluster.create(lease(f"l{number}", made[-1]), manager="test"))
    await asyncio.sleep(0.1)
    assert len((await cluster.list(Lease)).items) == 50
    await cluster.delete(Lease, "l0", "default")
    await asyncio.sleep(0.1)
    assert (await cluster.list(Lease)).items == []


async def test_what_has_lost_its_owner_stays_while_nothing_is_collected() -> None:
    cluster = EmbeddedCluster(clock=LoopClock())
    owner = await cluster.create(lease("owner"), manager="test")
    await cluster.create(lease("owned", owner), manager="test")
    cluster.server.housekeeping.is_collecting = False
    await cluster.delete(Lease, "owner", "default")
    await asyncio.sleep(60)
    assert [item.metadata.name for item in (await cluster.list(Lease)).items] == ["owned"]
    cluster.server.housekeeping.is_collecting = True
    await cluster.list(Lease)
    await asyncio.sleep(1)
    assert (await cluster.list(Lease)).items == []


async def test_collection_is_tried_again_when_the_file_failed(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path / "cluster.db")
    owner = await cluster.create(lease("owner"), manager="test")
    await cluster.create(lease("owned", owner), manager="test")
    await asyncio.sleep(0.1)
    await cluster.delete(Lease, "owner", "default")
    assert cluster.server.store._file is not None
    cluster.server.store._file._database.execute("PRAGMA query_only = ON")
    await asyncio.sleep(0.5)
    assert [item.metadata.name for item in (await cluster.list(Lease)).items] == ["owned"]
    cluster.server.store._file._database.execute("PRAGMA query_only = OFF")
    await asyncio.sleep(1)
    assert (await cluster.list(Lease)).items == []
    cluster.close()


def test_a_cluster_outlives_the_loop_it_was_first_used_on() -> None:
    cluster = EmbeddedCluster()

    async def own_and_delete() -> None:
        owner = await cluster.create(lease("owner"), manager="test")
        await cluster.create(lease("owned", owner), manager="test")
        await cluster.delete(Lease, "owner", "default")

    async def wait_and_list() -> list[Lease]:
        await cluster.list(Lease)
        await asyncio.sleep(0.1)
        return (await cluster.list(Lease)).items

    virtual_time.run(own_and_delete())
    assert virtual_time.run(wait_and_list()) == []


async def test_a_made_up_name_that_is_taken_is_drawn_again() -> None:
    class Stuttering(Random):
        """Draws the same name twice before it draws another."""

        drawn = 0

        def choices(self, population: Sequence[str], *_: object, **__: object) -> list[str]:  # type: ignore[override]  # only what names need
            self.drawn += 1
            return [population[self.drawn // 3]] * 5

    cluster = EmbeddedCluster(randomness=Stuttering())
    wish = Lease(metadata=ObjectMeta(generate_name="l-", namespace="default"))
    made = [await cluster.create(wish, manager="test") for _ in range(2)]
    assert [item.metadata.name for item in made] == ["l-bbbbb", "l-ccccc"]


def test_a_long_prefix_is_cut_so_that_the_name_fits_a_label() -> None:
    assert len(made_up_name("x" * 100, seeded_randomness(1))) == 63
