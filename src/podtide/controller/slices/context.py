"""What the parts of the slices controller share during one term."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster, ClusterError, Throttled, Unavailable
from podtide.controller.counts import ControllerCounts
from podtide.controller.events import EventRecorder
from podtide.controller.fencing import GuardedWrites
from podtide.controller.slices.attachments import AttachmentIndex
from podtide.controller.slices.node_pool_index import NodePoolIndex
from podtide.controller.slices.other_networks import OtherNetworks
from podtide.resources.names import Naming
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

T = TypeVar("T")

SIDE_BY_SIDE = 16
"""How many calls for one network are under way at a time."""


class SliceContext(Struct, frozen=True, kw_only=True):
    """Handed to every part, which takes of it what it needs."""

    cluster: Cluster
    """To read afresh. Whoever writes uses `writes`."""
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
    """Do it for all items, a few at a time.

    One that fails stops no other, unless the server cannot be reached. Then the first error is raised.
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
