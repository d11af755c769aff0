"""A NodeSlicePool: what is written on it, and when that is worth a write. Decides only.

It has no status subresource, so its generation grows with every write of ours: a condition that says the same as before
is left as it was, observedGeneration included, or each write would be a reason for the next.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from podtide.core.errors import InvalidInput
from podtide.core.networks.slice_list import listing
from podtide.core.networks.slices import SliceAssignment, Slicing, parse_slice_size
from podtide.core.ranges import IPNetwork, parse_network, parse_range
from podtide.networks.network import NetworkRange
from podtide.resources.base import ObjectMeta
from podtide.resources.conditions import Condition, ConditionStatus, with_condition
from podtide.resources.metadata_keys import CONFIRMED_ANNOTATION, NETWORK_ANNOTATION
from podtide.resources.names import normalise_range
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.timestamps import to_micro_time

LARGEST_TOTAL = 2**53
"""What every reader of JSON can count to."""

SERVED = "Served"
ACCEPTED = "Accepted"


class ConditionFinding(Struct, frozen=True, kw_only=True):
    """What a condition is to say."""

    type: str
    holds: bool
    reason: str
    message: str


def network_key(pool: NodeSlicePool) -> str:
    """The network it is of, by what it says of itself; podtide's own name for a first range is the network's key."""
    return pool.metadata.annotations.get(NETWORK_ANNOTATION, "") or pool.metadata.name


def range_of(pool: NodeSlicePool) -> IPNetwork | None:
    """What it cuts; None when that cannot be read."""
    try:
        return parse_network(pool.spec.range)
    except InvalidInput:
        return None


def slicing_of(pool: NodeSlicePool) -> Slicing | None:
    """How it cuts its range; None when that cannot be read."""
    try:
        addresses = parse_range(pool.spec.range).range
        return Slicing(addresses, parse_slice_size(pool.spec.slice_size, addresses))
    except InvalidInput:
        return None


def described(pool: NodeSlicePool) -> NetworkRange | None:
    """The range of a network that a NodeSlicePool was made for, as far as it tells; None when it cannot be read."""
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
    """Whether both cut the same network alike, whatever of it may be handed out."""
    return (one.range.network, one.prefix_length) == (other.range.network, other.prefix_length)


def written(
    before: NodeSlicePool | None,
    place: ObjectMeta,
    slicing: Slicing,
    assignments: Sequence[SliceAssignment],
    conditions: list[Condition],
) -> NodeSlicePool:
    """The NodeSlicePool that lists these assignments.

    Owners that Whereabouts wrote are struck off: with the first NetworkAttachmentDefinition the garbage collector would take
    the list of all.
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
    """The same list in another version: whatever is still to be written in place of the present one comes too late.

    It differs from the present one whatever the clock says: what changes nothing is no new version.
    """
    marks = pool.metadata.annotations | {
        CONFIRMED_ANNOTATION: f"{to_micro_time(now)} after {pool.metadata.resource_version}"
    }
    return structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=marks))


def conditions_after(
    pool: NodeSlicePool | None, findings: Iterable[ConditionFinding], now: str
) -> list[Condition]:
    """The conditions of the pool with these findings. What holds is said only where it did not hold before."""
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
    """The findings whose reason is another than the pool's condition has: each is worth an Event."""
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
    """Whether every node has a slice."""
    if not waiting:
        return ConditionFinding(type=SERVED, holds=True, reason="EveryNode", message="every node has a slice")
    who = f"{len(waiting)} of {nodes} nodes wait for a slice of {slicing.range}, {waiting[0]} first: "
    if not has_room:
        return ConditionFinding(
            type=SERVED,
            holds=False,
            reason="ObjectTooLarge",
            message=f"{who}an object of 1.5 MB lists no more than the {assigned} that are assigned; "
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
    """Whether the network is cut as its definitions say; a complaint says why not."""
    if complaint:
        return ConditionFinding(type=ACCEPTED, holds=False, reason=reason, message=complaint)
    return ConditionFinding(
        type=ACCEPTED, holds=True, reason="AsStated", message="the range is cut as it is stated"
    )


def _is_range(key: str) -> bool:
    """Whether a network's key is an unnamed one's: its range, as part of a name."""
    address, _, length = key.rpartition("-")
    try:
        parse_network(f"{address.replace('-', ':')}/{length}")
    except InvalidInput:
        return False
    return True
