"""Watches over HTTP: what comes first, what follows, how they end, and that nothing is left of them."""

import asyncio
from itertools import count
from typing import Any

import aiohttp
import pytest

from cluster.served.http_client import CONFIGS, PODS, TABLE, config, open_client, pod
from patience import PATIENCE_SECONDS
from podtide.cluster.embedded import ApiServerLimits, EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.runtime.listening import ListenAddress

pytestmark = pytest.mark.real_time


def said(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


@pytest.mark.parametrize("start", ["", "&resourceVersion=0"])
async def test_without_a_version_the_present_state_comes_first(start: str) -> None:
    async with open_client() as client, asyncio.timeout(PATIENCE_SECONDS):
        await client.ask("POST", CONFIGS, config("a"))
        async with client.watch(f"{CONFIGS}?watch=true{start}") as events:
            assert said(await anext(events)) == ("ADDED", "a")
            await client.ask("POST", CONFIGS, config("b"))
            assert said(await anext(events)) == ("ADDED", "b")
            await client.ask("DELETE", f"{CONFIGS}/a")
            assert said(await anext(events)) == ("DELETED", "a")


async def test_with_a_version_only_what_is_newer_comes() -> None:
    async with open_client() as client, asyncio.timeout(PATIENCE_SECONDS):
        await client.ask("POST", CONFIGS, config("a"))
        version = (await client.ask("GET", CONFIGS)).document["metadata"]["resourceVersion"]
        made = await client.ask("POST", CONFIGS, config("b"))
        async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={version}") as events:
            assert await anext(events) == {"type": "ADDED", "object": made.document}


async def test_a_streamed_list_says_by_a_bookmark_where_the_present_state_ends() -> None:
    async with open_client() as client, asyncio.timeout(PATIENCE_SECONDS):
        await client.ask("POST", PODS, pod())
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with client.watch(f"{PODS}?{query}") as events:
            assert said(await anext(events)) == ("ADDED", "web")
            mark = await anext(events)
            assert mark["type"] == "BOOKMARK"
            assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_bookmarks_come_to_those_who_ask_for_them() -> None:
    async with (
        open_client(limits=ApiServerLimits(bookmark_seconds=0.05)) as client,
        asyncio.timeout(PATIENCE_SECONDS),
        client.watch(f"{CONFIGS}?watch=true&allowWatchBookmarks=true") as asking,
        client.watch(f"{CONFIGS}?watch=true") as other,
    ):
        made = await client.ask(
            "POST", PODS, pod()
        )  # no news to these watches, except for how far things are
        mark = await anext(asking)
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"] == {"resourceVersion": made.document["metadata"]["resourceVersion"]}
        await client.ask("POST", CONFIGS, config("a"))
        assert said(await anext(other)) == ("ADDED", "a")


async def test_a_watch_ends_when_its_time_is_over() -> None:
    async with open_client() as client, asyncio.timeout(PATIENCE_SECONDS):
        async with client.watch(f"{CONFIGS}?watch=true&timeoutSeconds=1") as events:
            assert [event async for event in events] == []
        await client.until_watches(0)


async def test_a_watched_table_has_headers_once() -> None:
    async with open_client() as client, asyncio.timeout(PATIENCE_SECONDS):
        for name in "ab":
            await client.ask("POST", CONFIGS, config(name))
        async with client.watch(f"{CONFIGS}?watch=true", Accept=TABLE) as events:
            first, second = [(await anext(events))["object"] for _ in range(2)]
        assert first["kind"] == second["kind"] == "Table"
        assert first["columnDefinitions"][0]["name"] == "Name"
        assert second["columnDefinitions"] == []
        assert second["rows"][0]["cells"][:2] == ["b", 16]


async def test_a_client_that_goes_away_leaves_no_watcher_behind() -> None:
    async with open_client() as client:
        for _ in range(3):
            async with client.watch(f"{CONFIGS}?watch=true"), client.watch(f"{PODS}?watch=true"):
                await client.until_watches(2)
            await client.until_watches(0)


async def test_a_client_that_goes_away_in_the_midst_of_a_flood_leaves_no_watcher_behind() -> None:
    async with open_client() as client:
        big = config(metadata={"name": "big", "annotations": {"a": "x" * 200_000}})
        made = (await client.ask("POST", CONFIGS, big)).document
        async with client.watch(f"{CONFIGS}?watch=true"):
            for number in count():  # until the server waits for a client that does not read
                metadata = made["metadata"] | {"labels": {"n": str(number)}}
                made = (await client.ask("PUT", f"{CONFIGS}/big", made | {"metadata": metadata})).document
                (watcher,) = client.server.store.watchers()
                if len(watcher.unread) > 3:
                    break
        await client.until_watches(0)


async def test_a_server_that_stops_ends_its_watches_in_good_order() -> None:
    embedded = EmbeddedCluster(kinds=SERVED_KINDS)
    async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
        async with serving(embedded.server, ListenAddress("127.0.0.1", 0)) as url:
            watch = await session.get(f"{url}/api/v1/pods?watch=true")
        assert await watch.read() == b""  # to the end, which a broken connection has not
        embedded.close()
