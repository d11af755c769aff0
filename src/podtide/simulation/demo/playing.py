"""Plays a story: the programs run, the auditor checks, the teller shows it, and at the end there is a verdict."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from podtide.core.errors import PodtideError
from podtide.simulation.decisions import Decisions
from podtide.simulation.demo.stage import DemoStage
from podtide.simulation.demo.stories import Story
from podtide.simulation.demo.summary import Summary, summarize

_SHOW_EVERY_SECONDS = 0.1
_AUDIT_EVERY_SECONDS = 0.5


class DemoOutcome(Struct, frozen=True, kw_only=True):
    """The result of a story."""

    summary: Summary
    audits: int
    failure: str
    """What was wrong, in words: a broken invariant, a program that failed, a condition that did not become true; "" for nothing."""
    was_stopped: bool

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed, from beginning to end."""
        return not self.failure


class _Showing:
    """Passes every decision and scene to the teller, and keeps the highest number of reserved addresses."""

    def __init__(self, stage: DemoStage) -> None:
        self.peak_reserved = 0
        self.capacity = 0
        self._stage = stage
        self._decisions = Decisions(stage.world)

    async def run(self) -> None:
        """Show scenes until cancelled."""
        while True:
            await self.show()
            await asyncio.sleep(_SHOW_EVERY_SECONDS)

    async def show(self) -> None:
        """Pass new decisions and the present scene to the teller."""
        for words, who in self._decisions.news():
            self._stage.teller.decided(words, who)
        scene = await self._stage.scene()
        self.capacity = scene.subnet.capacity
        self.peak_reserved = max(self.peak_reserved, scene.subnet.reserved)
        self._stage.teller.show(scene)


async def play(story: Story, stage: DemoStage, stopped: Awaitable[Any]) -> DemoOutcome:
    """Play the story to its end, or until `stopped` is done, and audit it."""
    world = stage.world
    began = world.clock.monotonic()
    showing = _Showing(stage)
    telling = asyncio.ensure_future(story.tell(stage))
    stopping = asyncio.ensure_future(stopped)
    beside = [
        asyncio.create_task(showing.run()),
        asyncio.create_task(world.auditor.run(_AUDIT_EVERY_SECONDS)),
    ]
    await asyncio.wait({telling, stopping, *beside}, return_when=asyncio.FIRST_COMPLETED)
    was_stopped = stopping.done()
    failure = _failure_of(telling, *beside)
    for task in (telling, stopping, *beside):
        task.cancel()
    await asyncio.wait({telling, stopping, *beside})
    with suppress(PodtideError):  # what is wrong is found by the audit
        await showing.show()
    failure = failure or await _audit(stage)
    return DemoOutcome(
        summary=summarize(
            world.trace.entries,
            began=began,
            ended=world.clock.monotonic(),
            peak_reserved=showing.peak_reserved,
            capacity=showing.capacity,
        ),
        audits=world.auditor.audits,
        failure=failure,
        was_stopped=was_stopped,
    )


def _failure_of(*tasks: "asyncio.Future[Any]") -> str:
    """The message of the first task that failed; "" if none did. Unexpected exceptions are raised."""
    for task in tasks:
        if task.done() and (error := task.exception()) is not None:
            if not isinstance(error, PodtideError):
                raise error
            return str(error)
    return ""


async def _audit(stage: DemoStage) -> str:
    try:
        stage.world.programs.check()
        await stage.world.auditor.check()
    except PodtideError as error:
        return str(error)
    return ""
