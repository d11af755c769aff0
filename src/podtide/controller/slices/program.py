"""The slices controller: its caches, its work queues, and which event queues which network.

    Nodes                         → all networks
    NetworkAttachmentDefinitions  → the networks that it described and describes
    NodeSlicePools, IPPools       → their network
    IPPools of no network         → themselves

How soon a network is reconciled after an event is `RequeueDelay`'s to say. Nodes come by the thousand, and each
concerns every network, so events are gathered for a moment, and nodes that come together share one write of the
NodeSlicePool. That is one object, whose format is not ours to change (design W12): with 5,000 entries it is a third of
a megabyte, for the API server, its database and every watch of it, whether one node came or a hundred. So the longer a
list is, the longer it rests after a reconcile. A node that comes to a quiet network does not wait for that; where nodes
come and go all the time, more of them share a write, and the bytes per second have a bound that the size of the cluster
does not move.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import R
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.controller.counts import ControllerCounts
from podtide.controller.events import EventRecorder
from podtide.controller.fencing import GuardedWrites
from podtide.controller.options import NetworkOptions
from podtide.controller.slices.attachments import AttachmentIndex, DefinitionEvents, parsed
from podtide.controller.slices.network_reconciler import NetworkReconciler
from podtide.controller.slices.node_pools import NodePoolIndex, is_marked_gone, named_network
from podtide.controller.slices.slice_pools import OtherNetworks
from podtide.controller.slices.slice_removal import UnclaimedPools
from podtide.controller.slices.slice_rooms import SliceRooms
from podtide.controller.slices.survey import SliceContext
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.clock import Clock
from podtide.runtime.runtime import Runtime

_WORKERS = 4
GATHER_SECONDS = 0.5
"""How long events of a network are gathered before it is reconciled."""
ENTRIES_A_SECOND = 1_000
"""How many entries of a list cost one second of rest.

An entry is about 65 bytes, so events cause writes of about 65 kB/s.
"""


class RequeueDelay:
    """Remembers until when each network rests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rested_at: dict[str, float] = {}

    def note_reconcile(self, network: str, entries: int) -> None:
        """Note that the network, whose lists have so many entries, is reconciled now.

        It is noted at the start, because the events that a reconcile causes arrive while it runs.
        """
        if entries:
            self._rested_at[network] = self._clock.monotonic() + entries / ENTRIES_A_SECOND
        else:
            self._rested_at.pop(network, None)

    def seconds_until_due(self, network: str) -> float:
        """How many seconds after an event now the network is to be reconciled."""
        rest = self._rested_at.get(network, 0.0) - self._clock.monotonic()
        return max(GATHER_SECONDS, rest)


