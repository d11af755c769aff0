"""The feed: what is published when, and what is told when the cluster does not answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cli.drawn_cluster import DrawnCluster, addresses
from dashboard.pages import ABOUT, Browser, runtime_for, truth
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Unavailable
from podtide.cluster.served import SERVED_KINDS
from podtide.dashboard.feed import PageFeed
from podtide.dashboard.page_state import PageState
from podtide.runtime.clock import LoopClock


class LeavingCluster(EmbeddedCluster):
    """A cluster whose lists can be made to fail."""

    is_away = False

    async def list(self, *where: Any, **how: Any) -> Any:
        if self.is_away:
            raise Unavailable("the API server is away: see that it is up")
        return await super().list(*where, **how)


@asynccontextmanager
async def followed(drawn: DrawnCluster) -> AsyncIterator[PageFeed]:
    """A feed that runs, on virtual time."""
    clock = LoopClock()
    feed = PageFeed(PageState(ABOUT, clock), drawn.cluster, None, runtime=runtime_for(clock))
    running = asyncio.create_task(feed.run())
    try:
        await feed.until_read(10)
        await asyncio.sleep(5)
        yield feed
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_a_burst_is_few_events() -> None:
    drawn = DrawnCluster()
    async with followed(drawn) as feed:
        browser = Browser()
        browser.catch_up(feed.state)
        before = feed.state.sequence
        for number in range(100):
            await drawn.config(f"n{number}", requested=1, granted=[])
        await asyncio.sleep(1)
        assert feed.state.sequence - before <= 3
        browser.catch_up(feed.state)
        assert browser.shown == truth(feed.state)
        assert len(browser.shown["nodes"]) == 100


async def test_a_cluster_in_which_nothing_happens_is_no_event() -> None:
    drawn = DrawnCluster()
    await drawn.subnet()
    await drawn.config("a", requested=5, granted=addresses(5))
    async with followed(drawn) as feed:
        before = feed.state.sequence
        await asyncio.sleep(3600)
        assert feed.state.sequence == before


async def test_those_who_wait_are_woken_also_if_a_client_that_connected_published_first() -> None:
    drawn = DrawnCluster()
    async with followed(drawn) as feed:
        waiting = asyncio.create_task(feed.next_change(3600))
        began = asyncio.get_running_loop().time()
        await drawn.node("a")
        await asyncio.sleep(0.05)
        feed.state.snapshot()
        await waiting
        assert asyncio.get_running_loop().time() - began < 5


async def test_a_cluster_without_a_lease_has_no_leader() -> None:
    async with followed(DrawnCluster()) as feed:
        assert "none was ever started" in feed.state.health.leader.message


async def test_an_api_server_that_does_not_answer_is_told_and_so_is_its_return() -> None:
    cluster = LeavingCluster(kinds=SERVED_KINDS)
    drawn = DrawnCluster(cluster)
    await drawn.config("a", requested=5, granted=addresses(5))
    async with followed(drawn) as feed:
        assert feed.state.health.api.ok
        cluster.is_away = True
        await asyncio.sleep(15)
        assert feed.state.health.api.message == "the API server is away: see that it is up"
        assert sorted(feed.state.nodes) == ["a"]
        cluster.is_away = False
        await asyncio.sleep(15)
        assert feed.state.health.api.ok
