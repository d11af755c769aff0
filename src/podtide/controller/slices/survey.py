"""What is there for a range of a network: which slice is whose, by the list and by the pools, and what to do with each.

A NodeSlicePool is the list, but the pools are what counts: each says of itself which node's and which network's it is.
So a list that somebody deleted is put together again from them.

Nobody is taken for gone because a copy lacks him: a Node whose absence would matter is read afresh.
"""

from collections.abc import Container, Iterable
from contextlib import suppress

from msgspec import Struct

from podtide.cluster.port import NotFound
from podtide.controller.machines import machine_of
from podtide.controller.slices.context import SliceContext, side_by_side
from podtide.controller.slices.node_pool_object import custody_of
from podtide.core.errors import InvalidRange
from podtide.core.networks.slice_custody import Custody, Step, is_live, next_step
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPNetwork, parse_network
from podtide.networks.confirmation import is_inert
from podtide.networks.network import NetworkRange
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool


class SliceHolding(Struct, frozen=True, kw_only=True):
    """A node's slice and the pool of it, if it has one."""

    assignment: SliceAssignment
    pool: IPPool | None
    custody: Custody | None
    step: Step
    """What is to be done with the pool; KEEP where there is none."""

    @property
    def is_live(self) -> bool:
        """Whether the slice may be neither freed nor moved."""
        return self.custody is not None and is_live(self.custody, self.step)

    @property
    def is_inert(self) -> bool:
        """Whether its pool was made, and no more."""
        return self.custody is not None and self.custody.is_inert


class RangeSurvey(Struct, frozen=True, kw_only=True):
    """All slices of a range that are somebody's, and all nodes."""

    holdings: dict[SliceAssignment, SliceHolding]
    nodes: dict[str, Node]
    """By name, those that have waited longest first."""
    strays: tuple[IPPool, ...] = ()
    """Inert pools of no slice that is listed, or of one that has its pool: requests to make them came late, or twice."""

    @property
    def live(self) -> frozenset[SliceAssignment]:
        """What may be neither freed nor moved."""
        return frozenset(each.assignment for each in self.holdings.values() if each.is_live)

    @property
    def unused(self) -> frozenset[SliceAssignment]:
        """What nobody can have used yet: it has no pool, or an inert one."""
        return frozenset(
            each.assignment for each in self.holdings.values() if each.pool is None or each.is_inert
        )

    def inert(self, kept: Iterable[SliceAssignment]) -> list[tuple[SliceAssignment, IPPool]]:
        """Which of these have an inert pool that is to be confirmed, and those pools."""
        holdings = (self.holdings[each] for each in kept if self.holdings[each].step is Step.CONFIRM)
        return [(each.assignment, each.pool) for each in holdings if each.pool is not None and each.is_inert]


class RangeSurveyor:
    """Looks."""

    def __init__(self, context: SliceContext) -> None:
        self._context = context

    async def survey(self, name: str, listed: NodeSlicePool | None, of: NetworkRange | None) -> RangeSurvey:
        """What is there for the NodeSlicePool of that name; `of` tells how pools are called that do not say whose they are."""
        nodes = {node.metadata.name: node for node in sorted(self._context.nodes.items(), key=_seniority)}
        pools, strays = self._pools(name, listed, of)
        holdings = {key: self._holding(key, pool, nodes) for key, pool in pools.items()}
        doubtful = [key for key, each in holdings.items() if _is_doubtful(each, nodes)]
        await self._ask_for(nodes, {key.node for key in doubtful})
        holdings |= {key: self._holding(key, pools[key], nodes) for key in doubtful}
        return RangeSurvey(holdings=holdings, nodes=nodes, strays=tuple(strays))

    def _pools(
        self, name: str, listed: NodeSlicePool | None, of: NetworkRange | None
    ) -> tuple[dict[SliceAssignment, IPPool | None], list[IPPool]]:
        """Every assignment that a pool tells of or that is listed, with its pool; and pools that tell of none.

        Nearly all are both, and then the entry's texts are as good as what they stand for: reading thousands of
        addresses would take longer than all the rest.
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
                with suppress(InvalidRange):  # an entry that cannot be read is nobody's
                    assignment = SliceAssignment(entry.node_name, parse_network(entry.slice_range))
                    pool_found = self._context.node_pools.find(of, name, assignment) if of else None
                    found.setdefault(assignment, pool_found)
        return found, strays

    async def _ask_for(self, nodes: dict[str, Node], doubtful: Iterable[str]) -> None:
        """Read Nodes afresh: from now on this is newer than the copy."""

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
            return SliceHolding(assignment=assignment, pool=None, custody=None, step=Step.KEEP)
        custody = custody_of(pool)
        step = self._step(custody, nodes.get(assignment.node))
        return SliceHolding(assignment=assignment, pool=pool, custody=custody, step=step)

    def _step(self, custody: Custody, node: Node | None) -> Step:
        context = self._context
        return next_step(
            custody,
            node.metadata.uid if node else "",
            machine_of(node),
            now=context.clock.wall(),
            quarantine_seconds=context.quarantine_seconds,
        )


def _is_doubtful(holding: SliceHolding, nodes: Container[str]) -> bool:
    """Whether something is to be concluded from a Node's absence, or from another's presence."""
    if holding.pool is None:
        return holding.assignment.node not in nodes
    return holding.step in {Step.MARK, Step.HAND_OVER}


def _seniority(node: Node) -> tuple[str, Key]:
    return node.metadata.creation_timestamp or "", node.key
