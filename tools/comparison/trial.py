"""Runs one contestant under one load, in a cluster that is otherwise the same for all, and measures the result.

Grants take seconds and kubelets create one sandbox after the other, as in the design papers' tables.
"""

from collections.abc import Sequence
from fractions import Fraction
from io import StringIO

from msgspec import Struct, structs

from comparison.loads import Load
from podtide.core.subnet.scaler import DEFAULT_BATCH
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.pods import NAMESPACE
from podtide.simulation.stage import Stage
from podtide.simulation.strategies import GRANT_SECONDS, SANDBOX_SECONDS, Strategy
from podtide.simulation.trace import PluginCall
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.slow_grants import SlowGrants
from podtide.simulation.world.world import PortWrappers, WorldDefaults

_CALM_SECONDS = 60.0
"""Before the load begins: nodes join, and get their first batch."""


class TrialSample(Struct, frozen=True):
    """The counts at one second."""

    second: int
    pods: int
    """How many pods there are."""
    served: int
    """How many of those have an address."""
    idle: int
    """Addresses granted to nodes that no pod has, without the nodes' primaries."""
    batch: int
    """The batch that nodes size their pools by."""


class TrialOutcome(Struct, frozen=True, kw_only=True):
    """The result of one contestant under one load."""

    contestant: str
    load: str
    requests: int
    """How many requests agents wrote."""
    delayed: int
    """Pods whose first ADD found no free address: it failed, or had to wait."""
    failed_adds: int
    idle: float
    """Idle addresses, on average over the time of the load."""
    ready_seconds: float | None
    """The longest time from a pod's scheduling to its address; None if a pod that stayed never had one."""
    wait_seconds: float
    """The time from a pod's scheduling to its address, its deletion or the end, on average over all pods."""
    batch_share: Fraction
    """The part of the time in which nodes used the configured batch."""
    pods: int
    """How many pods there are at the end."""
    served: int
    """How many of those have an address at the end."""
    samples: tuple[TrialSample, ...]


def compare(contestant: Strategy, load: Load) -> TrialOutcome:
    """Run one contestant under one load."""
    return virtual_time.run(_compare(contestant, load))


async def _compare(contestant: Strategy, load: Load) -> TrialOutcome:
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    settings = Settings() if contestant.waits else structs.replace(Settings(), add_wait_seconds=0.0)
    defaults = WorldDefaults(
        settings=settings,
        policy=contestant.policy,
        habits=KubeletHabits(at_once=1, sandbox_seconds=SANDBOX_SECONDS),
        batch_rule=contestant.batch_rule,
    )
    async with open_embedded_world(load.subnet, defaults=defaults, clock=clock, seed=1, log=log) as world:
        world.wrappers = PortWrappers(allocator=lambda _program, line: SlowGrants(line, GRANT_SECONDS))
        world.start_controller()
        for node in range(load.nodes):
            await world.add_node(_name(node))
        await world.pass_time(_CALM_SECONDS)
        outcome = await _Trial(Stage(world), contestant, load).run()
        await world.auditor.check()
        return outcome


class _Trial:
    def __init__(self, stage: Stage, contestant: Strategy, load: Load) -> None:
        self._stage = stage
        self._contestant = contestant
        self._load = load
        self._scheduled: dict[str, float] = {}
        self._gone: dict[str, float] = {}

    async def run(self) -> TrialOutcome:
        world, point = self._stage.world, self._stage.now
        began = world.clock.monotonic()
        samples = []
        looks = range(0, self._load.seconds, self._load.sample_seconds)
        for second in sorted({*looks, *self._load.changes}):
            await world.pass_time(began + second - world.clock.monotonic())
            for node, change in self._load.changes.get(second, {}).items():
                await self._change(_name(node), change)
            if second in looks:
                samples.append(await self._sample(second))
        await world.pass_time(began + self._load.seconds - world.clock.monotonic())
        adds = self._stage.adds_since(point)
        return TrialOutcome(
            contestant=self._contestant.name,
            load=self._load.name,
            requests=len(self._stage.requests_since(point)),
            delayed=_delayed(adds),
            failed_adds=sum(not add.ok for add in adds),
            idle=sum(sample.idle for sample in samples) / len(samples),
            ready_seconds=self._slowest(adds),
            wait_seconds=self._average_wait(adds),
            batch_share=Fraction(sum(sample.batch == DEFAULT_BATCH for sample in samples), len(samples)),
            pods=self._stage.pod_count,
            served=world.running_pods(),
            samples=tuple(samples),
        )

    async def _change(self, node: str, change: int) -> None:
        now = self._stage.world.clock.monotonic()
        if change < 0:
            for name in self._stage.pods[node][change:]:
                self._gone[f"{NAMESPACE}/{name}"] = now
            await self._stage.remove_pods(node, -change)
            return
        for name in await self._stage.add_pods(node, change):
            self._scheduled[f"{NAMESPACE}/{name}"] = now

    async def _sample(self, second: int) -> TrialSample:
        served = self._stage.world.running_pods()
        idle = await self._stage.reserved() - served - self._load.nodes
        return TrialSample(second, self._stage.pod_count, served, idle, await self._batch())

    async def _batch(self) -> int:
        if not self._contestant.follows:
            return DEFAULT_BATCH
        world = self._stage.world
        subnet = await world.cluster.get(ClusterSubnet, world.options.subnet, SYSTEM_NAMESPACE)
        return subnet.status.scaler.batch if subnet.status.scaler else DEFAULT_BATCH

    def _slowest(self, adds: Sequence[PluginCall]) -> float | None:
        ready = {add.pod: add.at for add in reversed(adds) if add.ok}
        staying = {f"{NAMESPACE}/{name}" for names in self._stage.pods.values() for name in names}
        if staying - ready.keys():
            return None
        return max(at - self._scheduled[pod] for pod, at in ready.items())

    def _average_wait(self, adds: Sequence[PluginCall]) -> float:
        ready = {add.pod: add.at for add in reversed(adds) if add.ok}
        end = self._stage.world.clock.monotonic()
        waited = sum(
            ready.get(pod, self._gone.get(pod, end)) - since for pod, since in self._scheduled.items()
        )
        return waited / len(self._scheduled)


def _delayed(adds: Sequence[PluginCall]) -> int:
    """How many pods had to wait for an address at their first ADD. A free address is assigned at once."""
    first: dict[str, PluginCall] = {}
    for add in adds:
        first.setdefault(add.pod, add)
    return sum(not add.ok or add.took_seconds > 0 for add in first.values())


def _name(node: int) -> str:
    return f"node-{node}"
