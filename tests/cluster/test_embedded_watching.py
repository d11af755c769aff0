"""What is particular to watches of the embedded cluster: whom an event meets, what is shared, who is dropped."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from podtide.cluster.embedded import ApiServerLimits, EmbeddedCluster
from podtide.cluster.embedded.records import ObjectVersion, Transition
from podtide.cluster.embedded.watchers import Watcher
from podtide.cluster.port import Change, Gone, WatchEvent
from podtide.resources import codec
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.pod import Pod, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock


def pod(name: str, node: str = "", **labels: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", labels=labels), spec=PodSpec(node_name=node)
    )


async def read(watch: AsyncGenerator[WatchEvent[Pod], None]) -> list[WatchEvent[Pod]]:
    """All events until the server ends the watch."""
    async with aclosing(watch):
        return [event async for event in watch]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each object whose transition was offered to a watcher."""
    offered: list[str] = []
    offer = Watcher.offer

    def recorded(self: Watcher, transition: Transition, change: Change) -> None:
        offered.append(transition.key)
        offer(self, transition, change)

    monkeypatch.setattr(Watcher, "offer", recorded)
    return offered


async def test_an_event_meets_only_the_watchers_it_may_concern(offered: list[str]) -> None:
    cluster = EmbeddedCluster()
    selectors = [f"spec.nodeName=n{number}" for number in range(200)]
    selectors += [f"metadata.name=p{number}" for number in range(200)]
    reading = [
        asyncio.create_task(read(cluster.watch(Pod, "default", resource_version="1", fields=fields)))
        for fields in selectors
    ]
    await asyncio.sleep(0.1)
    made = await cluster.create(pod("p7", "n3"), manager="test")
    assert len(offered) == 2
    await cluster.replace(replace(made, spec=PodSpec(node_name="n4")), manager="test")
    assert len(offered) == 2 + 3
    await cluster.create(pod("nobody", "nowhere"), manager="test")
    assert len(offered) == 5
    await asyncio.sleep(0.1)
    cluster.close()
    events = {
        fields: [event.change for event in await task]
        for fields, task in zip(selectors, reading, strict=True)
    }
    assert {fields: changes for fields, changes in events.items() if changes} == {
        "spec.nodeName=n3": [Change.ADDED, Change.DELETED],
        "spec.nodeName=n4": [Change.ADDED],
        "metadata.name=p7": [Change.ADDED, Change.MODIFIED],
    }


async def test_watchers_are_told_in_an_order_that_the_process_does_not_change() -> None:
    cluster = EmbeddedCluster()
    told = ""

    async def follow(fields: str) -> None:
        nonlocal told
        async with aclosing(cluster.watch(Pod, resource_version="1", fields=fields)) as watch:
            async for event in watch:
                told += f"{fields} {event.change}\n"

    selectors = ["spec.nodeName=", "metadata.name=a", "status.phase=Pending", "spec.nodeName=n1", ""]
    following = [asyncio.create_task(follow(fields)) for fields in selectors]
    await asyncio.sleep(0.1)
    made = await cluster.create(pod("a"), manager="test")
    await asyncio.sleep(0.1)
    told = ""
    await cluster.replace(replace(made, spec=PodSpec(node_name="n1")), manager="scheduler")
    await asyncio.sleep(0.1)
    cluster.close()
    await asyncio.gather(*following)
    assert told.splitlines() == [
        "spec.nodeName= DELETED",
        "spec.nodeName=n1 ADDED",
        "metadata.name=a MODIFIED",
        "status.phase=Pending MODIFIED",
        " MODIFIED",
    ]


async def test_binding_a_pod_tells_its_nodes_watcher_and_whoever_watched_for_unbound_ones() -> None:
    cluster = EmbeddedCluster()
    watches = [
        asyncio.create_task(read(cluster.watch(Pod, resource_version="1", fields=f"spec.nodeName={node}")))
        for node in ("", "n1", "n2")
    ]
    await asyncio.sleep(0.1)
    made = await cluster.create(pod("a"), manager="test")
    await cluster.replace(replace(made, spec=PodSpec(node_name="n1")), manager="scheduler")
    cluster.close()
    unbound, first, second = [await watch for watch in watches]
    assert [event.change for event in unbound] == [Change.ADDED, Change.DELETED]
    assert [event.change for event in first] == [Change.ADDED]
    assert second == []


async def test_a_watcher_for_all_but_one_node_is_told_by_what_it_excludes() -> None:
    cluster = EmbeddedCluster()
    watch = asyncio.create_task(read(cluster.watch(Pod, resource_version="1", fields="spec.nodeName!=n1")))
    await asyncio.sleep(0.1)
    made = await cluster.create(pod("a"), manager="test")
    await cluster.replace(replace(made, spec=PodSpec(node_name="n1")), manager="scheduler")
    await cluster.create(pod("b", "n1"), manager="test")
    cluster.close()
    assert [event.change for event in await watch] == [Change.ADDED, Change.DELETED]


