"""One run of a plan: a cluster on virtual time, or several on one subnet, with faults for a while, then without, and a verdict.

    trouble     pods are created and deleted, faults strike; invariants 1 to 4 are checked after every step
    mending     the faults stop, and everything that was broken is repaired
    settling    every pod that fits gets its address, nothing is leaked, nothing more is written (invariants 5 and 6)

A step is whatever leaves an entry in the trace that may move addresses: a request or an answer to one, a call of the
allocator or of the plugin, a fault. At the end, the calls of all kubelets are checked by themselves (`checks.call_history`).
"""

import asyncio
import re
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NoReturn

from msgspec import structs

from podtide.allocator.port import Allocator
from podtide.allocator.store import StoreRules
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Cluster, Conflict, NotFound
from podtide.controller.options import ControllerOptions
from podtide.core.errors import PodtideError
from podtide.core.exact import exact
from podtide.core.ranges import parse_network
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SUBNET_LABEL
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.runtime import virtual_time
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.settings import Settings
from podtide.simulation.adjustable_clock import AdjustableClock
from podtide.simulation.checks.batch_moves import BatchMoves
from podtide.simulation.checks.call_history import CallHistory
from podtide.simulation.checks.out_of_contact import ContactCheck
from podtide.simulation.checks.premature_requests import PrematureRequests
from podtide.simulation.checks.reach import Reach
from podtide.simulation.faults.agenda import Agenda
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.faulty_doors import FaultyDoors
from podtide.simulation.faults.faulty_ports import FaultyAllocator, FaultyCluster
from podtide.simulation.faults.line_fault import LineFault
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.plugin_fault import PluginFault
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.agents_in_process import AgentsInProcess
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.network_definitions import definitions
from podtide.simulation.nodes.other_agents import POLICIES
from podtide.simulation.run.address_history import last_entries, last_states, subject_of
from podtide.simulation.run.churn import Churn
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap
from podtide.simulation.run.placement_tally import PlacementTally
from podtide.simulation.run.report import RunReport, TraceHash
from podtide.simulation.run.settling import settle
from podtide.simulation.trace import ClusterWatch, ClusterWrite, Entry, Trouble
from podtide.simulation.world.embedded_world import (
    CLUSTER,
    NETWORK,
    SECOND_SUBNET,
    SUBNET,
    SUBNET_V6,
    options_for,
)
from podtide.simulation.world.restartable_allocator import RestartableAllocator, open_restartable_allocator
from podtide.simulation.world.scheduled_pods import start_scheduler
from podtide.simulation.world.site import Site
from podtide.simulation.world.world import PortWrappers, World, WorldDefaults

_IMPATIENCE = 0.3
_CLUSTERS = (CLUSTER, "west")
_OUT_OF_STEP_SECONDS = 5.0
_IN_MEMORY = re.compile(r"\b0x[0-9a-f]+")
_WITH_ADDRESSES = {
    kind.api.kind for kind in (NodeNetworkConfig, IPPool, OverlappingRangeIPReservation, NodeSlicePool)
}


def simulate(plan: FaultPlan, *, by_calls_alone: bool = False) -> RunReport:
    """Run a plan. The same plan gives the same report, in every process.

    With `by_calls_alone`, the trouble is judged by the kubelets' calls and by nothing else: to show what these tell.
    """
    order = seeded_randomness(f"{plan.seed}/order") if plan.has_drawn_order else None
    return virtual_time.run(_Run(plan, by_calls_alone=by_calls_alone).report(), order)


