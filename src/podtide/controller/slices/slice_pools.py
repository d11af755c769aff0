"""NodeSlicePools: what is written on one and when that is worth a write, and what the lists of other networks contain.

A NodeSlicePool has no status subresource, so its generation grows with every write of ours: a condition that says the
same as before is left as it was, observedGeneration included, or each write would cause the next.

All unnamed networks share one scope of addresses, and their ranges may overlap (10.0.0.0/16 and 10.0.0.0/17). Each has
its own list and its own worker, and no write covers two lists. So after a worker has written a slice into its list, it
reads the others before it confirms the slice's pool, and confirms only what is in no other (`OtherNetworks`). Of two
workers, or two controllers, that write the same slice at one moment, the second to write sees the entry of the first.
Both may see each other; then the list whose name sorts first keeps the slice.

Reading the others means waiting until the cache shows the list as it was written: the server sends the events of all
lists in one order, so by then the cache shows whatever was written into any of them before.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from msgspec import Struct, structs

from podtide.cluster.informer import Informer
from podtide.cluster.port import Conflict
from podtide.controller.slices.node_pools import NodePoolIndex, scope_of
from podtide.core.errors import InvalidInput, InvalidRange
from podtide.core.networks.slice_list import listing
from podtide.core.networks.slices import SliceAssignment, Slicing, parse_slice_size
from podtide.core.ranges import IPNetwork, overlap, parse_network, parse_range
from podtide.networks.confirmation import is_inert
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import pool_range
from podtide.resources.base import ObjectMeta
from podtide.resources.conditions import Condition, ConditionStatus, with_condition
from podtide.resources.metadata_keys import CONFIRMED_ANNOTATION, NETWORK_ANNOTATION, NODE_ANNOTATION
from podtide.resources.names import normalise_range
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.timestamps import to_micro_time

LARGEST_TOTAL = 2**53
"""The largest integer that every reader of JSON represents exactly."""
SERVED = "Served"
ACCEPTED = "Accepted"
PATIENCE_SECONDS = 10.0
"""How long to wait for the event of our own write before the network is reconciled again."""


class ConditionFinding(Struct, frozen=True, kw_only=True):
    """What a condition of a NodeSlicePool is to say."""

    type: str
    holds: bool
    reason: str
    message: str


def network_key(pool: NodeSlicePool) -> str:
    """The key of its network: the annotation, else its name, which is the key for a network's first range."""
    return pool.metadata.annotations.get(NETWORK_ANNOTATION, "") or pool.metadata.name


def slicing_of(pool: NodeSlicePool) -> Slicing | None:
    """How it cuts its range; None if that cannot be parsed."""
    try:
        addresses = parse_range(pool.spec.range).range
        return Slicing(addresses, parse_slice_size(pool.spec.slice_size, addresses))
    except InvalidInput:
        return None


def described(pool: NodeSlicePool) -> NetworkRange | None:
    """The range of a network that a NodeSlicePool was made for, as far as it tells; None if it cannot be parsed."""
    slicing, key = slicing_of(pool), network_key(pool)
    if slicing is None:
        return None
    name = "" if _is_range(key) else key
    return NetworkRange(
        network_name=name,
        configuration_name=pool.metadata.name,
        addresses=slicing.range,
        slice_size=slicing.prefix_length,
        further=pool.metadata.name not in {name, normalise_range(str(slicing.range))},
    )


def same_cut(one: Slicing, other: Slicing) -> bool:
    """Whether both cut the same network into slices of the same size; excluded addresses are not compared."""
    return (one.range.network, one.prefix_length) == (other.range.network, other.prefix_length)


def written(
    before: NodeSlicePool | None,
    place: ObjectMeta,
    slicing: Slicing,
    assignments: Sequence[SliceAssignment],
    conditions: list[Condition],
) -> NodeSlicePool:
    """The NodeSlicePool that lists these assignments.

    Owner references that Whereabouts wrote are removed: with the first NetworkAttachmentDefinition that is deleted, the
    garbage collector would delete the list that all of them share.
    """
    spec = NodeSlicePoolSpec(range=str(slicing.range), slice_size=f"/{slicing.prefix_length}")
    if before is not None:
        place = structs.replace(
            before.metadata,
            annotations=before.metadata.annotations | place.annotations,
            owner_references=[],
        )
        in_force = slicing_of(before)
        if in_force is not None and same_cut(in_force, slicing):
            spec = before.spec  # `24` stays `24`
    status = NodeSlicePoolStatus(
        allocations=[
            NodeSliceAllocation(node_name=each.node, slice_range=each.slice)
            for each in listing(slicing, assignments)
        ],
        assigned=len(assignments),
        total=min(slicing.count, LARGEST_TOTAL),
        conditions=conditions,
    )
    if before is None:
        return NodeSlicePool(metadata=place, spec=spec, status=status)
    return structs.replace(before, metadata=place, spec=spec, status=status)


def confirmed(pool: NodeSlicePool, now: float) -> NodeSlicePool:
    """The same list with a new annotation, so that every write based on the present resourceVersion fails.

    The annotation contains the resourceVersion, so that it differs from the present one even if the clock stood still:
    a write that changes nothing makes no new version.
    """
    marks = pool.metadata.annotations | {
        CONFIRMED_ANNOTATION: f"{to_micro_time(now)} after {pool.metadata.resource_version}"
    }
    return structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=marks))