class SliceController:
    """Assigns slices of secondary networks to nodes, for one term.

    It may be cancelled at any await: every write is idempotent.
    """

    def __init__(
        self,
        writes: GuardedWrites,
        nodes: Informer[Node],
        options: NetworkOptions,
        *,
        counts: ControllerCounts,
        runtime: Runtime,
    ) -> None:
        """`nodes` is a cache that the caller keeps up to date."""
        self._cluster = writes.cluster
        self._runtime = runtime
        self._nodes = nodes
        namespace, naming = options.namespace, options.naming
        scope = Scope(namespace=namespace)
        self._definitions = self._informer(NetworkAttachmentDefinition, Scope())
        self._slice_pools = self._informer(NodeSlicePool, scope)
        self._pool_cache = self._informer(IPPool, scope)
        self._queue, self._unreadable_queue = WorkQueue[str](), WorkQueue[Key]()
        self._pool_queue = WorkQueue[str]()

        self._attachments = AttachmentIndex()
        self._node_pools = NodePoolIndex(self._pool_cache, namespace, naming)
        self._other_networks = OtherNetworks(
            self._slice_pools, self._node_pools, self._attachments.network_names
        )
        context = SliceContext(
            cluster=writes.cluster,
            writes=writes,
            events=EventRecorder(writes, runtime.clock, runtime.log),
            attachments=self._attachments,
            nodes=self._nodes,
            slice_pools=self._slice_pools,
            node_pools=self._node_pools,
            other_networks=self._other_networks,
            namespace=namespace,
            naming=naming,
            quarantine_seconds=runtime.settings.quarantine_seconds,
            counts=counts,
            clock=runtime.clock,
            log=runtime.log,
        )
        self._definition_events = DefinitionEvents(context.events)
        self._networks = NetworkReconciler(context, self._definition_events)
        self._delay = RequeueDelay(runtime.clock)
        self._unclaimed = UnclaimedPools(context)
        self._rooms: SliceRooms | None = None

    def count_rooms(self, changed: Callable[[str], None]) -> None:
        """Count `rooms`, and call `changed` with every node of which they may have changed. Before `run`."""
        self._rooms = SliceRooms(self._nodes, self._node_pools, changed)

    def rooms(self, node: str) -> dict[str, int] | None:
        """How many pods of a node could have an address of each network, by resource; None while that is not known."""
        return self._rooms.of_node(node) if self._rooms else None

    async def run(self) -> NoReturn:
        """Run until cancelled, or until an invariant is broken."""
        self._nodes.add_handler(self._on_node)
        self._definitions.add_handler(self._on_definition)
        self._slice_pools.add_handler(self._on_slice_pool)
        self._pool_cache.add_handler(self._on_pool)
        for cache in (self._slice_pools, self._pool_cache):
            cache.on_watch.append(self._on_watch)
        own: list[Informer[Any]] = [self._definitions, self._slice_pools, self._pool_cache]
        try:
            async with asyncio.TaskGroup() as group:
                for informer in own:
                    group.create_task(informer.run())
                for informer in (*own, self._nodes):
                    await informer.synced.wait()  # until then, absence means nothing
                if self._rooms:
                    self._rooms.note_complete()
                group.create_task(self._workers(self._unreadable_queue).run(self._warn_unreadable))
                group.create_task(self._workers(self._queue).run(self._reconcile, count=_WORKERS))
                group.create_task(self._workers(self._pool_queue).run(self._unclaimed.reconcile))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        raise AssertionError("work queues ended without being stopped")

    async def _reconcile(self, network: str) -> float | None:
        self._delay.note_reconcile(network, self._entries(network))
        return await self._networks.reconcile(network)

    def _entries(self, network: str) -> int:
        """The number of entries in the network's NodeSlicePools, over all its ranges."""
        return sum(
            len(pool.status.allocations)
            for pool in self._slice_pools.items()
            if pool.status and self._networks.key_of(pool.metadata.name) == network
        )

    async def _warn_unreadable(self, key: Key) -> None:
        """Write an Event on a definition that cannot be read."""
        attachment = self._attachments.get(key)
        if attachment is not None and attachment.complaint:
            await self._definition_events.warn(attachment.definition, "InvalidConfig", attachment.complaint)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None:  # kubelets write the rest every few seconds
            self._queue_soon(*self._attachments.networks())

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
            self._unreadable_queue.add(key)
        after = self._attachments.get(key)
        networks = [each.network.key for each in (before, after) if each and each.network]
        self._note_rooms(*networks)
        self._queue_soon(*networks)
        if before and before.complaint:  # while it could not be read, nothing was given up
            self._queue_soon(*(self._networks.key_of(name) for name in self._known_slice_pools()))

    def _on_slice_pool(self, old: NodeSlicePool | None, new: NodeSlicePool | None) -> None:
        known = new or old
        assert known is not None
        self._other_networks.note()
        network = self._networks.key_of(known.metadata.name)
        self._note_rooms(network)
        self._queue_soon(network)

    def _on_pool(self, old: IPPool | None, new: IPPool | None) -> None:
        """Queue the networks that a change of an IPPool concerns.

        Agents write pools all the time; few of these writes matter here.
        """
        self._node_pools.note(old, new)
        if self._rooms:
            self._rooms.note_pool(old, new)
        if self._matters(old, new):
            self._queue_soon(*(key for pool in (old, new) if pool for key in self._keys_of(pool)))
        if new is None:
            self._queue_soon(*self._networks.waiting)
        elif self._unclaimed.looks_unclaimed(new):
            self._pool_queue.add_after(new.metadata.name, GATHER_SECONDS)

    def _on_watch(self) -> None:
        """Queue every network when a watch was reopened.

        The server may have gone back to before a write that the caches had not seen yet, and no event would tell.
        """
        self._queue_soon(*self._attachments.networks())

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
        """The key of the pool's network: the one it names, or the one that uses or used it for a whole range."""
        named = named_network(pool)
        key = self._networks.key_of(named) if named else self._attachments.classic_network(pool.metadata.name)
        return [key] if key is not None else []

    def _note_rooms(self, *networks: str) -> None:
        if self._rooms:
            for key in networks:
                self._rooms.note_network(key, self._networks.sliced_ranges(key))

    def _known_slice_pools(self) -> list[str]:
        return [*(each.metadata.name for each in self._slice_pools.items()), *self._node_pools.networks()]

    def _queue_soon(self, *networks: str) -> None:
        for key in networks:
            self._queue.add_after(key, self._delay.seconds_until_due(key))

    def _informer(self, kind: type[R], scope: Scope) -> Informer[R]:
        return Informer(self._cluster, kind, scope, runtime=self._runtime, can_do_without=True)

    def _workers(self, queue: WorkQueue[Any]) -> Workers[Any]:
        return Workers(queue, runtime=self._runtime)
