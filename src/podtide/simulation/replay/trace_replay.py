"""One run of a trace: a cluster with the trace's first pods comes to rest, and from then on its pods follow the trace.

The agents, the controller and the allocator are those of production, on virtual time. Grants take seconds and kubelets
create one sandbox after the other, as in the comparison (docs/comparison.md). At the end every address is accounted for.

What it costs is the programs' own work, whether pods change or not: a controller looks at its subnet every five seconds, and
renews its term. So a speed makes a trace shorter: it is the programs' clock that runs slower, and pods come closer together.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from heapq import merge
from io import StringIO
from typing import TypeAlias

from msgspec import Struct, structs

from podtide.core.subnet.scaler import DEFAULT_MAX_IPS
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.replay.figures import ReplayOutcome, ReplaySample
from podtide.simulation.replay.pod_changes import PodChange, PodPlacement
from podtide.simulation.replay.pod_trace import PodTrace
from podtide.simulation.replay.tally import ReplayTally
from podtide.simulation.stage import Stage
from podtide.simulation.strategies import GRANT_SECONDS, SANDBOX_SECONDS, STRATEGIES, Strategy
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.slow_grants import SlowGrants
from podtide.simulation.world.world import PortWrappers, WorldDefaults

MOST_PODS_PER_NODE = DEFAULT_MAX_IPS
_QUIET_SECONDS = 90.0
"""The start is over when nothing was written for so long: longer than nodes may take to answer a new batch."""
_START_ROUNDS = 10
_SAMPLES_PER_STEP = 4
_MOST_SAMPLES = 4000

Tell: TypeAlias = Callable[[float], None]
"""Called with the part of a run that is done, from 0 to 1."""


class TraceLoad(Struct, frozen=True, kw_only=True):
    """A trace, and the cluster that it is replayed on."""

    trace: PodTrace
    nodes: tuple[str, ...]
    subnet: str
    seed: int = 1
    speed: float = 1.0
    """How many seconds of the trace pass in one second of the programs."""
    at_once: bool = False
    """Whether a row's change happens at its time, instead of being spread over the step before it."""


def settings_for(strategy: Strategy, batch: int, settings: Settings | None = None) -> Settings:
    """The settings of a cluster's programs by a strategy with a batch."""
    changed = structs.replace(settings or Settings(), batch=batch)
    return changed if strategy.waits else structs.replace(changed, add_wait_seconds=0.0)


def replay_trace(strategy: str, batch: int, load: TraceLoad, tell: Tell) -> ReplayOutcome:
    """Replay a trace on virtual time."""
    return virtual_time.run(_replay(STRATEGIES[strategy], batch, load, tell))


async def _replay(strategy: Strategy, batch: int, load: TraceLoad, tell: Tell) -> ReplayOutcome:
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    defaults = WorldDefaults(
        settings=settings_for(strategy, batch),
        policy=strategy.policy,
        habits=KubeletHabits(at_once=1, sandbox_seconds=SANDBOX_SECONDS),
        batch_rule=strategy.batch_rule,
    )
    async with open_embedded_world(
        load.subnet, defaults=defaults, clock=clock, seed=load.seed, log=log
    ) as world:
        world.trace.is_kept = False
        world.wrappers = PortWrappers(allocator=lambda _program, line: SlowGrants(line, GRANT_SECONDS))
        tally = ReplayTally(clock, batch)
        tally.follow(world)
        world.trace.listeners.append(tally.hear)
        world.start_controller()
        playing = _TracePlayer(Stage(world), load, tally, tell)
        await playing.start()
        samples = tuple([sample async for sample in playing.play()])
        await world.auditor.check()
        return ReplayOutcome(tally.figures(strategy.name, batch, load.speed), samples)


class _TracePlayer:
    def __init__(self, stage: Stage, load: TraceLoad, tally: ReplayTally, tell: Tell) -> None:
        self._stage = stage
        self._load = load
        self._tally = tally
        self._tell = tell
        chance = seeded_randomness(f"{load.seed}/pods")
        self._placement = PodPlacement(load.trace, load.nodes, MOST_PODS_PER_NODE, chance)

    async def start(self) -> None:
        """Let nodes join and the first pods come, until nothing is written any more, and begin to count."""
        world = self._stage.world
        for node in self._load.nodes:
            await world.add_node(node)
        for node, count in self._placement.pods.items():
            await self._stage.add_pods(node, count)
        written = -1
        for _ in range(_START_ROUNDS):
            if written == world.trace.noted:
                break
            written = world.trace.noted
            await world.pass_time(_QUIET_SECONDS)
        self._tally.begin()

    async def play(self) -> AsyncIterator[ReplaySample]:
        """Let pods come and go as the trace has it, and take readings meanwhile."""
        world, load = self._stage.world, self._load
        began, seconds = world.clock.monotonic(), load.trace.seconds / load.speed
        for moment in merge(self._changes(), self._looks(seconds), key=lambda moment: moment[0]):
            at, change = moment
            await world.pass_time(max(0.0, began + at - world.clock.monotonic()))
            if change is None:
                self._tell(at / seconds)
                yield self._tally.sample(load.speed)
            elif change.change > 0:
                await self._stage.add_pods(change.node)
            else:
                await self._stage.remove_pods(change.node)
        await world.pass_time(max(0.0, began + seconds - world.clock.monotonic()))
        yield self._tally.sample(load.speed)
        self._tell(1.0)

    def _changes(self) -> Iterator[tuple[float, PodChange | None]]:
        load = self._load
        return ((each.at / load.speed, each) for each in self._placement.changes(at_once=load.at_once))

    def _looks(self, seconds: float) -> Iterator[tuple[float, PodChange | None]]:
        every = max(
            self._load.trace.step_seconds / self._load.speed / _SAMPLES_PER_STEP, seconds / _MOST_SAMPLES
        )
        return ((number * every, None) for number in range(int(seconds / every)))
