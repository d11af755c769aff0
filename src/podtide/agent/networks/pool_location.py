"""Where a range's pool is found: the one that all nodes share, or the one that the slices controller made for this node.

A shared pool is created by the first agent that needs it. A node's own pool is never created here: only the controller
knows which part of the range is the node's, and a pool without an entry in the NodeSlicePool could overlap another's. So
a pool that the controller has not confirmed is ignored: a late request may have created it after the slice was freed.
Names of nodes and networks can be joined to the same pool name in more than one way, so a pool has to state its node.
"""

from contextlib import suppress
from typing import ClassVar, Protocol

from msgspec import Struct

from podtide.agent.networks.errors import NoSlice, Reread
from podtide.cluster.listing import get_if_there
from podtide.cluster.port import AlreadyExists, Cluster, NotFound
from podtide.core.errors import InvalidConfig, InvalidRange
from podtide.core.ranges import IPNetwork, overlap, parse_network
from podtide.networks.confirmation import is_inert
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import node_slice_pool_names
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec, with_allocations
from podtide.resources.metadata_keys import AGENT_MANAGER, NODE_ANNOTATION, NODE_UID_ANNOTATION
from podtide.resources.names import InvalidName, Naming
from podtide.resources.node_slice_pool import NodeSliceAllocation, NodeSlicePool
from podtide.runtime.clock import Clock

_NOT_AGAIN_SECONDS = 2.0
"""Pods without an address are tried again and again, and a NodeSlicePool of thousands of nodes is large."""


class PoolLocation(Protocol):
    """Where the pool of a range is."""

    is_shared: ClassVar[bool]
    """Whether other nodes write the pool too."""
    name: str
    """What tells the pool from others of its kind."""

    async def find(self, wanted: NetworkRange) -> IPPool | None:
        """The pool by a fresh read; None when it does not exist."""
        ...

    async def make(self, wanted: NetworkRange) -> IPPool:
        """The pool that was not found, if it is for this node to make; otherwise NoSlice says why there is none."""
        ...

    async def require_beginning(self, wanted: NetworkRange) -> None:
        """Raise NoSlice unless the first address of an empty pool may be given."""
        ...

    def require_usable(self, pool: IPPool, wanted: NetworkRange, node_uid: str) -> None:
        """Raises unless the Node with this uid may give addresses of the range from the pool."""
        ...


class SharedPoolLocation:
    """The pool that all nodes share."""

    is_shared: ClassVar[bool] = True

    def __init__(self, cluster: Cluster, namespace: str, wanted: NetworkRange) -> None:
        self.name = wanted.classic_pool_name()
        self._cluster = cluster
        self._namespace = namespace

    async def find(self, wanted: NetworkRange) -> IPPool | None:
        """The pool of the range's own name."""
        del wanted  # its name says it all
        return await _get(self._cluster, self.name, self._namespace)

    async def make(self, wanted: NetworkRange) -> IPPool:
        """Create it, empty."""
        await self.require_beginning(wanted)
        empty = IPPool(
            metadata=ObjectMeta(name=self.name, namespace=self._namespace),
            spec=IPPoolSpec(range=str(wanted.addresses.network), allocations={}),
        )
        empty = with_allocations(empty, {}, capacity=wanted.addresses.capacity)
        try:
            return await self._cluster.create(empty, manager=AGENT_MANAGER)
        except AlreadyExists as error:
            # Another node was first, or an answer was lost.
            raise Reread(str(error)) from error

    async def require_beginning(self, wanted: NetworkRange) -> None:
        """Raise NoSlice while nodes still have slices of the range: a new pool does not show what their pods have.

        That holds for an existing empty pool too: a late request may have created it just now. Reservations do not show
        it either: whether there are any depends on the configuration by which those addresses were assigned, which is
        not known any more.
        """
        for name in node_slice_pool_names(wanted):
            slices = await get_if_there(self._cluster, NodeSlicePool, name, self._namespace)
            assigned = slices.status.allocations if slices and slices.status else []
            if slices and any(_may_be_in_use(each, wanted.addresses.network) for each in assigned):
                raise NoSlice(
                    f"range {wanted.addresses} is not to be cut into slices any more, and nodes still have some by "
                    f"NodeSlicePool {slices.key}: they go when no pod has an address of them; wait for that, or put its "
                    "node_slice_size back"
                )

    def require_usable(self, pool: IPPool, wanted: NetworkRange, node_uid: str) -> None:
        """Raise unless the pool is of this range, and is not being deleted."""
        del node_uid  # all nodes may use it
        if parse_network(pool.spec.range) != wanted.addresses.network:
            raise InvalidConfig(
                f"IPPool {pool.key} is of {pool.spec.range}, and the network's range is {wanted.addresses}: "
                "give the network another network_name"
            )
        _require_staying(pool)


class _Absence(Struct, frozen=True):
    """Why a pool was not found, and until when that counts."""

    why: NoSlice
    until: float


