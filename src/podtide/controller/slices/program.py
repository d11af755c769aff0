"""The slices controller: copies of what it reads, a queue of networks, and who works it off.

    Nodes                         → all networks
    NetworkAttachmentDefinitions  → the networks it described and describes
    NodeSlicePools, IPPools       → their network
    IPPools of no network         → themselves

Nodes come by the thousand, and each concerns every network. So what happens is gathered, and a network's list of slices
is written once for all nodes that came meanwhile (`pacing`).
"""

import asyncio
from random import Random
from typing import Any, NoReturn

from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster, R
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.controller.counts import ControllerCounts
from podtide.controller.events import EventRecorder
from podtide.controller.fencing import Check, GuardedWrites, unguarded
from podtide.controller.slices.attachments import AttachmentIndex, parsed
from podtide.controller.slices.context import SliceContext
from podtide.controller.slices.definition_events import DefinitionEvents
from podtide.controller.slices.network_reconciler import NetworkReconciler
from podtide.controller.slices.node_pool_index import NodePoolIndex, named_network
from podtide.controller.slices.node_pool_object import is_marked_gone
from podtide.controller.slices.other_networks import OtherNetworks
from podtide.controller.slices.requeue_delay import GATHER_SECONDS, RequeueDelay
from podtide.controller.slices.unclaimed_pools import UnclaimedPools
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.names import Naming
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.settings import Settings

_WORKERS = 4


