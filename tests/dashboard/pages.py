"""A page's state on a drawn cluster, and a browser that follows it."""

import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cli.drawn_cluster import DrawnCluster
from podtide.allocator.port import Allocator
from podtide.dashboard.options import PageOptions
from podtide.dashboard.page_state import PageState
from podtide.dashboard.program import running_page
from podtide.dashboard.records import PageCluster
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

ABOUT = PageCluster(
    name="test", server="0", started_at="2026-11-05T12:00:00Z", has_allocator=False, demo=False
)


def runtime_for(clock: Clock) -> Runtime:
    return Runtime(clock=clock, randomness=seeded_randomness("page"), log=make_logger(io.StringIO(), clock))


class Browser:
    """What a page has: it applies events as the page's script does."""

    def __init__(self) -> None:
        self.shown: dict[str, Any] = {}
        self.seen: int | None = None
        self.snapshots = 0
        self.blocks: list[dict[str, list[int]]] = []

    def catch_up(self, state: PageState) -> None:
        """Take the next event, if there is one."""
        event = state.event_since(self.seen)
        if event is not None:
            self.seen = event.sequence
            self.apply(event.kind, json.loads(event.data))

    def apply(self, kind: str, data: dict[str, Any]) -> None:
        """Apply one event."""
        if kind == "snapshot":
            self.snapshots += 1
            self.shown = {
                "subnets": {each["name"]: each for each in data["subnets"]},
                "nodes": {each["name"]: each for each in data["nodes"]},
                "decisions": data["decisions"],
                "health": data["health"],
            }
            return
        for kind_of, removed in (("subnets", "removedSubnets"), ("nodes", "removedNodes")):
            self.shown[kind_of].update({each["name"]: each for each in data.get(kind_of, ())})
            for name in data.get(removed, ()):
                self.shown[kind_of].pop(name, None)
        self.shown["decisions"] = [*self.shown["decisions"], *data.get("decisions", ())][-200:]
        self.shown["health"] = data.get("health", self.shown["health"])
        if "blocks" in data:
            self.blocks.append(data["blocks"])


def truth(state: PageState) -> dict[str, Any]:
    """What a browser should show."""
    browser = Browser()
    browser.apply("snapshot", json.loads(msgspec.json.encode(state.snapshot())))
    return browser.shown


@asynccontextmanager
async def page_on(
    drawn: DrawnCluster, *, token: str = "", allocator: Allocator | None = None
) -> AsyncIterator[str]:
    """The page over HTTP; yields its URL."""
    options = PageOptions(
        listen=ListenAddress("127.0.0.1", 0), token=token, name="test", networks_namespace=SYSTEM_NAMESPACE
    )
    async with running_page(options, drawn.cluster, allocator, runtime=runtime_for(SystemClock())) as address:
        yield f"http://{address}"


def cells(answer: dict[str, Any]) -> bytes:
    """The states in a map."""
    return base64.b64decode(answer["cells"])


def owners(answer: dict[str, Any]) -> list[str]:
    """The node of each address in a map; "" for none."""
    numbers = memoryview(base64.b64decode(answer["owners"])).cast("H")
    return [answer["nodes"][number - 1] if number else "" for number in numbers]