async def test_a_closed_watch_leaves_nothing_behind() -> None:
    cluster = EmbeddedCluster()
    for fields in ("spec.nodeName=n1", "metadata.name=a", ""):
        async with aclosing(cluster.watch(Pod, resource_version="1", fields=fields)) as watch:
            await cluster.create(pod(f"of-{len(fields)}", "n1"), manager="test")
            reading = asyncio.create_task(anext(watch))
            await asyncio.sleep(0.1)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
    assert list(cluster.server.store.watchers()) == []
    assert cluster.server.store.table(Pod).watchers._buckets == {}
    assert not cluster.server.store.table(Pod).watchers._paths


async def test_a_version_is_decoded_once_for_all_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(pod("a", "n1"), manager="test")
    await cluster.delete(Pod, "a", "default")
    decoded: list[bytes] = []

    def counting(kind: type[Pod], data: bytes) -> Pod:
        decoded.append(data)
        return codec.decode(kind, data)

    monkeypatch.setattr("podtide.cluster.embedded.records.decode", counting)
    watches = [cluster.watch(Pod, resource_version="1") for _ in range(5)]
    reading = [asyncio.create_task(read(watch)) for watch in watches]
    await asyncio.sleep(0.1)
    cluster.close()
    told = [await each for each in reading]
    assert all([event.change for event in events] == [Change.ADDED, Change.MODIFIED] for events in told)
    assert told[0][0].item == made
    assert len({id(events[0].item) for events in told}) == 1
    assert len(decoded) == len(set(decoded)) == 2  # the creation and the mark, each for all five


async def test_history_keeps_no_decoded_object_of_a_version_that_was_replaced() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(pod("a"), manager="test")
    for node in ("n1", "n2"):
        made = await cluster.replace(replace(made, spec=PodSpec(node_name=node)), manager="scheduler")
    created, *moves = cluster.server.store.table(Pod).since(1)
    past = [transition.old for transition in moves]
    assert past[0] is created.new
    assert all(record and record._shared is None and record._written is None for record in past)
    latest = moves[-1].new
    assert latest is not None
    assert latest.shared(Pod) is made


async def test_what_is_written_again_at_once_is_not_decoded_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(pod("a", "n1"), manager="test")
    decoded: list[ObjectVersion] = []
    monkeypatch.setattr(ObjectVersion, "document", decoded.append)
    await cluster.replace_status(replace(made, status=PodStatus(phase=PodPhase.FAILED)), manager="kubelet")
    await cluster.delete(Pod, "a", "default")
    assert decoded == []
    created, *_ = cluster.server.store.table(Pod).since(1)
    assert created.new is not None
    assert created.new.decode(Pod) == made


async def test_documents_are_kept_for_the_last_writes_alone() -> None:
    cluster = EmbeddedCluster()
    for number in range(1_100):
        await cluster.create(pod(f"p{number}"), manager="test")
    records = cluster.server.store.table(Pod).records.values()
    assert sum(record._written is not None for record in records) == 1_000
    assert all(record.written() == record.document() for record in records)


async def test_a_watcher_that_does_not_keep_up_is_dropped_and_can_resume() -> None:
    cluster = EmbeddedCluster(limits=ApiServerLimits(unread=3))
    slow = cluster.watch(Pod, resource_version="1")
    await cluster.create(pod("p0"), manager="test")
    first = await anext(slow)
    for number in range(1, 8):
        await cluster.create(pod(f"p{number}"), manager="test")
    assert list(cluster.server.store.watchers()) == []
    events = [first, *await read(slow)]
    assert len(events) == 4
    resumed = cluster.watch(Pod, resource_version=events[-1].resource_version)
    events += [await anext(resumed) for _ in range(4)]
    await resumed.aclose()
    assert [event.item.metadata.name for event in events if event.item] == [
        f"p{number}" for number in range(8)
    ]


async def test_a_watcher_is_not_dropped_for_what_it_does_not_see() -> None:
    cluster = EmbeddedCluster(limits=ApiServerLimits(unread=1))
    watch = cluster.watch(Pod, resource_version="1", labels="tier=front")
    await cluster.create(pod("a", tier="front"), manager="test")
    await anext(watch)
    await cluster.create(pod("b", tier="front"), manager="test")
    await cluster.create(pod("c", tier="back"), manager="test")
    assert len(list(cluster.server.store.watchers())) == 1
    await cluster.create(pod("d", tier="front"), manager="test")
    assert list(cluster.server.store.watchers()) == []
    assert len(await read(watch)) == 1


