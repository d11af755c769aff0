"""One run of a story: its steps are carried out by another strategy or batch, and what it expects is waited for, not demanded.

A story says what podtide does. Another strategy need not do the same: where an expectation is not met in its time, the
story goes on, and the figures say what became of it. All is counted, from the first node on.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from msgspec import Struct, structs

from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.simulation.replay.figures import ReplayOutcome, ReplaySample
from podtide.simulation.replay.tally import ReplayTally
from podtide.simulation.replay.trace_replay import Tell, settings_for
from podtide.simulation.scenario.document import Scenario, ScenarioStep
from podtide.simulation.scenario.playing import ScenarioPlayer, UnmetExpectation, open_stage
from podtide.simulation.scenario.reading import read_scenario
from podtide.simulation.scenario.shipped_scenarios import STORIES, find_scenario
from podtide.simulation.scenario.stage import ScenarioStage
from podtide.simulation.strategies import STRATEGIES, Strategy

_MOST_SAMPLES = 4000


class StoryLoad(Struct, frozen=True):
    """A story, by its file: each process reads it anew."""

    file: Path


def find_story(named: str) -> Path:
    """The file of that path, or podtide's own story of that name."""
    return find_scenario(named, flag="--story", kinds=(STORIES,))


def batch_of(story: StoryLoad) -> int:
    """The batch that the story itself is played by."""
    return read_scenario(story.file).settings.batch


def replay_story(strategy: str, batch: int, load: StoryLoad, tell: Tell) -> ReplayOutcome:
    """Replay a story on virtual time."""
    chosen, scenario = STRATEGIES[strategy], read_scenario(load.file)
    settings = settings_for(chosen, batch, scenario.settings)
    return virtual_time.run(_replay(chosen, structs.replace(scenario, settings=settings), tell))


async def _replay(strategy: Strategy, scenario: Scenario, tell: Tell) -> ReplayOutcome:
    clock, batch = LoopClock(), scenario.settings.batch
    tally = ReplayTally(clock, batch)
    tally.begin()
    async with open_stage(scenario, strategy=strategy, clock=clock, hear=tally.hear) as stage:
        for there in stage.clusters.values():
            tally.follow(there.world)
        samples = _StorySamples(tally)
        stage.site.programs.start("samples", samples.take())
        await _StoryPlayer(scenario, stage, tell).play()
        tell(1.0)
        return ReplayOutcome(tally.figures(strategy.name, batch, 1.0), (*samples.taken, tally.sample(1.0)))


class _StoryPlayer(ScenarioPlayer):
    """Plays a story on, whatever it expects."""

    def __init__(self, scenario: Scenario, stage: ScenarioStage, tell: Tell) -> None:
        super().__init__(scenario, stage, lambda _line: None)
        self._done = 0
        self._steps = len(scenario.story)
        self._world = stage.world
        self._tell_part = tell

    def before_step(self, step: ScenarioStep) -> None:
        """Tell how far the story is."""
        del step
        self._tell_part(self._done / self._steps)
        self._done += 1

    async def expect(self, step: ScenarioStep) -> None:
        """Wait for the expectations as long as the story does, and let the time pass for which they are to hold."""
        with suppress(UnmetExpectation):  # the figures say what became of it
            await self.wait_for(step, self._world.clock.monotonic() + step.within_seconds)
        await self._world.pass_time(step.for_seconds)


class _StorySamples:
    """Samples in even distances. How long a story is shows only when it ends: every second one is dropped when there are many."""

    def __init__(self, tally: ReplayTally) -> None:
        self.taken: list[ReplaySample] = []
        self._tally = tally
        self._every_seconds = 1.0

    async def take(self) -> NoReturn:
        """Take samples until cancelled."""
        while True:
            self.taken.append(self._tally.sample(1.0))
            if len(self.taken) >= _MOST_SAMPLES:
                del self.taken[1::2]
                self._every_seconds *= 2
            await asyncio.sleep(self._every_seconds)