class NodePoolLocation:
    """The pool of this node's slice."""

    is_shared: ClassVar[bool] = False

    def __init__(
        self, cluster: Cluster, namespace: str, node: str, wanted: NetworkRange, *, clock: Clock
    ) -> None:
        self.name = wanted.node_pool_name(node, wanted.addresses.network)
        self._cluster = cluster
        self._namespace = namespace
        self._node = node
        self._clock = clock
        self._absent: dict[str, _Absence] = {}
        """By the configuration's name, which is part of what Whereabouts calls things."""

    async def find(self, wanted: NetworkRange) -> IPPool | None:
        """The pool that podtide's or Whereabouts' controller made for the node; that there is none is remembered for a moment."""
        configuration = wanted.configuration_name
        if configuration in self._absent and self._clock.monotonic() < self._absent[configuration].until:
            return None
        pool = await _get(self._cluster, self.name, self._namespace)
        if pool is not None and self._is_this_nodes(pool) and not is_inert(pool):
            return pool
        try:
            return await self._by_slice(wanted)
        except NoSlice as error:
            self._absent[configuration] = _Absence(error, self._clock.monotonic() + _NOT_AGAIN_SECONDS)
            return None

    async def make(self, wanted: NetworkRange) -> IPPool:
        """Raise why the node has no pool: the controller makes it."""
        raise self._absent[wanted.configuration_name].why

    def require_usable(self, pool: IPPool, wanted: NetworkRange, node_uid: str) -> None:
        """Raise unless the pool is this Node's, within the range, and is not being deleted."""
        stated = pool.metadata.annotations.get(NODE_UID_ANNOTATION, node_uid)
        if stated != node_uid:
            raise NoSlice(
                f"IPPool {pool.key} was made for a Node with uid {stated}, and the present one's is {node_uid}: "
                "the slices controller will replace it; see that it runs"
            )
        if not _is_within(parse_network(pool.spec.range), wanted.addresses.network):
            raise NoSlice(
                f"IPPool {pool.key} is of {pool.spec.range}, which is outside of {wanted.addresses}: "
                "two networks of one name have different ranges; give one another network_name"
            )
        _require_staying(pool)

    async def require_beginning(self, wanted: NetworkRange) -> None:
        """Does nothing: the controller confirms a pool only when it may be used."""
        del wanted

    async def _by_slice(self, wanted: NetworkRange) -> IPPool:
        """The pool under the name that Whereabouts gives it, which has the slice in it."""
        slices = await self._slices(wanted)
        assigned = slices.status.allocations if slices.status else []
        own = next((each.slice_range for each in assigned if each.node_name == self._node), None)
        if own is None:
            slicing = wanted.slicing
            assert slicing is not None
            used = sum(1 for each in assigned if each.node_name)
            raise NoSlice(
                f"node {self._node} has no slice of {wanted.addresses}: {used} of {slicing.count} are assigned; wait for the "
                "slices controller, or widen the range if none is left"
            )
        pool = None
        with suppress(
            InvalidName
        ):  # this name is longer than podtide's; if it is too long, no such pool can exist
            name = wanted.node_pool_name(self._node, parse_network(own), Naming.WHEREABOUTS)
            pool = await _get(self._cluster, name, self._namespace)
        if pool is None or not self._is_this_nodes(pool) or is_inert(pool):
            raise NoSlice(
                f"node {self._node} has slice {own} of {wanted.addresses}, and IPPool {self.name} is not ready yet: "
                "try again; see that the slices controller runs"
            )
        return pool

    async def _slices(self, wanted: NetworkRange) -> NodeSlicePool:
        for name in node_slice_pool_names(wanted):
            slices = await get_if_there(self._cluster, NodeSlicePool, name, self._namespace)
            if slices is not None:
                return slices
        raise NoSlice(
            f"range {wanted.addresses} is not cut into slices yet: there is no NodeSlicePool "
            f"{self._namespace}/{wanted.node_slice_pool_name()}; see that the slices controller runs and that a "
            "NetworkAttachmentDefinition has this range"
        )

    def _is_this_nodes(self, pool: IPPool) -> bool:
        return pool.metadata.annotations.get(NODE_ANNOTATION, self._node) == self._node


async def _get(cluster: Cluster, name: str, namespace: str) -> IPPool | None:
    try:
        pool = await cluster.get(IPPool, name, namespace)
        parse_network(pool.spec.range)
    except NotFound:
        return None
    except InvalidRange as error:
        raise InvalidConfig(f"IPPool {namespace}/{name} has no valid range: {error}; correct it") from error
    return pool


def _may_be_in_use(slice_: NodeSliceAllocation, range_: IPNetwork) -> bool:
    """Whether a node has the slice, and it overlaps the range; one that cannot be parsed may do so.

    The name that Whereabouts gives to an unnamed network's NodeSlicePool can be that of another network.
    """
    if not slice_.node_name:
        return False
    try:
        return overlap(range_, parse_network(slice_.slice_range)) is not None
    except InvalidRange:
        return True


def _require_staying(pool: IPPool) -> None:
    if pool.metadata.deletion_timestamp:
        raise NoSlice(f"IPPool {pool.key} is being deleted: nothing new is handed out from it")


def _is_within(part: IPNetwork, whole: IPNetwork) -> bool:
    return (
        part.version == whole.version and part.prefixlen >= whole.prefixlen and part.network_address in whole
    )