async def test_a_write_does_not_wait_for_a_watcher_that_never_reads() -> None:
    cluster = EmbeddedCluster(limits=ApiServerLimits(unread=10, history=20))
    idle = cluster.watch(Pod, resource_version="1")
    await cluster.create(pod("first"), manager="test")
    await anext(idle)
    (watcher,) = cluster.server.store.watchers()
    for number in range(100):
        await cluster.create(pod(f"p{number}"), manager="test")
    assert len(watcher.unread) == 10
    await idle.aclose()


async def test_history_is_bounded_and_what_is_older_is_gone() -> None:
    cluster = EmbeddedCluster(limits=ApiServerLimits(history=5))
    versions = [
        (await cluster.create(pod(f"p{number}"), manager="test")).metadata.resource_version
        for number in range(9)
    ]
    with pytest.raises(Gone, match="list them anew"):
        await anext(cluster.watch(Pod, resource_version=versions[2]))
    oldest = cluster.watch(Pod, resource_version=versions[3])
    assert (await anext(oldest)).resource_version == versions[4]
    await oldest.aclose()


async def test_one_kinds_writes_do_not_push_out_anothers_history() -> None:
    cluster = EmbeddedCluster(limits=ApiServerLimits(history=2))
    pool = IPPool(
        metadata=ObjectMeta(name="a", namespace="default"),
        spec=IPPoolSpec(range="10.0.0.0/24", allocations={}),
    )
    await cluster.create(pool, manager="test")
    for number in range(9):
        await cluster.create(pod(f"p{number}"), manager="test")
    watch = cluster.watch(IPPool, resource_version="1")
    assert (await anext(watch)).change is Change.ADDED
    await watch.aclose()


async def test_a_version_ahead_of_the_cluster_is_gone() -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(Gone):
        await anext(cluster.watch(Pod, resource_version="99"))


async def test_an_idle_cluster_sends_no_bookmarks_and_sets_no_timer() -> None:
    cluster = EmbeddedCluster(clock=LoopClock(), limits=ApiServerLimits(bookmark_seconds=10))
    watch = cluster.watch(Pod, resource_version="1")
    reading = asyncio.create_task(read(watch))
    await asyncio.sleep(1)
    await cluster.create(pod("a"), manager="test")
    await asyncio.sleep(3600)
    cluster.close()
    assert [event.change for event in await reading] == [Change.ADDED]


async def test_a_bookmark_follows_writes_that_a_watch_does_not_see() -> None:
    cluster = EmbeddedCluster(clock=LoopClock(), limits=ApiServerLimits(bookmark_seconds=10))
    watch = cluster.watch(Pod, resource_version="1", fields="spec.nodeName=n1")
    reading = asyncio.create_task(anext(watch))
    await asyncio.sleep(1)
    await cluster.create(pod("a", "n2"), manager="test")
    last = await cluster.create(pod("b", "n2"), manager="test")
    await asyncio.sleep(9.9)
    assert not reading.done()
    await asyncio.sleep(0.2)
    assert await reading == WatchEvent(Change.BOOKMARK, None, last.metadata.resource_version)
    await watch.aclose()


async def test_the_server_closes_an_idle_watch_after_its_time() -> None:
    cluster = EmbeddedCluster(clock=LoopClock(), limits=ApiServerLimits(watch_seconds=5))
    assert await read(cluster.watch(Pod, resource_version="1")) == []
    assert asyncio.get_running_loop().time() == pytest.approx(5)


async def test_the_server_closes_a_watch_after_its_time_though_there_is_more_to_read() -> None:
    cluster = EmbeddedCluster(clock=LoopClock(), limits=ApiServerLimits(watch_seconds=4.5))
    for number in range(20):
        await cluster.create(pod(f"p{number}"), manager="test")
    read_slowly = 0
    async with aclosing(cluster.watch(Pod, resource_version="1")) as watch:
        async for _ in watch:
            read_slowly += 1
            await asyncio.sleep(1)
    assert read_slowly == 5


async def test_watches_that_are_closed_by_the_server_can_resume() -> None:
    cluster = EmbeddedCluster()
    reading = asyncio.create_task(read(cluster.watch(Pod, resource_version="1")))
    await cluster.create(pod("a"), manager="test")
    await asyncio.sleep(0.1)
    cluster.server.close_watches()
    (event,) = await reading
    await cluster.create(pod("b"), manager="test")
    resumed = cluster.watch(Pod, resource_version=event.resource_version)
    following = await anext(resumed)
    assert following.item is not None
    assert following.item.metadata.name == "b"
    await resumed.aclose()