class _Run:
    def __init__(self, plan: FaultPlan, *, by_calls_alone: bool = False) -> None:
        self._plan = plan
        self._by_calls_alone = by_calls_alone
        self._struck: Counter[str] = Counter()
        self._hash = TraceHash()
        self._names = _CLUSTERS[: plan.clusters] if plan.clusters > 1 else ("",)
        """The names of the clusters; "" for a single one."""
        self._batch_moves = BatchMoves()
        self._reach = Reach()
        self._stepped = asyncio.Event()
        self._steps = 0
        self._clock = AdjustableClock()
        self._errors = StringIO()
        """The programs' log at level error."""
        faults = [FAULTS[name] for name in plan.line_faults]
        self._conditions = Conditions(
            plan.seed,
            [fault for fault in faults if isinstance(fault, LineFault)],
            self._report_fault,
            plan.frequencies,
        )
        self._plugin_faults = [fault for fault in faults if isinstance(fault, PluginFault)]
        self._agenda = Agenda(self._clock)
        self._tally: PlacementTally | None = None
        self._site: Site

    async def report(self) -> RunReport:
        """Run the plan, and return its report."""
        failure = ""
        async with self._open_scenes() as scenes:
            story = asyncio.create_task(self._tell(scenes))
            audit = asyncio.create_task(self._audit_after_every_step())
            try:
                await asyncio.wait({story, audit}, return_when=asyncio.FIRST_COMPLETED)
                for task in (audit, story):
                    if task.done():
                        await task
                failure = self._call_finding()
                failure = failure or self._mistake()
            except PodtideError as error:
                failure = str(error)
            except Exception as error:  # noqa: BLE001 - whatever ends a run is to be told with its seed, and shrunk
                failure = _unforeseen(error)
            finally:
                story.cancel()
                audit.cancel()
            trace = self._site.trace
            return RunReport(
                plan=self._plan,
                trace_hash=self._hash.hexdigest(),
                entries=trace.noted,
                simulated_seconds=round(self._clock.monotonic(), 3),
                pods=sum(scene.world.workload.made for scene in scenes),
                steps=self._steps,
                faults=dict(sorted(self._struck.items())),
                batch_moves=self._batch_moves.count,
                placement=self._tally.counts() if self._tally else None,
                reached=dict(sorted(self._reach.counts.items())),
                failure=failure,
                last_states=last_states(subject_of(failure), trace),
                last_entries=last_entries(trace) if failure else (),
            )

    # The story

    async def _tell(self, scenes: Sequence[FaultScene]) -> None:
        worlds = [scene.world for scene in scenes]
        await self._begin(scenes)
        churn = asyncio.create_task(self._churn(worlds).run())
        counting = asyncio.create_task(self._tally.run()) if self._tally else None
        try:
            self._conditions.is_bad = True
            for mishap in self._plan.mishaps:
                self._agenda.plan(mishap.at_seconds, partial(self._let_happen, scenes, mishap))
            await self._agenda.play_until(self._clock.monotonic() + self._plan.trouble_seconds)
        finally:
            churn.cancel()
            await asyncio.wait({churn})
        if not churn.cancelled():
            churn.result()
        self._conditions.is_bad = False
        if self._by_calls_alone:
            return
        await self._agenda.mend_everything()
        await settle(worlds)
        await self._site.auditor.check()
        if counting is not None:
            counting.cancel()

    async def _begin(self, scenes: Sequence[FaultScene]) -> None:
        """Start schedulers, controllers and nodes. Nodes are distributed in turn, so that two clusters have nodes of the same names."""
        chance = seeded_randomness(f"{self._plan.seed}/beginning")
        for number, scene in enumerate(scenes):
            if number:  # controllers of two clusters do not look at one moment
                await asyncio.sleep(chance.uniform(0.0, _OUT_OF_STEP_SECONDS))
            await scene.world.define_networks()
            if (placement := self._plan.placement) is not None:
                start_scheduler(scene.world, placement.reach, placement.choice)
            for replica in range(self._plan.controllers):
                scene.start_controller(replica)
        for number in range(self._plan.nodes):
            place, whose = divmod(number, len(scenes))
            policy = POLICIES[self._plan.agents[number]] if number < len(self._plan.agents) else None
            await scenes[whose].world.add_node(f"node-{place}", policy=policy)

    def _churn(self, worlds: Sequence[World]) -> Churn:
        subnets = filter(None, (self._plan.subnet, self._plan.second_subnet))
        room = sum(parse_network(cidr).num_addresses - 3 for cidr in subnets) - self._plan.nodes
        return Churn(
            worlds,
            most_pods=max(1, int(room * self._plan.pressure)),
            chance=seeded_randomness(f"{self._plan.seed}/churn"),
            on_one_node=self._plan.placement.on_one_node if self._plan.placement else 0.0,
        )

    async def _let_happen(self, scenes: Sequence[FaultScene], planned: PlannedMishap) -> None:
        mishap = FAULTS[planned.fault]
        assert isinstance(mishap, Mishap)
        drawn_from = f"{self._plan.seed}/{planned.fault} {planned.number}"
        scene = seeded_randomness(f"{drawn_from} where").choice(scenes)
        chance = seeded_randomness(drawn_from)
        if not self._conditions.is_bad:
            return
        with suppress(NotFound, Conflict):  # its object was deleted, or changed, at that instant
            if whom := await mishap.happen(scene, chance):
                self._report_fault(mishap.name, whom)

    def _mistake(self) -> str:
        """The first unexpected exception in the log, which fails the run: programs log such exceptions and go on."""
        mistakes = (line for line in self._errors.getvalue().splitlines() if '"exception"' in line)
        return next(mistakes, "")

    # What it is told in

    @asynccontextmanager
    async def _open_scenes(self) -> AsyncIterator[Sequence[FaultScene]]:
        """Open a scene for each cluster, all on one allocator."""
        clock, settings = self._clock, self._settings()
        rules = StoreRules(
            cooldown_seconds=settings.cooldown_seconds, quarantine_seconds=settings.quarantine_seconds
        )
        chance = seeded_randomness(f"{self._plan.seed}/replicas") if self._plan.replicas else None
        async with open_restartable_allocator(
            clock=clock, rules=rules, chance_of_replicas=chance
        ) as allocator:
            for subnet, cidr in self._subnets().items():
                await allocator.add_subnet(SubnetSpec(network=NETWORK, name=subnet, cidrs=(cidr,)))
            self._site = Site(allocator, NETWORK, calls=CallHistory())
            self._site.trace.listeners += (self._take_step, self._batch_moves.hear, self._reach.hear)
            contact = ContactCheck(
                lambda node: self._conditions.unheard_since(f"agent {node}"),
                self._site.book.findings.append,
                contact_timeout_seconds=settings.contact_timeout_seconds,
            )
            self._site.trace.move_listeners += (self._reach.move, contact.move)
            async with AsyncExitStack() as stack:
                scenes = [
                    await stack.enter_async_context(self._open_scene(name, allocator)) for name in self._names
                ]
                if self._plan.placement is not None:
                    self._tally = PlacementTally([scene.world for scene in scenes])
                    self._site.trace.listeners.append(self._tally.hear)
                try:
                    yield scenes
                finally:
                    await self._conditions.close()

    @asynccontextmanager
    async def _open_scene(self, name: str, allocator: RestartableAllocator) -> AsyncIterator[FaultScene]:
        """Open the scene of one cluster; its name is "" where there is only one."""
        plan, clock = self._plan, self._clock
        seed = full_name(name, str(plan.seed))
        log = make_logger(self._errors, clock, level="error")
        cluster = EmbeddedCluster(clock=clock, randomness=seeded_randomness(f"{seed}/cluster"))
        doors = FaultyDoors(
            AgentsInProcess(clock=clock, log=log),
            self._plugin_faults,
            self._conditions,
            seed=seed,
            report=self._report_fault,
        )
        async with World(
            cluster,
            allocator,
            self._options(name),
            site=self._site,
            name=name,
            defaults=WorldDefaults(
                settings=self._settings(),
                habits=KubeletHabits(impatience=_IMPATIENCE),
                labels=self._labels,
                pods_per_node=plan.placement.pods_per_node if plan.placement else None,
            ),
            networks=definitions(plan.networks, nodes=plan.nodes),
            doors=doors,
            clock=clock,
            seed=seed,
            log=log,
        ) as world:
            world.wrappers = PortWrappers(
                cluster=partial(self._faulty_cluster, world, cluster),
                allocator=partial(self._faulty_allocator, world),
            )
            yield FaultScene(
                world,
                self._conditions,
                cluster=cluster,
                doors=doors,
                allocator=allocator,
                clock=clock,
                agenda=self._agenda,
            )
        cluster.close()

    def _options(self, name: str) -> ControllerOptions:
        plan = self._plan
        options = options_for(
            tuple(filter(None, (plan.subnet, plan.subnet_v6))),
            cluster=name or CLUSTER,
            cluster_subnets=plan.cluster_subnets,
        )
        if plan.placement is None:
            return options
        return structs.replace(options, placement=True, placement_taint=plan.placement.has_taint)

    def _subnets(self) -> dict[str, str]:
        """The CIDRs of the subnets, by their names."""
        plan = self._plan
        planned = {SUBNET: plan.subnet, SECOND_SUBNET: plan.second_subnet, SUBNET_V6: plan.subnet_v6}
        return {name: cidr for name, cidr in planned.items() if cidr}

    def _labels(self, node: str) -> dict[str, str]:
        """The label of every other node: the second subnet. A replacement has the number, and so the label, of its predecessor."""
        number = int(node.partition("-")[2].partition(".")[0])
        return {SUBNET_LABEL: SECOND_SUBNET} if self._plan.second_subnet and number % 2 else {}

    def _settings(self) -> Settings:
        plan, usual = self._plan, Settings()
        return structs.replace(
            usual,
            batch=plan.batch,
            buffer=exact(plan.buffer),
            contact_timeout_seconds=plan.contact_timeout_seconds or usual.contact_timeout_seconds,
            quarantine_seconds=plan.quarantine_seconds or usual.quarantine_seconds,
        )

    def _faulty_cluster(self, world: World, cluster: EmbeddedCluster, program: str, line: Cluster) -> Cluster:
        wire = world.record_cluster(program)
        premature_requests = PrematureRequests(program, world.subnets_of, world.book.findings.append)
        return FaultyCluster(
            line, wire, program, self._conditions, premature_requests, restores=lambda: cluster.restores
        )

    def _faulty_allocator(self, world: World, program: str, line: Allocator) -> Allocator:
        wire = world.record_allocator(program)
        return FaultyAllocator(line, wire, program, self._conditions)

    # What is looked at

    def _take_step(self, entry: Entry) -> None:
        self._hash.take(entry)
        if _may_move_addresses(entry):
            self._stepped.set()

    async def _audit_after_every_step(self) -> NoReturn:
        while True:
            await self._stepped.wait()
            self._stepped.clear()
            if self._by_calls_alone:
                continue
            self._site.programs.check()
            await self._site.auditor.look()
            self._steps += 1

    def _call_finding(self) -> str:
        """What the kubelets' calls alone tell."""
        return self._site.calls.finding() if self._site.calls else ""

    def _report_fault(self, name: str, words: str) -> None:
        self._struck[name] += 1
        self._site.trace.note(Trouble(at=self._clock.monotonic(), fault=name, words=words))


def _unforeseen(error: Exception) -> str:
    """An exception in words that are the same in every process, that is, without memory addresses."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    place = f"{frame.name} of {Path(frame.filename).name}:{frame.lineno}"
    return f"ended by {type(error).__name__} in {place}: {_IN_MEMORY.sub('0x…', str(error))}"


def _may_move_addresses(entry: Entry) -> bool:
    """Whether the entry may have moved addresses. Writes of other kinds, and watches, cannot."""
    if isinstance(entry, ClusterWrite):
        return entry.kind in _WITH_ADDRESSES
    return not isinstance(entry, ClusterWatch)
