"""Plays a scenario: carries out its actions and checks its expectations. The first that is not met ends it."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from io import StringIO
from typing import Any

from msgspec import Struct

from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.controller.options import ControllerOptions
from podtide.core.errors import InvalidInput, PodtideError
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.decisions import Decisions
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.agents_in_process import AgentsInProcess
from podtide.simulation.scenario.document import Expectation, Scenario, ScenarioStep, shown
from podtide.simulation.scenario.positions import InvalidScenario
from podtide.simulation.scenario.stage import EACH_NODE, ClusterStage, HeldBackDeletes, ScenarioStage
from podtide.simulation.strategies import ADAPTIVE, Strategy
from podtide.simulation.trace import Entry
from podtide.simulation.world.embedded_world import CLUSTER, NETWORK, opened_allocator
from podtide.simulation.world.site import Site
from podtide.simulation.world.slow_grants import SlowGrants
from podtide.simulation.world.world import PortWrappers, World, WorldDefaults

_AUDIT_EVERY_SECONDS = 0.25


@asynccontextmanager
async def open_stage(
    scenario: Scenario,
    *,
    strategy: Strategy = ADAPTIVE,
    clock: LoopClock | None = None,
    hear: Callable[[Entry], None] | None = None,
) -> AsyncIterator[ScenarioStage]:
    """Open the scenario's clusters, each with a controller and its first nodes; `hear` is called with all that happens."""
    clock = clock or LoopClock()
    async with opened_allocator((), scenario.settings, clock) as allocator, AsyncExitStack() as stack:
        for name, cidr in scenario.subnets.items():
            await allocator.add_subnet(SubnetSpec(network=NETWORK, name=name, cidrs=(cidr,)))
        site = Site(allocator, NETWORK)
        if hear is not None:
            site.trace.listeners.append(hear)
        clusters = {
            name: await stack.enter_async_context(_open_cluster(scenario, strategy, name, site, clock))
            for name in scenario.clusters
        }
        site.programs.start("auditor", site.auditor.run(_AUDIT_EVERY_SECONDS))
        for name, nodes in scenario.clusters.items():
            for node, subnet in nodes.items():
                await clusters[name].add_node(node, subnet)
        yield ScenarioStage(site, clusters, scenario.subnets)


@asynccontextmanager
async def _open_cluster(
    scenario: Scenario, strategy: Strategy, name: str, site: Site, clock: LoopClock
) -> AsyncIterator[ClusterStage]:
    seed = full_name(name, scenario.title)
    log = make_logger(StringIO(), clock, level="error")
    cluster = EmbeddedCluster(clock=clock, randomness=seeded_randomness(f"{seed}/cluster"))
    deletes = HeldBackDeletes(AgentsInProcess(clock=clock, log=log))
    try:
        async with World(
            cluster,
            site.allocator,
            _options(scenario, name or CLUSTER),
            site=site,
            name=name,
            defaults=WorldDefaults(
                settings=scenario.settings,
                policy=strategy.policy,
                habits=scenario.habits,
                batch_rule=strategy.batch_rule,
            ),
            networks=scenario.networks,
            doors=deletes,
            clock=clock,
            seed=seed,
            log=log,
        ) as world:
            world.wrappers = PortWrappers(
                allocator=lambda _program, line: SlowGrants(line, scenario.grants_take_seconds)
            )
            stage = ClusterStage(world, cluster, deletes)
            stage.start_controller()
            yield stage
    finally:
        cluster.close()


def _options(scenario: Scenario, cluster: str) -> ControllerOptions:
    return ControllerOptions(
        cluster=cluster,
        network=NETWORK,
        subnet=next(iter(scenario.subnets)),
        cluster_subnets=scenario.cluster_subnets,
    )


_LOOK_EVERY_SECONDS = 0.05
_LOOK_AGAIN_EVERY_SECONDS = 1.0
"""How often expectations that must stay met are checked; shorter changes are not seen."""


class UnmetExpectation(PodtideError):
    """An expectation of the scenario was not met. The message says where, what was expected and what was measured."""


class ScenarioOutcome(Struct, frozen=True, kw_only=True):
    """The result of a scenario."""

    file: str
    title: str
    simulated_seconds: float
    expectations: int
    """How many expectations were met."""
    audits: int
    failure: str = ""
    """What went wrong, in a sentence; "" if every expectation was met."""


def play(scenario: Scenario, tell: Callable[[str], None]) -> ScenarioOutcome:
    """Play a scenario on virtual time; `tell` is called with every line of its log."""
    return virtual_time.run(_play(scenario, tell))