def conditions_after(
    pool: NodeSlicePool | None, findings: Iterable[ConditionFinding], now: str
) -> list[Condition]:
    """The conditions of the pool with these findings. A good one is added only where the condition was there before."""
    before = pool.status.conditions if pool and pool.status else []
    generation = pool.metadata.generation if pool else 0
    after = before
    for finding in findings:
        old = next((each for each in before if each.type == finding.type), None)
        if old is None and finding.holds:
            continue
        if old is not None and (old.reason, old.message) == (finding.reason, finding.message):
            continue
        after = with_condition(
            after,
            Condition(
                type=finding.type,
                status=ConditionStatus.TRUE if finding.holds else ConditionStatus.FALSE,
                last_transition_time=now,
                reason=finding.reason,
                message=finding.message,
                observed_generation=generation,
            ),
        )
    return after


def news(pool: NodeSlicePool | None, findings: Iterable[ConditionFinding]) -> list[ConditionFinding]:
    """The findings whose reason differs from that of the pool's condition: each is worth an Event."""
    before = pool.status.conditions if pool and pool.status else []
    reasons = {each.type: each.reason for each in before}
    return [
        each
        for each in findings
        if reasons.get(each.type) != each.reason and (not each.holds or each.type in reasons)
    ]


def served(
    slicing: Slicing, assigned: int, waiting: Sequence[str], nodes: int, *, has_room: bool
) -> ConditionFinding:
    """The condition `Served`: whether every node has a slice."""
    if not waiting:
        return ConditionFinding(type=SERVED, holds=True, reason="EveryNode", message="every node has a slice")
    who = f"{len(waiting)} of {nodes} nodes wait for a slice of {slicing.range}, {waiting[0]} first: "
    if not has_room:
        return ConditionFinding(
            type=SERVED,
            holds=False,
            reason="ObjectTooLarge",
            message=f"{who}a NodeSlicePool is limited to 1.5 MB and cannot list more than the {assigned} that are assigned; "
            "use a second network for the other nodes",
        )
    return ConditionFinding(
        type=SERVED,
        holds=False,
        reason="NoSliceFree",
        message=f"{who}of its {slicing.count} slices of /{slicing.prefix_length}, {assigned} are assigned and "
        f"{slicing.count - assigned} cannot be (other pools overlap them, or excludes leave nothing in them); "
        "widen the range, make slices smaller, or remove nodes",
    )


def accepted(complaint: str, reason: str) -> ConditionFinding:
    """The condition `Accepted`: whether the range is cut as its definitions state; `complaint` says why not."""
    if complaint:
        return ConditionFinding(type=ACCEPTED, holds=False, reason=reason, message=complaint)
    return ConditionFinding(
        type=ACCEPTED, holds=True, reason="AsStated", message="the range is cut as it is stated"
    )


def _is_range(key: str) -> bool:
    """Whether a network's key is that of an unnamed network: its range, written as part of a name."""
    address, _, length = key.rpartition("-")
    try:
        parse_network(f"{address.replace('-', ':')}/{length}")
    except InvalidInput:
        return False
    return True


class OtherNetworks:
    """Reads the lists of other networks from the cache of NodeSlicePools."""

    def __init__(
        self,
        cache: Informer[NodeSlicePool],
        node_pools: NodePoolIndex,
        network_names: Callable[[], AbstractSet[str]],
    ) -> None:
        self._cache = cache
        self._node_pools = node_pools
        self._network_names = network_names
        self._news = asyncio.Event()

    def note(self) -> None:
        """Wake up those who wait for the cache to change."""
        self._news.set()

    async def wait_until_shown(self, written: NodeSlicePool) -> None:
        """Wait until the cache shows this list as it was written; Conflict if it does not."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._show(written):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise Conflict(
                f"NodeSlicePool {written.key} was written, but the cache does not show the write yet: reconcile again"
            ) from None

    def slices(self, name: str, of: NetworkRange) -> list[IPNetwork]:
        """The slices within this range that other lists have assigned."""
        return [each.slice for other in self._overlapping(name, of) for each in _entries(other)]

    def yielded(self, name: str, of: NetworkRange) -> list[IPNetwork]:
        """The slices that this list has to leave to others: in use there, or of a list whose name sorts first."""
        found = []
        for other in self._overlapping(name, of):
            usable = self._usable(other.metadata.name)
            found += [each.slice for each in _entries(other) if other.metadata.name < name or each in usable]
        return found

    def _show(self, written: NodeSlicePool) -> bool:
        copy = self._cache.get(written.key)
        return copy is not None and copy.metadata.resource_version == written.metadata.resource_version

    def _overlapping(self, name: str, of: NetworkRange) -> Iterator[NodeSlicePool]:
        names = self._network_names()
        for each in self._cache.items():
            other = each.metadata.name
            if other == name or scope_of(other, names) != of.network_name:
                continue
            range_ = pool_range(each)
            if range_ is not None and overlap(range_, of.addresses.network) is not None:
                yield each

    def _usable(self, name: str) -> set[SliceAssignment]:
        """The slices of a list whose pools agents may use."""
        return {
            SliceAssignment(pool.metadata.annotations.get(NODE_ANNOTATION, ""), slice_)
            for pool, slice_ in self._node_pools.of(name)
            if slice_ is not None and not is_inert(pool)
        }


def _entries(pool: NodeSlicePool) -> Iterator[SliceAssignment]:
    for entry in pool.status.allocations if pool.status else ():
        if entry.node_name:
            with suppress(InvalidRange):  # an entry that cannot be parsed assigns nothing
                yield SliceAssignment(entry.node_name, parse_network(entry.slice_range))
