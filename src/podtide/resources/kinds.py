"""All kinds podtide knows, for code that iterates over them: the CRDs, the embedded cluster, discovery."""

from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.event import Event
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.namespace import Namespace
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod

PODTIDE_KINDS: tuple[type[Resource], ...] = (
    NodeNetworkConfig,
    ClusterSubnet,
    ClusterSubnetState,
    NodeSlicePool,
    IPPool,
    OverlappingRangeIPReservation,
)
"""The kinds a cluster must learn before podtide can run in it."""

BUILT_IN_KINDS: tuple[type[Resource], ...] = (Node, Pod, Lease, Event, Namespace)
"""The kinds every cluster has."""

ALL_KINDS: tuple[type[Resource], ...] = (*PODTIDE_KINDS, NetworkAttachmentDefinition, *BUILT_IN_KINDS)
"""Every kind; the one that is neither podtide's nor built in is Multus's."""
