"""How many pods of each node could have an address of each sliced network, for placement to publish on Nodes.

The numbers follow from caches that are there anyway: definitions say which addresses are given, and a node's IPPools
which slices it has. Agents write these pools with every pod that comes or goes, and that changes no number: schedulers
subtract the pods that request the resource by themselves.

A network counts under its `network_name`. Unnamed ones, names that the API server does not take in a resource, and
networks without slices, whose nodes share one pool, have no number.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from podtide.cluster.informer import Informer
from podtide.controller.slices.node_pools import NodePoolIndex, named_network
from podtide.core.networks.slice_room import pods_of_network, pods_of_slice
from podtide.core.ranges import AddressRange
from podtide.networks.confirmation import is_inert
from podtide.networks.ownership import pool_range
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION, NODE_UID_ANNOTATION, network_resource
from podtide.resources.node import Node

SlicedRanges = Mapping[str, Sequence[AddressRange]]
"""The ranges of a network that are cut into slices, each as every definition states it, by NodeSlicePool."""


class _SliceRoom(Struct, frozen=True, kw_only=True):
    """A node's slice, and for how many pods it has addresses."""

    node: str
    node_uid: str
    node_slice_pool: str
    pods: int


class SliceRooms:
    """The numbers of all nodes, by resource."""

    def __init__(
        self, nodes: Informer[Node], node_pools: NodePoolIndex, changed: Callable[[str], None]
    ) -> None:
        """`changed` is called with a node whose numbers may have changed, once the caches are complete."""
        self._nodes = nodes
        self._node_pools = node_pools
        self._changed = changed
        self._is_complete = False
        self._networks: dict[str, SlicedRanges] = {}
        """By resource."""
        self._pools: defaultdict[str, set[str]] = defaultdict(set)
        """The names of nodes' own pools, by node."""

    def of_node(self, node: str) -> dict[str, int] | None:
        """How many pods of the node could have an address of each network; None until the caches are complete.

        A network of which the node has no slice is there, with 0.
        """
        if not self._is_complete:
            return None
        slices = {each.node_slice_pool: each.pods for each in self._slices(node)}
        return {
            resource: pods_of_network(slices.get(name, 0) for name in ranges)
            for resource, ranges in self._networks.items()
        }

    def note_complete(self) -> None:
        """Note that all caches have synced: from now on, absence means something."""
        self._is_complete = True
        self._queue_every_node()

    def note_network(self, name: str, ranges: SlicedRanges) -> None:
        """Note the sliced ranges of a network: none for one that is gone, or has none."""
        resource = network_resource(name)
        if resource is None or self._networks.get(resource, {}) == ranges:
            return
        self._networks.pop(resource, None)
        if ranges:
            self._networks[resource] = ranges
        if self._is_complete:
            self._queue_every_node()

    def note_pool(self, old: IPPool | None, new: IPPool | None) -> None:
        """Note a change of an IPPool."""
        if old is not None:
            self._pools[_node(old)].discard(old.metadata.name)
            if not self._pools[_node(old)]:
                del self._pools[_node(old)]
        if new is not None and _node(new):
            self._pools[_node(new)].add(new.metadata.name)
        if self._is_complete:
            before, after = self._room(old), self._room(new)
            for node in {each.node for each in (before, after) if each} if before != after else ():
                self._changed(node)

    def _slices(self, node: str) -> Iterator[_SliceRoom]:
        """The node's slices that its agent uses."""
        known = self._nodes.get(Key("", node))
        for name in self._pools.get(node, ()):
            room = self._room(self._node_pools.get(name))
            if room is not None and known is not None and room.node_uid == known.metadata.uid:
                yield room

    def _room(self, pool: IPPool | None) -> _SliceRoom | None:
        """The slice of a pool; None where no agent uses the pool, or its network has no number."""
        if pool is None or not _node(pool) or is_inert(pool):
            return None
        name, slice_ = named_network(pool), pool_range(pool)
        ranges = next((found[name] for found in self._networks.values() if name in found), None)
        if ranges is None or slice_ is None:
            return None
        given = () if pool.metadata.deletion_timestamp else ranges
        return _SliceRoom(
            node=_node(pool),
            node_uid=pool.metadata.annotations.get(NODE_UID_ANNOTATION, ""),
            node_slice_pool=name,
            pods=pods_of_slice(slice_, given, pool.spec.allocations or ()),
        )

    def _queue_every_node(self) -> None:
        for node in self._nodes.items():
            self._changed(node.metadata.name)


def _node(pool: IPPool) -> str:
    return pool.metadata.annotations.get(NODE_ANNOTATION, "")
