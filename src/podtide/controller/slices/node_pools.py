"""Nodes' own IPPools: what is written on one and what that means, and an index of all IPPools by network.

The functions are pure. The index exists because a network is reconciled often and must not scan every pool for it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress

from msgspec import structs

from podtide.cluster.informer import Informer
from podtide.controller.machines import machine_of
from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.core.networks.slice_custody import Custody
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import AddressRange, IPNetwork
from podtide.networks.confirmation import is_confirmed, is_inert
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import pool_range
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec, with_allocations
from podtide.resources.metadata_keys import (
    MACHINE_ANNOTATION,
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    NODE_GONE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
)
from podtide.resources.names import InvalidName, Naming
from podtide.resources.node import Node
from podtide.resources.timestamps import InvalidTimestamp, to_micro_time, to_wall_seconds

_NOBODYS = ""
"""The key of pools that name no NodeSlicePool: those for whole ranges, and those that Whereabouts created."""


def new_pool(place: ObjectMeta, slice_: AddressRange, marks: Mapping[str, str]) -> IPPool:
    """An empty pool of a slice, inert until it is `bound`."""
    place = structs.replace(place, annotations=dict(marks))
    pool = IPPool(metadata=place, spec=IPPoolSpec(range=str(slice_), allocations={}))
    return with_allocations(pool, {}, capacity=slice_.capacity)


def ownership(node_slice_pool: str, node: Node) -> dict[str, str]:
    """The annotations of a pool that belongs to a node."""
    machine = machine_of(node)
    stated = {MACHINE_ANNOTATION: " ".join(structs.astuple(machine))} if machine.is_known else {}
    return _named(node_slice_pool, node.metadata.name, node.metadata.uid) | stated


def bound(pool: IPPool, marks: Mapping[str, str]) -> IPPool:
    """The pool with the annotations of its new owner, confirmed, and without any mark of a quarantine."""
    former = {NODE_GONE_ANNOTATION, MACHINE_ANNOTATION}
    kept = {name: text for name, text in pool.metadata.annotations.items() if name not in former}
    return _annotated(pool, kept | dict(marks) | {POOL_UID_ANNOTATION: pool.metadata.uid})


def marked_gone(pool: IPPool, node_slice_pool: str, node: str, now: float) -> IPPool:
    """The pool, marked as one whose Node was found deleted now."""
    known = pool.metadata.annotations
    marks = _named(node_slice_pool, node, known.get(NODE_UID_ANNOTATION, ""))
    return _annotated(pool, known | marks | {NODE_GONE_ANNOTATION: to_micro_time(now)})


def custody_of(pool: IPPool) -> Custody:
    """What the pool's annotations say of its Node."""
    known = pool.metadata.annotations
    gone_since = None
    with suppress(InvalidTimestamp):  # edited by hand: the quarantine starts again
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
    """Whether this pool is that node's, for that slice, as far as its annotations say: names of pools can collide."""
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
    """The machine that the annotation states; an unknown one if somebody edited it."""
    ids = annotations.get(MACHINE_ANNOTATION, "").split()
    return MachineIdentity(*ids) if len(ids) == len(structs.fields(MachineIdentity)) else UNKNOWN_MACHINE


class NodePoolIndex:
    """The cache of IPPools, indexed by the NodeSlicePool that they name."""

    def __init__(self, cache: Informer[IPPool], namespace: str, naming: Naming) -> None:
        self._cache = cache
        self._namespace = namespace
        self._namings = (naming, *(other for other in Naming if other is not naming))
        self._by_network: defaultdict[str, dict[str, IPNetwork | None]] = defaultdict(dict)

    def note(self, old: IPPool | None, new: IPPool | None) -> None:
        """Update the index after an event."""
        if old is not None and (new is None or named_network(old) != named_network(new)):
            names = self._by_network[named_network(old)]
            names.pop(old.metadata.name, None)
            if not names:
                del self._by_network[named_network(old)]
        if new is not None:
            is_same = old is not None and old.spec.range == new.spec.range
            names = self._by_network[named_network(new)]
            if not is_same or new.metadata.name not in names:
                names[new.metadata.name] = pool_range(new)

    def get(self, name: str) -> IPPool | None:
        """The pool of that name; None if the cache has none."""
        return self._cache.get(Key(self._namespace, name))

    def networks(self) -> list[str]:
        """The names of all NodeSlicePools that pools name, whether or not those exist."""
        return [name for name in self._by_network if name != _NOBODYS]

    def of(self, node_slice_pool: str) -> Iterator[tuple[IPPool, IPNetwork | None]]:
        """The pools that name this NodeSlicePool, each with its slice."""
        for name, slice_ in self._by_network.get(node_slice_pool, {}).items():
            pool = self.get(name)
            if pool is not None:
                yield pool, slice_

    def find(self, of: NetworkRange, node_slice_pool: str, assignment: SliceAssignment) -> IPPool | None:
        """The pool of a node's slice, under whichever name it has."""
        for name in self.names(of, assignment):
            pool = self.get(name)
            if pool is not None and belongs(pool, node_slice_pool, assignment):
                return pool
        return None

    def names(self, of: NetworkRange, assignment: SliceAssignment) -> list[str]:
        """The names that the pool of a node's slice may have, the preferred one first."""
        found = []
        for naming in self._namings:
            with suppress(InvalidName):  # then there is none of that name
                found.append(of.node_pool_name(assignment.node, assignment.slice, naming))
        return found

    def occupied(self, scope: str, names: AbstractSet[str], node_slice_pool: str) -> Iterator[IPNetwork]:
        """The ranges of pools that share a scope of addresses with this NodeSlicePool and belong to none of its nodes.

        The scope is a `network_name`; all unnamed networks share one.
        """
        for group, pools in self._by_network.items():
            if group and scope_of(group, names) != scope:
                continue
            for name, slice_ in pools.items():
                is_in_scope = group or scope_of(name, names) == scope
                if slice_ is None or not is_in_scope or (group == node_slice_pool and self._has_node(name)):
                    continue
                yield slice_

    def _has_node(self, name: str) -> bool:
        pool = self.get(name)
        return pool is not None and bool(pool.metadata.annotations.get(NODE_ANNOTATION))


def named_network(pool: IPPool) -> str:
    """The NodeSlicePool that a pool names; "" if it names none."""
    return pool.metadata.annotations.get(NETWORK_ANNOTATION, _NOBODYS)


def scope_of(name: str, network_names: AbstractSet[str]) -> str:
    """The `network_name` that an object's name begins with, the longest there is; "" if it begins with none."""
    end = len(name)
    while end > 0:
        if name[:end] in network_names:
            return name[:end]
        end = name.rfind("-", 0, end)
    return ""
