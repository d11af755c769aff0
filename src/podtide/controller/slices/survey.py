"""What the reconcilers of slices share: the context of one term, and a survey of the current state of one range.

A NodeSlicePool is the list, but the pools decide: each names its own node and network. So a list that somebody deleted
is rebuilt from them.

Nothing is concluded from absence in a cache. A Node whose absence would matter is confirmed by a fresh GET. So is a
pool that the cache does not show, or shows no more: a slice has one pool, and a stale cache would lead to freeing the
slice while its pool exists, or to creating a second one under the other name that it may have (`find_foreign_pool`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from podtide.cluster.informer import Informer
from podtide.cluster.listing import get_if_there
from podtide.cluster.port import Cluster, ClusterError, Conflict, NotFound, Throttled, Unavailable
from podtide.controller.counts import ControllerCounts
from podtide.controller.events import EventRecorder
from podtide.controller.fencing import GuardedWrites
from podtide.controller.machines import machine_of
from podtide.controller.slices.attachments import AttachmentIndex
from podtide.controller.slices.node_pools import NodePoolIndex, belongs, custody_of, named_network
from podtide.controller.slices.slice_pools import OtherNetworks
from podtide.core.errors import InvalidRange
from podtide.core.networks.slice_custody import Custody, CustodyStep, is_live, next_step
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPNetwork, parse_network
from podtide.networks.confirmation import is_inert
from podtide.networks.network import NetworkRange
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import Naming
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

T = TypeVar("T")
SIDE_BY_SIDE = 16
"""How many calls for one network are in flight at a time."""


class SliceContext(Struct, frozen=True, kw_only=True):
    """What every part of the slices controller is given for one term."""

    cluster: Cluster
    """For fresh reads. Writes go through `writes`."""
    writes: GuardedWrites
    events: EventRecorder
    attachments: AttachmentIndex
    nodes: Informer[Node]
    slice_pools: Informer[NodeSlicePool]
    node_pools: NodePoolIndex
    other_networks: OtherNetworks
    namespace: str
    naming: Naming
    quarantine_seconds: float
    counts: ControllerCounts
    clock: Clock
    log: Logger


async def side_by_side(act: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Call `act` for all items, a few at a time.

    An item that fails does not stop the others, unless the server cannot be reached. The first error is raised at the
    end.
    """
    left = iter(items)
    errors: list[ClusterError] = []

    async def work() -> None:
        for item in left:
            try:
                await act(item)
            except ClusterError as error:
                errors.append(error)
            if any(isinstance(error, Unavailable | Throttled) for error in errors):
                break

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(SIDE_BY_SIDE):
                group.create_task(work())
    except BaseExceptionGroup as broken:
        raise broken.exceptions[0] from None
    if errors:
        raise errors[0]


async def find_foreign_pool(
    context: SliceContext, pool: str, node_slice_pool: str, assignment: SliceAssignment
) -> IPPool | None:
    """The pool that has this name and is not this slice's, by a fresh read; None if the name is free.

    Conflict if it is the slice's own pool, or an inert one of the same network, which has to be removed first.
    """
    found = await get_if_there(context.cluster, IPPool, pool, context.namespace)
    if found is None:
        return None
    if belongs(found, node_slice_pool, assignment):
        raise Conflict(f"IPPool {found.key} exists, but the cache did not show it: reconcile again")
    if is_inert(found) and named_network(found) == node_slice_pool:
        raise Conflict(
            f"IPPool {found.key} was created by a late request and is not removed yet: reconcile again"
        )
    return found


class SliceHolding(Struct, frozen=True, kw_only=True):
    """A node's slice and its pool, if it has one."""

    assignment: SliceAssignment
    pool: IPPool | None
    custody: Custody | None
    step: CustodyStep
    """What is to be done with the pool; KEEP where there is none."""

    @property
    def is_live(self) -> bool:
        """Whether the slice may be neither freed nor moved."""
        return self.custody is not None and is_live(self.custody, self.step)

    @property
    def is_inert(self) -> bool:
        """Whether its pool was created and not confirmed yet."""
        return self.custody is not None and self.custody.is_inert


class RangeSurvey(Struct, frozen=True, kw_only=True):
    """All slices of a range that are assigned, and all nodes."""

    holdings: dict[SliceAssignment, SliceHolding]
    nodes: dict[str, Node]
    """By name, the oldest first."""
    strays: tuple[IPPool, ...] = ()
    """Inert pools of slices that are not listed, or that have another pool: their create request came late, or twice."""

    @property
    def live(self) -> frozenset[SliceAssignment]:
        """The slices that may be neither freed nor moved."""
        return frozenset(each.assignment for each in self.holdings.values() if each.is_live)

    @property
    def unused(self) -> frozenset[SliceAssignment]:
        """The slices that no pod can have used yet: they have no pool, or an inert one."""
        return frozenset(
            each.assignment for each in self.holdings.values() if each.pool is None or each.is_inert
        )

    def inert(self, kept: Iterable[SliceAssignment]) -> list[tuple[SliceAssignment, IPPool]]:
        """Those of these slices whose pool is inert and is to be confirmed, with that pool."""
        holdings = (self.holdings[each] for each in kept if self.holdings[each].step is CustodyStep.CONFIRM)
        return [(each.assignment, each.pool) for each in holdings if each.pool is not None and each.is_inert]