class SliceController:
    """Gives nodes their slices of secondary networks, for one term. It can be cancelled at any await, and loses nothing by it."""

    def __init__(  # noqa: PLR0913 - what it acts on, by which leave, and what it runs in: each a parameter, none global
        self,
        cluster: Cluster,
        *,
        settings: Settings,
        clock: Clock,
        randomness: Random,
        log: Logger,
        check: Check = unguarded,
        counts: ControllerCounts | None = None,
        nodes: Informer[Node] | None = None,
        namespace: str = SYSTEM_NAMESPACE,
        naming: Naming = Naming.PODTIDE,
    ) -> None:
        """`nodes` are copies that somebody else keeps up to date; without them it keeps its own."""
        self._cluster = cluster
        self._clock = clock
        self._randomness = randomness
        self._log = log
        self.metrics = counts or ControllerCounts()
        scope = Scope(namespace=namespace)
        self._keeps_nodes = nodes is None
        self._nodes = nodes or self._informer(Node, Scope())
        self._definitions = self._informer(NetworkAttachmentDefinition, Scope())
        self._slice_pools = self._informer(NodeSlicePool, scope)
        self._pool_cache = self._informer(IPPool, scope)
        self._queue, self._unread = WorkQueue[str](), WorkQueue[Key]()
        self._pool_queue = WorkQueue[str]()

        writes = GuardedWrites(cluster, check, self.metrics.writes)
        self._attachments = AttachmentIndex()
        self._node_pools = NodePoolIndex(self._pool_cache, namespace, naming)
        self._other_networks = OtherNetworks(self._slice_pools, self._node_pools, self._attachments)
        context = SliceContext(
            cluster=cluster,
            writes=writes,
            events=EventRecorder(writes, clock, log),
            attachments=self._attachments,
            nodes=self._nodes,
            slice_pools=self._slice_pools,
            node_pools=self._node_pools,
            other_networks=self._other_networks,
            namespace=namespace,
            naming=naming,
            quarantine_seconds=settings.quarantine_seconds,
            counts=self.metrics,
            clock=clock,
            log=log,
        )
        self._definition_events = DefinitionEvents(context.events)
        self._networks = NetworkReconciler(context, self._definition_events)
        self._delay = RequeueDelay(clock)
        self._unclaimed = UnclaimedPools(context)

    async def run(self) -> NoReturn:
        """Work until cancelled, or until an invariant is broken."""
        self._nodes.add_handler(self._on_node)
        self._definitions.add_handler(self._on_definition)
        self._slice_pools.add_handler(self._on_slice_pool)
        self._pool_cache.add_handler(self._on_pool)
        for cache in (self._slice_pools, self._pool_cache):
            cache.on_watch.append(self._on_watch)
        own: list[Informer[Any]] = [self._definitions, self._slice_pools, self._pool_cache]
        if self._keeps_nodes:
            own.append(self._nodes)
        try:
            async with asyncio.TaskGroup() as group:
                for informer in own:
                    group.create_task(informer.run())
                for informer in (*own, self._nodes):
                    await informer.synced.wait()  # until then, absence means nothing
                group.create_task(self._workers(self._unread).run(self._complain))
                group.create_task(self._workers(self._queue).run(self._reconcile, count=_WORKERS))
                group.create_task(self._workers(self._pool_queue).run(self._unclaimed.reconcile))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        raise AssertionError("queues that nobody stops have no end")

    async def _reconcile(self, network: str) -> float | None:
        self._delay.begin_look(network, self._entries(network))
        return await self._networks.reconcile(network)

    def _entries(self, network: str) -> int:
        """How long the lists of a network's slices are, all its ranges together."""
        return sum(
            len(pool.status.allocations)
            for pool in self._slice_pools.items()
            if pool.status and self._networks.key_of(pool.metadata.name) == network
        )

    async def _complain(self, key: Key) -> None:
        """Say what is wrong with a definition."""
        attachment = self._attachments.get(key)
        if attachment is not None and attachment.complaint:
            await self._definition_events.say(attachment.definition, "InvalidConfig", attachment.complaint)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None:  # kubelets write the rest every few seconds
            self._look_soon(*self._attachments.networks())

    def _on_definition(
        self, old: NetworkAttachmentDefinition | None, new: NetworkAttachmentDefinition | None
    ) -> None:
        known = new or old
        assert known is not None
        key = known.key
        before = self._attachments.get(key)
        if new is None:
            self._attachments.drop(key)
            self._definition_events.forget(key)
        else:
            self._attachments.put(parsed(new))
            self._unread.add(key)
        after = self._attachments.get(key)
        self._look_soon(*(each.network.key for each in (before, after) if each and each.network))
        if before and before.complaint:  # while it could not be read, nothing was given up
            self._look_soon(*(self._networks.key_of(name) for name in self._known_slice_pools()))

    def _on_slice_pool(self, old: NodeSlicePool | None, new: NodeSlicePool | None) -> None:
        known = new or old
        assert known is not None
        self._other_networks.note()
        self._look_soon(self._networks.key_of(known.metadata.name))

    def _on_pool(self, old: IPPool | None, new: IPPool | None) -> None:
        """Agents write pools all the time; few of their writes matter here."""
        self._node_pools.note(old, new)
        if self._matters(old, new):
            self._look_soon(*(key for pool in (old, new) if pool for key in self._keys_of(pool)))
        if new is None:
            self._look_soon(*self._networks.waiting)
        elif self._unclaimed.may_be(new):
            self._pool_queue.add_after(new.metadata.name, GATHER_SECONDS)

    def _on_watch(self) -> None:
        """The server may have gone back to before a write that the copies had not seen yet, and nothing would tell."""
        self._look_soon(*self._attachments.networks())

    def _matters(self, old: IPPool | None, new: IPPool | None) -> bool:
        if old is None or new is None:
            return True
        if (old.metadata.annotations, old.spec.range) != (new.metadata.annotations, new.spec.range):
            return True
        is_emptied = bool(old.spec.allocations) and not new.spec.allocations
        return is_emptied and (
            is_marked_gone(new) or not self._networks.draining.isdisjoint(self._keys_of(new))
        )

    def _keys_of(self, pool: IPPool) -> list[str]:
        """The network a pool is of: the one it names, or the one that uses or used it as a whole."""
        named = named_network(pool)
        key = self._networks.key_of(named) if named else self._attachments.classic_network(pool.metadata.name)
        return [key] if key is not None else []

    def _known_slice_pools(self) -> list[str]:
        return [*(each.metadata.name for each in self._slice_pools.items()), *self._node_pools.networks()]

    def _look_soon(self, *networks: str) -> None:
        for key in networks:
            self._queue.add_after(key, self._delay.seconds_until_look(key))

    def _informer(self, kind: type[R], scope: Scope) -> Informer[R]:
        return Informer(
            self._cluster,
            kind,
            scope,
            clock=self._clock,
            randomness=self._randomness,
            log=self._log,
            can_do_without=kind is not Node,
        )

    def _workers(self, queue: WorkQueue[Any]) -> Workers[Any]:
        return Workers(queue, clock=self._clock, randomness=self._randomness, log=self._log)
