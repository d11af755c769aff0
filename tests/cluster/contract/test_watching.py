"""`watch`."""

import asyncio
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, ClusterUnderTest, OpenCluster, seen, take
from patience import PATIENCE_SECONDS
from podtide.cluster.port import Change, Gone, Invalid
from podtide.resources.ip_pool import IPPool
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod


async def relabel(it: ClusterUnderTest, item: NodeNetworkConfig, **labels: str) -> NodeNetworkConfig:
    metadata = replace(item.metadata, labels=labels)
    return await it.cluster.replace(replace(item, metadata=metadata), manager=MANAGER)


async def test_a_watch_tells_every_change_after_its_version_in_order_each_once(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.create(it.config("before"))
        start = await it.now()
        a, _ = await it.create(it.config("a"), it.config("b"))
        await relabel(it, a, new="yes")
        await it.cluster.delete(NodeNetworkConfig, "b", it.namespace)
        await it.create(it.config("last"))
        events = await take(it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start), 5)
        assert seen(events) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
            ("ADDED", "last"),
        ]


async def test_a_watch_tells_what_happens_while_it_is_open(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        watch = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=await it.now())
        reading = asyncio.create_task(take(watch, 2))
        await asyncio.sleep(0.1)
        await it.create(it.config("a"))
        await it.cluster.delete(NodeNetworkConfig, "a", it.namespace)
        assert seen(await reading) == [("ADDED", "a"), ("DELETED", "a")]


async def test_an_event_carries_the_object_as_it_was_after_the_change(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now()
        (first,) = await it.create(it.config(requested=1))
        second = await it.cluster.apply(it.config(requested=2), manager=MANAGER)
        events = await take(it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start), 2)
        assert [event.item for event in events] == [first, second]
        assert [event.resource_version for event in events] == [
            first.metadata.resource_version,
            second.metadata.resource_version,
        ]


async def test_a_deleted_event_carries_the_last_state_at_the_version_of_the_deletion(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=7))
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=made.metadata.resource_version
        )
        (event,) = await take(watch, 1)
        assert event.change is Change.DELETED
        assert event.item is not None
        assert event.item.spec == made.spec
        assert event.item.metadata.uid == made.metadata.uid
        assert (
            event.item.metadata.resource_version == event.resource_version != made.metadata.resource_version
        )


async def test_a_watch_from_an_events_version_misses_nothing_and_repeats_nothing(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        start = await it.now()
        made = await it.create(*(it.config(name) for name in "abcd"))
        await it.cluster.delete(NodeNetworkConfig, "c", it.namespace)
        everything = await take(it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start), 5)
        assert len(everything) == len(made) + 1
        for index, event in enumerate(everything[:-1]):
            version = event.resource_version
            rest = await take(
                it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=version), 4 - index
            )
            assert rest == everything[index + 1 :]


async def test_a_watch_is_of_one_namespace_or_of_all(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now()
        ours = {"contract": it.namespace}
        await it.create(
            it.config("there", namespace=it.other_namespace, labels=ours),
            it.config("here", labels=ours),
        )
        one = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start)
        assert seen(await take(one, 1)) == [("ADDED", "here")]
        every = it.cluster.watch(NodeNetworkConfig, resource_version=start, labels=f"contract={it.namespace}")
        assert seen(await take(every, 2)) == [("ADDED", "there"), ("ADDED", "here")]


async def test_a_watch_is_of_one_kind(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now()
        await it.create(it.pool("a-pool"))
        await it.create(it.config("a-config"))
        configs = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start)
        assert seen(await take(configs, 1)) == [("ADDED", "a-config")]
        pools = it.cluster.watch(IPPool, it.namespace, resource_version=start)
        assert seen(await take(pools, 1)) == [("ADDED", "a-pool")]