class RangeSurveyor:
    """Surveys ranges."""

    def __init__(self, context: SliceContext) -> None:
        self._context = context

    async def survey(self, name: str, listed: NodeSlicePool | None, of: NetworkRange | None) -> RangeSurvey:
        """The state of the range of that NodeSlicePool; `of` tells how pools without annotations are named."""
        nodes = {node.metadata.name: node for node in sorted(self._context.nodes.items(), key=_seniority)}
        pools, strays = self._pools(name, listed, of)
        holdings = {key: self._holding(key, pool, nodes) for key, pool in pools.items()}
        doubtful = [key for key, each in holdings.items() if _is_doubtful(each, nodes)]
        await self._read_nodes(nodes, {key.node for key in doubtful})
        holdings |= {key: self._holding(key, pools[key], nodes) for key in doubtful}
        return RangeSurvey(holdings=holdings, nodes=nodes, strays=tuple(strays))

    def _pools(
        self, name: str, listed: NodeSlicePool | None, of: NetworkRange | None
    ) -> tuple[dict[SliceAssignment, IPPool | None], list[IPPool]]:
        """Every assignment that is listed or named by a pool, with its pool; and the stray pools.

        Nearly all are both listed and named, and then the texts are compared without parsing them: parsing thousands of
        addresses would take longer than everything else.
        """
        found: dict[SliceAssignment, IPPool | None] = {}
        told: set[tuple[str, str]] = set()
        strays: list[IPPool] = []
        entries = listed.status.allocations if listed and listed.status else ()
        inert: list[tuple[IPPool, IPNetwork]] = []
        for pool, slice_ in self._context.node_pools.of(name):
            node = pool.metadata.annotations.get(NODE_ANNOTATION, "")
            if slice_ is None or not node:
                continue
            if is_inert(pool):
                inert.append((pool, slice_))
                continue
            found[SliceAssignment(node, slice_)] = pool
            told.add((node, pool.spec.range))
        known = {(entry.node_name, entry.slice_range) for entry in entries} if inert else set()
        for pool, slice_ in inert:
            node = pool.metadata.annotations[NODE_ANNOTATION]
            place = node, pool.spec.range
            if place in known and place not in told:
                found[SliceAssignment(node, slice_)] = pool
                told.add(place)
            else:
                strays.append(pool)
        for entry in entries:
            if entry.node_name and (entry.node_name, entry.slice_range) not in told:
                with suppress(InvalidRange):  # an entry that cannot be parsed assigns nothing
                    assignment = SliceAssignment(entry.node_name, parse_network(entry.slice_range))
                    pool_found = self._context.node_pools.find(of, name, assignment) if of else None
                    found.setdefault(assignment, pool_found)
        return found, strays

    async def _read_nodes(self, nodes: dict[str, Node], doubtful: Iterable[str]) -> None:
        """Read these Nodes afresh: the result is newer than the cache."""

        async def ask(name: str) -> None:
            try:
                nodes[name] = await self._context.cluster.get(Node, name)
            except NotFound:
                nodes.pop(name, None)

        await side_by_side(ask, sorted(doubtful))

    def _holding(
        self, assignment: SliceAssignment, pool: IPPool | None, nodes: dict[str, Node]
    ) -> SliceHolding:
        if pool is None:
            return SliceHolding(assignment=assignment, pool=None, custody=None, step=CustodyStep.KEEP)
        custody = custody_of(pool)
        step = self._step(custody, nodes.get(assignment.node))
        return SliceHolding(assignment=assignment, pool=pool, custody=custody, step=step)

    def _step(self, custody: Custody, node: Node | None) -> CustodyStep:
        context = self._context
        return next_step(
            custody,
            node.metadata.uid if node else "",
            machine_of(node),
            now=context.clock.wall(),
            quarantine_seconds=context.quarantine_seconds,
        )


def _is_doubtful(holding: SliceHolding, nodes: Container[str]) -> bool:
    """Whether something would be concluded from the absence of a Node, or from the presence of another one."""
    if holding.pool is None:
        return holding.assignment.node not in nodes
    return holding.step in {CustodyStep.MARK, CustodyStep.HAND_OVER}


def _seniority(node: Node) -> tuple[str, Key]:
    return node.metadata.creation_timestamp or "", node.key
