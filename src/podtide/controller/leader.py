"""Everything that a controller does while it leads: its caches, its work queues, and the reconcilers that work them off.

    Nodes, NodeNetworkConfigs           → queue of nodes       → NodeReconciler.reconcile
    owed nodes whose turn it is         → queue of nodes
    ClusterSubnets, ClusterSubnetStates → queue of subnets     → SubnetReconciler.reconcile, also polled
    short grants, addresses given back  → queue of subnets
    Nodes that were deleted or are back → queue of quarantines → QuarantineReconciler.reconcile
    subnets, once an hour               → queue of forecasts   → SubnetForecasts.reconcile

With `--placement`, nodes have one more queue (`placement.program`). Beside them, secondary networks have caches and a queue of
their own (`slices.program`), and share the cache of Nodes; and at an interval all that they hold is searched for leaks (`repair`).

Caches are built again for every term: a replica that does not lead has no use for them, and what it knew of an earlier
term is stale.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

from podtide.allocator.port import Allocator
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.controller.allocator_calls import CountedAllocator
from podtide.controller.allocator_outage import AllocatorOutage
from podtide.controller.allocator_term import AllocatorTerm
from podtide.controller.counts import ControllerCounts
from podtide.controller.events import EventRecorder
from podtide.controller.fencing import Check, GuardedAllocator, GuardedWrites
from podtide.controller.machines import machine_of
from podtide.controller.nodes.container_status import own_addresses
from podtide.controller.nodes.foreign_configs import ForeignConfigs
from podtide.controller.nodes.node_reconciler import NodeReconciler
from podtide.controller.nodes.quarantine import QuarantineReconciler
from podtide.controller.nodes.recovery_report import RecoveryReport
from podtide.controller.nodes.request_reconciler import RequestReconciler
from podtide.controller.nodes.retirement import Retirement
from podtide.controller.nodes.sweep import Sweep
from podtide.controller.options import ControllerOptions
from podtide.controller.placement.program import PlacementController
from podtide.controller.repair.repair_loop import RepairLoop
from podtide.controller.slices.program import SliceController
from podtide.controller.subnets.forecasts import SubnetForecasts
from podtide.controller.subnets.known_subnets import KnownSubnets
from podtide.controller.subnets.objects import SubnetObjects
from podtide.controller.subnets.subnet_reconciler import SubnetReconciler
from podtide.controller.term_context import TermContext
from podtide.core.networks.leaks import LeakGrace
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SUBNET_LABEL, SUBNET_V6_LABEL, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.runtime import Runtime

REFUSED = "ControllerRefused"
"""The reason of the Event that the allocator refuses this controller."""
_NODE_WORKERS = 16
_SUBNET_WORKERS = 4


class Leader:
    """The work of one term. A new one is made for each."""

    def __init__(  # noqa: PLR0913 - what it acts on, by which leave, and what it runs in: each a parameter, none global
        self,
        cluster: Cluster,
        allocator: Allocator,
        options: ControllerOptions,
        check: Check,
        *,
        holder: str,
        counts: ControllerCounts,
        runtime: Runtime,
    ) -> None:
        self._options = options
        self._counts = counts
        self._runtime = runtime
        self._node_queue, self._subnet_queue = WorkQueue[str](), WorkQueue[str]()
        self._sweep_queue, self._quarantine_queue = WorkQueue[str](), WorkQueue[str]()
        self._forecast_queue = WorkQueue[str]()

        system = Scope(namespace=SYSTEM_NAMESPACE)
        self._node_cache = Informer(cluster, Node, runtime=runtime)
        self._configs = Informer(cluster, NodeNetworkConfig, system, runtime=runtime)
        # Without ClusterSubnets the kind may not be installed; if it is, existing ones are cleared.
        self._subnet_cache = Informer(
            cluster, ClusterSubnet, system, runtime=runtime, can_do_without=not options.cluster_subnets
        )
        self._states = Informer(cluster, ClusterSubnetState, system, runtime=runtime)

        counted = CountedAllocator(allocator, counts.allocator_calls)
        self._term = AllocatorTerm(cluster, counted, options, holder, runtime)
        self._retirement = Retirement(runtime.clock, lambda: self._sweep_queue.add(options.cluster))
        for cache in (self._node_cache, self._configs, self._subnet_cache, self._states):
            cache.on_list.append(self._term.doubt)

        def check_all() -> None:
            check()
            self._term.check_cluster()

        writes = GuardedWrites(cluster, check_all, counts.writes, [self._configs])
        self._outage = AllocatorOutage(self._node_queue, counts)
        context = TermContext(
            cluster=cluster,
            nodes=self._node_cache,
            configs=self._configs,
            node_queue=self._node_queue,
            writes=writes,
            allocator=GuardedAllocator(counted, check_all, self._term),
            outage=self._outage,
            # Not fenced by the cluster's identity, because Events also report problems with it.
            events=EventRecorder(GuardedWrites(cluster, check, counts.writes), runtime.clock, runtime.log),
            options=options,
            settings=runtime.settings,
            counts=counts,
            clock=runtime.clock,
            log=runtime.log,
        )
        defaults = [name for name in (options.subnet, options.subnet_v6) if name]
        self._subnets = KnownSubnets(self._subnet_queue, defaults)
        self._quarantines = QuarantineReconciler(context, self._quarantine_queue)
        requests = RequestReconciler(context, self._subnets, self._quarantines)
        self._foreign = ForeignConfigs(context.events, runtime.log)
        self._nodes = NodeReconciler(
            context,
            requests,
            quarantines=self._quarantines,
            retirement=self._retirement,
            foreign=self._foreign,
        )
        self._placement = PlacementController(
            context,
            self._node_cache,
            self._configs,
            users=self._subnets.users,
            networks=self._network_rooms,
        )
        objects = SubnetObjects(context, self._subnet_cache, self._states, self._placement.coverage)
        self._forecasts = SubnetForecasts(context, self._subnets, self._forecast_queue)
        self._subnet_reconciler = SubnetReconciler(
            context,
            objects,
            self._subnets,
            forecasts=self._forecasts,
            placement=self._placement,
        )
        self._sweep = Sweep(context, self._nodes, term=self._term, retirement=self._retirement)
        self._report = RecoveryReport(context, self._term, self._sweep_queue)
        self._events = context.events
        self._slices = SliceController(
            writes, self._node_cache, options.networks, counts=counts, runtime=runtime
        )
        if options.placement:
            self._slices.count_rooms(self._placement.queue_networks)
        self._repair = RepairLoop(
            writes,
            self._node_cache,
            options.networks,
            patience=LeakGrace(
                leak_grace_seconds=runtime.settings.leak_grace_seconds,
                quarantine_seconds=runtime.settings.quarantine_seconds,
            ),
            counts=counts.repair,
            runtime=runtime,
        )

    async def run(self) -> NoReturn:
        """Lead until cancelled, or until an invariant is broken."""
        self._node_cache.add_handler(self._on_node)
        self._configs.add_handler(self._on_config)
        self._subnet_cache.add_handler(self._on_subnet)
        self._states.add_handler(self._on_subnet)
        informers: list[Informer[Any]] = [self._node_cache, self._configs, self._states, self._subnet_cache]
        needed = informers if self._options.cluster_subnets else informers[:-1]
        try:
            async with asyncio.TaskGroup() as group:
                for informer in informers:
                    group.create_task(informer.run())
                if self._options.secondary_networks:
                    group.create_task(self._slices.run())
                for informer in needed:
                    await informer.synced.wait()  # until then, absence means nothing
                self._counts.leading = True
                if self._options.secondary_networks:
                    group.create_task(self._repair.run())
                group.create_task(self._report_refusals())
                await self._term.open()
                group.create_task(self._term.keep())
                group.create_task(Workers(self._term.reports, runtime=self._runtime).run(self._report.run))
                self._sweep_queue.add(self._options.cluster)
                group.create_task(Workers(self._sweep_queue, runtime=self._runtime).run(self._sweep_cluster))
                group.create_task(
                    Workers(self._quarantine_queue, runtime=self._runtime).run(self._quarantines.reconcile)
                )
                group.create_task(
                    Workers(self._node_queue, runtime=self._runtime).run(self._reconcile, count=_NODE_WORKERS)
                )
                group.create_task(
                    Workers(self._subnet_queue, runtime=self._runtime).run(
                        self._subnet_reconciler.reconcile, count=_SUBNET_WORKERS
                    )
                )
                group.create_task(
                    Workers(self._forecast_queue, runtime=self._runtime).run(self._forecasts.reconcile)
                )
                if self._placement.is_enabled:
                    group.create_task(self._placement.run(self._runtime))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self._counts.leading = False
            self._outage.end()
            await self._term.close()
        raise AssertionError("work queues ended without being stopped")

    async def _sweep_cluster(self, cluster: str) -> float | None:
        await self._term.recognised.wait()
        await self._quarantines.find(cluster)
        return await self._sweep.run(cluster)

    async def _reconcile(self, name: str) -> float | None:
        await self._term.recognised.wait()
        try:
            return await self._nodes.reconcile(name)
        finally:
            self._counts.owed_nodes = self._subnets.owed_nodes

    async def _report_refusals(self) -> NoReturn:
        """Write an Event when the allocator starts to refuse this controller, and queue everything when it stops."""
        while True:
            await self._term.news.wait()
            self._term.news.clear()
            objection = self._term.objection
            self._counts.refused = bool(objection)
            if objection:
                place = ObjectMeta(name="podtide-controller", namespace=SYSTEM_NAMESPACE)
                await self._events.record(Lease(metadata=place), REFUSED, objection, warning=True)
            else:
                self._queue_every_node()
                self._sweep_queue.add(self._options.cluster)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self._placement.note_node(old, new)
        if new is None:
            assert old is not None
            self._nodes.suspect(old.metadata.name, old.metadata.uid)
            if (
                not self._node_cache.is_listing
            ):  # a Node that only a new list lacks was not watched to be deleted
                self._quarantines.note_watched_deletion(old)
                self._retirement.note_watched_deletion(old.metadata.uid)
            self._node_queue.add(old.metadata.name)
            return
        self._retirement.note_present(new.metadata.uid)
        if old is None or _what_matters(old) != _what_matters(new):
            self._node_queue.add(new.metadata.name)
            self._quarantines.node_changed(new.metadata.name)

    def _on_config(self, old: NodeNetworkConfig | None, new: NodeNetworkConfig | None) -> None:
        if new is not None:
            self._term.see(new)
        self._node_queue.add(_name(old, new))
        self._placement.queue(_name(old, new))
        if self._foreign.note(_name(old, new), new):
            self._queue_every_node()

    def _network_rooms(self, node: str) -> Mapping[str, int] | None:
        return self._slices.rooms(node) if self._options.secondary_networks else {}

    def _queue_every_node(self) -> None:
        for node in self._node_cache.items():
            self._node_queue.add(node.metadata.name)

    def _on_subnet(self, old: Resource | None, new: Resource | None) -> None:
        if self._subnets.is_used(name := _name(old, new)):
            self._subnet_queue.add(name)


def _name(old: Resource | None, new: Resource | None) -> str:
    known = new or old
    assert known is not None
    return known.metadata.name


def _what_matters(node: Node) -> tuple[object, ...]:
    """The parts of a Node that anything here depends on: kubelets write the others every few seconds."""
    labels = node.metadata.labels
    return labels.get(SUBNET_LABEL), labels.get(SUBNET_V6_LABEL), own_addresses(node), machine_of(node)
