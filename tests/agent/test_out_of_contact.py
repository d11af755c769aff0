"""What an agent does that may have been removed without knowing: it hands out nothing new, whoever asked when."""

import asyncio
from typing import Any

import pytest

from agent.node_bench import Bench, CountingCluster
from cluster.faulty_cluster import Script
from podtide.agent.port import OutOfContact
from podtide.cluster.port import Page, R, Unavailable, WatchEvent
from podtide.resources.base import Resource
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.settings import Settings

SETTINGS = Settings(contact_timeout_seconds=150.0, quarantine_seconds=300.0, add_wait_seconds=1000.0)
"""A watch on which nothing happens proves contact once it has lasted for two minutes (`cluster.contact`)."""


class HalfDeafCluster(CountingCluster):
    """A connection on which one kind can neither be listed nor watched."""

    deaf_to: type[Resource] | None = None

    async def list(self, kind: type[R], namespace: str = "", **more: Any) -> Page[R]:
        self._require(kind)
        return await super().list(kind, namespace, **more)

    def watch(self, kind: type[R], namespace: str = "", **more: Any) -> Any:
        return self._watch(kind, super().watch(kind, namespace, **more))

    async def _watch(self, kind: type[R], events: Any) -> Any:
        self._require(kind)
        event: WatchEvent[R]
        async for event in events:
            yield event

    def _require(self, kind: type[Resource]) -> None:
        if kind is self.deaf_to:
            raise Unavailable(f"no {kind.api.kind} is told of")


async def test_an_add_that_waits_is_not_served_while_the_agent_is_out_of_contact() -> None:
    down = Script()
    bench = Bench(faults=down, settings=SETTINGS)
    bench.capacity = 1
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("first")
        await bench.settle()
        waiting = asyncio.create_task(bench.add("second"))
        await bench.settle()
        for call in ("list", "watch"):
            down.steps[call] = [Unavailable("down")] * 1000
        bench.server.server.close_watches()
        await bench.settle(300)
        assert not agent.addresses.state().in_contact
        assert bench.delete("first") == held
        await bench.settle(100)
        assert not waiting.done(), "it was given what may be another node's by now"
        down.steps.clear()
        await bench.settle(60)
        assert agent.addresses.state().in_contact
        assert waiting.done()
        assert waiting.result() == held


@pytest.mark.parametrize(
    ("kind", "is_in_contact"),
    [
        (NodeNetworkConfig, False),
        (Pod, True),
    ],
)
async def test_contact_is_that_of_the_watch_that_shows_a_removal_whatever_other_watches_hear(
    kind: type[Resource], *, is_in_contact: bool
) -> None:
    bench = Bench(settings=SETTINGS)
    half_deaf = bench.cluster = HalfDeafCluster(bench.server, Script())
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("before")
        await bench.settle()
        half_deaf.deaf_to = kind
        bench.server.server.close_watches()
        await bench.settle(300)
        assert agent.addresses.state().in_contact == is_in_contact
        if is_in_contact:
            assert await bench.add("after") != held
        else:
            with pytest.raises(OutOfContact):
                await bench.add("after")
