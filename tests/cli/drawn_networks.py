"""Secondary networks drawn by hand into a `DrawnCluster`: each object in one line of a test."""

import json
from collections.abc import Mapping

from cli.drawn_cluster import MANAGER, DrawnCluster
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import (
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    NODE_GONE_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)


async def draw_definition(drawn: DrawnCluster, name: str, cidr: str, **ipam: object) -> None:
    """A NetworkAttachmentDefinition in the namespace default."""
    config = json.dumps({"name": name, "ipam": {"type": "podtide", "range": cidr, **ipam}})
    await drawn.cluster.create(
        NetworkAttachmentDefinition(
            metadata=ObjectMeta(name=name, namespace="default"),
            spec=NetworkAttachmentDefinitionSpec(config=config),
        ),
        manager=MANAGER,
    )


async def draw_slices(
    drawn: DrawnCluster, name: str, cidr: str, size: str, slices: Mapping[str, str]
) -> None:
    """A NodeSlicePool with the slice of each node."""
    await drawn.cluster.create(
        NodeSlicePool(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            spec=NodeSlicePoolSpec(range=cidr, slice_size=size),
            status=NodeSlicePoolStatus(
                allocations=[
                    NodeSliceAllocation(node_name=node, slice_range=slice_) for node, slice_ in slices.items()
                ]
            ),
        ),
        manager=MANAGER,
    )


async def draw_pool(
    drawn: DrawnCluster,
    name: str,
    cidr: str,
    held: Mapping[int, IPAllocation] | None = None,
    *,
    node: str = "",
    slices: str = "",
    gone_since: str = "",
) -> IPPool:
    """An IPPool with what is held by offset; with a node it is that node's slice of the NodeSlicePool `slices`."""
    marks = {NODE_ANNOTATION: node, NETWORK_ANNOTATION: slices, NODE_GONE_ANNOTATION: gone_since}
    return await drawn.cluster.create(
        IPPool(
            metadata=ObjectMeta(
                name=name,
                namespace=SYSTEM_NAMESPACE,
                annotations={key: text for key, text in marks.items() if text},
            ),
            spec=IPPoolSpec(range=cidr, allocations={str(key): each for key, each in (held or {}).items()}),
        ),
        manager=MANAGER,
    )


async def draw_reservation(drawn: DrawnCluster, name: str, podref: str, uid: str = "") -> None:
    """An OverlappingRangeIPReservation."""
    await drawn.cluster.create(
        OverlappingRangeIPReservation(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            spec=OverlappingRangeIPReservationSpec(podref=podref, ifname="net1", pod_uid=uid),
        ),
        manager=MANAGER,
    )


def held_by(
    podref: str, uid: str = "", sandbox: str = "sandbox", earlier: tuple[str, ...] = ()
) -> IPAllocation:
    """An entry of a pool."""
    return IPAllocation(id=sandbox, podref=podref, ifname="net1", pod_uid=uid, earlier=list(earlier))