async def test_an_object_that_comes_to_match_is_added_and_one_that_ceases_to_match_is_deleted(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config("a", requested=1))
        start = made.metadata.resource_version
        other = await relabel(it, made, tier="back")
        matching = await relabel(it, other, tier="front")
        still = await relabel(it, matching, tier="front", more="yes")
        ceased = await relabel(it, still, tier="back")
        again = await relabel(it, ceased, tier="front")
        await it.cluster.delete(NodeNetworkConfig, "a", it.namespace)
        watch = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start, labels="tier=front")
        events = await take(watch, 5)
        assert [str(event.change) for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
        departed = events[2]
        assert departed.item is not None
        assert departed.item.metadata.labels == {"tier": "front", "more": "yes"}
        assert (
            departed.resource_version
            == departed.item.metadata.resource_version
            == ceased.metadata.resource_version
        )
        assert events[3].item == again


async def test_a_watch_of_one_name_tells_of_that_object_only(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now()
        await it.create(it.config("a"), it.config("mine"), it.config("b"))
        await it.cluster.delete(NodeNetworkConfig, "a", it.namespace)
        await it.cluster.delete(NodeNetworkConfig, "mine", it.namespace)
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=start, fields="metadata.name=mine"
        )
        assert seen(await take(watch, 2)) == [("ADDED", "mine"), ("DELETED", "mine")]


async def test_a_watch_of_one_nodes_pods_tells_of_those_only(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now(Pod)
        await it.create(it.pod("a", "n1"), it.pod("b", "n2"), it.pod("c"), it.pod("d", "n1"))
        watch = it.cluster.watch(Pod, it.namespace, resource_version=start, fields="spec.nodeName=n1")
        assert seen(await take(watch, 2)) == [("ADDED", "a"), ("ADDED", "d")]


async def test_bookmarks_come_from_time_to_time_so_that_an_idle_watch_can_resume(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        start = await it.now()
        await it.create(it.pool("another-kind"))
        watch = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start)
        async with asyncio.timeout(it.bookmark_patience_seconds), aclosing(watch):
            bookmark = await anext(watch)
        assert (bookmark.change, bookmark.item) == (Change.BOOKMARK, None)
        await it.create(it.config("later"))
        resumed = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=bookmark.resource_version
        )
        assert seen(await take(resumed, 1)) == [("ADDED", "later")]


async def test_a_watch_from_a_version_that_is_too_old_raises_gone(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now()
        await it.create(it.config("a"), it.config("b"))
        await it.expire_history()
        with pytest.raises(Gone):
            await take(it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start), 1)


async def test_after_gone_a_list_gives_a_version_to_watch_from(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config("a"))
        await it.expire_history()
        start = await it.now()
        await it.create(it.config("b"))
        watch = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start)
        assert seen(await take(watch, 1)) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("version", "fields", "labels"),
    [
        ("yesterday", "", ""),
        ("", "", ""),
        ("-1", "", ""),
        ("٣", "", ""),
        ("9" * 5000, "", ""),
        (None, "spec.requestedIPCount=1", ""),
        (None, "", "a in b"),
    ],
)
async def test_what_is_no_version_or_no_selector_is_invalid(
    open_cluster: OpenCluster, version: str | None, fields: str, labels: str
) -> None:
    async with open_cluster() as it:
        start = await it.now() if version is None else version
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=start, fields=fields, labels=labels
        )
        with pytest.raises(Invalid):
            await take(watch, 1)


async def test_a_cluster_scoped_kind_is_not_watched_in_a_namespace(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await take(it.cluster.watch(Node, it.namespace, resource_version=await it.now()), 1)


async def test_closing_the_iterator_stops_the_watch(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        watch = it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=await it.now())
        await it.create(it.config("a"), it.config("b"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await anext(watch)
            await watch.aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(watch)


async def test_several_watchers_of_one_kind_each_see_what_they_asked_for(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        start = await it.now()
        watches = {
            name: asyncio.create_task(
                take(
                    it.cluster.watch(
                        NodeNetworkConfig,
                        it.namespace,
                        resource_version=start,
                        fields=f"metadata.name={name}",
                    ),
                    2,
                )
            )
            for name in "abc"
        }
        everything = asyncio.create_task(
            take(it.cluster.watch(NodeNetworkConfig, it.namespace, resource_version=start), 6)
        )
        await asyncio.sleep(0.1)
        await it.create(*(it.config(name) for name in watches))
        for name in watches:
            await it.cluster.delete(NodeNetworkConfig, name, it.namespace)
        for name, watch in watches.items():
            assert seen(await watch) == [("ADDED", name), ("DELETED", name)]
        assert seen(await everything) == [
            *(("ADDED", name) for name in watches),
            *(("DELETED", name) for name in watches),
        ]