async def _play(scenario: Scenario, tell: Callable[[str], None]) -> ScenarioOutcome:
    async with open_stage(scenario) as stage:
        player = ScenarioPlayer(scenario, stage, tell)
        failure = ""
        try:
            await player.play()
        except InvalidInput:
            raise
        except PodtideError as error:
            failure = str(error)
        return ScenarioOutcome(
            file=scenario.file,
            title=scenario.title,
            simulated_seconds=round(stage.world.clock.monotonic(), 3),
            expectations=player.met,
            audits=stage.world.auditor.audits,
            failure=failure,
        )


class ScenarioPlayer:
    """Carries out the steps of a scenario, one after the other."""

    def __init__(self, scenario: Scenario, stage: ScenarioStage, tell: Callable[[str], None]) -> None:
        self.met = 0
        self._scenario = scenario
        self._stage = stage
        self._tell = tell
        self._decisions = [Decisions(there.world) for there in stage.clusters.values()]
        stage.world.trace.listeners.append(self._tell_decisions)

    async def play(self) -> None:
        """Play all steps; raises UnmetExpectation, or the error of a program."""
        for step in self._scenario.story:
            self.before_step(step)
            if step.say:
                self._line(step.say)
            try:
                await self._happen(step)
                if step.expectations:
                    await self.expect(step)
            except InvalidInput as error:
                raise InvalidScenario(f"{self._scenario.place(step)}: {error}") from error
        self._stage.world.programs.check()
        await self._stage.world.auditor.check()

    def before_step(self, step: ScenarioStep) -> None:
        """Called before each step."""

    async def _happen(self, step: ScenarioStep) -> None:
        if step.action is None:
            return
        self._line(f"  {step.action}")
        word, value = step.action.word, step.action.value
        await (word.function(self._stage, value) if word.subject else word.function(self._stage))

    async def expect(self, step: ScenarioStep) -> None:
        """Wait until all expectations are met at once, then check that they stay met."""
        world = self._stage.world
        await self.wait_for(step, world.clock.monotonic() + step.within_seconds)
        end = world.clock.monotonic() + step.for_seconds
        while world.clock.monotonic() < end:
            await world.pass_time(min(_LOOK_AGAIN_EVERY_SECONDS, end - world.clock.monotonic()))
            if complaint := await self._complaint(step):
                raise UnmetExpectation(
                    f"{self._scenario.place(step)}: {complaint}; it must stay so for longer"
                )
        self.met += len(step.expectations)
        lasting = f", for {step.for_seconds:g} s" if step.for_seconds else ""
        self._line(f"  as expected: {', '.join(map(str, step.expectations))}{lasting}")

    async def wait_for(self, step: ScenarioStep, deadline: float) -> None:
        """Wait until all expectations are met at once; UnmetExpectation if they are not by the deadline.

        It looks first at what was not met last: while that is not, the rest need not be measured.
        """
        world = self._stage.world
        unmet = await self._first_unmet(step.expectations)
        while unmet is not None:
            if world.clock.monotonic() >= deadline and (complaint := await self._complaint(step)):
                patience = f" after {step.within_seconds:g} s" if step.within_seconds else ""
                raise UnmetExpectation(f"{self._scenario.place(step)}: {complaint}{patience}")
            await world.pass_time(_LOOK_EVERY_SECONDS)
            unmet = await self._first_unmet((unmet, *step.expectations))

    async def _first_unmet(self, expectations: Iterable[Expectation]) -> Expectation | None:
        for expectation in expectations:
            for subject in self._subjects(expectation):
                if not expectation.is_met(await self._measure(expectation, subject)):
                    return expectation
        return None

    async def _complaint(self, step: ScenarioStep) -> str:
        """The expectations that are not met, in words; "" if all are."""
        complaints = [
            f"{expectation.of(subject)} should be {shown(expectation.expected)}, and is {shown(measured)}"
            for expectation in step.expectations
            for subject in self._subjects(expectation)
            if not expectation.is_met(measured := await self._measure(expectation, subject))
        ]
        return "; ".join(complaints)

    def _subjects(self, expectation: Expectation) -> list[str]:
        subject = expectation.subject
        if not subject.startswith(EACH_NODE):
            return [subject]
        return [machine.full_name for machine in self._stage.machines(subject)]

    async def _measure(self, expectation: Expectation, subject: str) -> Any:
        word = expectation.word
        if word.subject == "node" and subject:
            self._stage.machine(subject)
        if word.subject == "subnet":
            self._stage.subnet(subject)
        return await (word.function(self._stage, subject) if word.subject else word.function(self._stage))

    # What is told

    def _tell_decisions(self, _entry: Entry) -> None:
        for decisions in self._decisions:
            for words, who in decisions.news():
                self._line(f"    {f'{who} {words}'.strip()}")

    def _line(self, words: str) -> None:
        self._tell(f"{self._stage.world.clock.monotonic():8.1f} s  {words}")
