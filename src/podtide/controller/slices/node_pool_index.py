"""The IPPools of the cluster, found by network: a network is looked at often, and must not look through all of them."""

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress

from podtide.cluster.informer import Informer
from podtide.controller.slices.node_pool_object import belongs
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPNetwork
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import pool_range
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NETWORK_ANNOTATION, NODE_ANNOTATION
from podtide.resources.names import InvalidName, Naming

_NOBODYS = ""
"""Pools that name no NodeSlicePool: those for whole ranges, and what Whereabouts made."""


class NodePoolIndex:
    """Reads the copies."""

    def __init__(self, cache: Informer[IPPool], namespace: str, naming: Naming) -> None:
        self._cache = cache
        self._namespace = namespace
        self._namings = (naming, *(other for other in Naming if other is not naming))
        self._by_network: defaultdict[str, dict[str, IPNetwork | None]] = defaultdict(dict)

    def note(self, old: IPPool | None, new: IPPool | None) -> None:
        """A pool changed."""
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
        """The pool of that name."""
        return self._cache.get(Key(self._namespace, name))

    def networks(self) -> list[str]:
        """All NodeSlicePools, there or not, that pools say they are of."""
        return [name for name in self._by_network if name != _NOBODYS]

    def of(self, node_slice_pool: str) -> Iterator[tuple[IPPool, IPNetwork | None]]:
        """The pools that say they are of this NodeSlicePool, with their slices."""
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
        """What pools have that share a scope of addresses with this NodeSlicePool and are none of its nodes'.

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
    """The NodeSlicePool that a pool says it is of; "" when it says nothing."""
    return pool.metadata.annotations.get(NETWORK_ANNOTATION, _NOBODYS)


def scope_of(name: str, network_names: AbstractSet[str]) -> str:
    """The `network_name` that an object's name begins with, the longest there is; "" when it begins with none."""
    end = len(name)
    while end > 0:
        if name[:end] in network_names:
            return name[:end]
        end = name.rfind("-", 0, end)
    return ""
