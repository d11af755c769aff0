"""A node's own IPPool of a slice: what is written on it, and what that says. Decides only."""

from collections.abc import Mapping
from contextlib import suppress

from msgspec import structs

from podtide.controller.machines import machine_of
from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.core.networks.slice_custody import Custody
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPNetwork
from podtide.networks.confirmation import is_confirmed, is_inert
from podtide.networks.ownership import pool_range
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.metadata_keys import (
    MACHINE_ANNOTATION,
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    NODE_GONE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
)
from podtide.resources.node import Node
from podtide.resources.timestamps import InvalidTimestamp, to_micro_time, to_wall_seconds


def new_pool(place: ObjectMeta, slice_: IPNetwork, marks: Mapping[str, str]) -> IPPool:
    """An empty pool of a slice, inert until it is `bound`."""
    place = structs.replace(place, annotations=dict(marks))
    return IPPool(metadata=place, spec=IPPoolSpec(range=str(slice_), allocations={}))


def ownership(node_slice_pool: str, node: Node) -> dict[str, str]:
    """The annotations of a pool that is a node's."""
    machine = machine_of(node)
    stated = {MACHINE_ANNOTATION: " ".join(structs.astuple(machine))} if machine.is_known else {}
    return _named(node_slice_pool, node.metadata.name, node.metadata.uid) | stated


def bound(pool: IPPool, marks: Mapping[str, str]) -> IPPool:
    """The pool as the node's whose ownership this is, confirmed, and in no quarantine."""
    former = {NODE_GONE_ANNOTATION, MACHINE_ANNOTATION}
    kept = {name: text for name, text in pool.metadata.annotations.items() if name not in former}
    return _annotated(pool, kept | dict(marks) | {POOL_UID_ANNOTATION: pool.metadata.uid})


def marked_gone(pool: IPPool, node_slice_pool: str, node: str, now: float) -> IPPool:
    """The pool as one whose Node was found to be gone now."""
    known = pool.metadata.annotations
    marks = _named(node_slice_pool, node, known.get(NODE_UID_ANNOTATION, ""))
    return _annotated(pool, known | marks | {NODE_GONE_ANNOTATION: to_micro_time(now)})


def custody_of(pool: IPPool) -> Custody:
    """What the pool says of its Node."""
    known = pool.metadata.annotations
    gone_since = None
    with suppress(InvalidTimestamp):  # somebody's hand: the quarantine begins again
        gone_since = to_wall_seconds(known.get(NODE_GONE_ANNOTATION, ""))
    return Custody(
        owner_uid=known.get(NODE_UID_ANNOTATION, ""),
        gone_since=gone_since,
        in_use=bool(pool.spec.allocations),
        is_confirmed=is_confirmed(pool),
        is_inert=is_inert(pool),
        machine=_machine_in(known),
    )


def is_marked_gone(pool: IPPool) -> bool:
    """Whether its slice is in quarantine, or was and waits to be freed."""
    return NODE_GONE_ANNOTATION in pool.metadata.annotations


def belongs(pool: IPPool, node_slice_pool: str, assignment: SliceAssignment) -> bool:
    """Whether this pool is of that slice and node, as far as it says: names of pools can collide."""
    known = pool.metadata.annotations
    return (
        known.get(NETWORK_ANNOTATION, node_slice_pool) == node_slice_pool
        and known.get(NODE_ANNOTATION, assignment.node) == assignment.node
        and pool_range(pool) == assignment.slice
    )


def _annotated(pool: IPPool, annotations: dict[str, str]) -> IPPool:
    return structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=annotations))


def _named(node_slice_pool: str, node: str, node_uid: str) -> dict[str, str]:
    return {NODE_ANNOTATION: node, NODE_UID_ANNOTATION: node_uid, NETWORK_ANNOTATION: node_slice_pool}


def _machine_in(annotations: Mapping[str, str]) -> MachineIdentity:
    """The machine that the annotation states; none that could be recognised where somebody's hand was on it."""
    ids = annotations.get(MACHINE_ANNOTATION, "").split()
    return MachineIdentity(*ids) if len(ids) == len(structs.fields(MachineIdentity)) else UNKNOWN_MACHINE
