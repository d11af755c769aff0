"""What podtide writes on objects that are not all its own: labels, annotations, the finalizer, resources and a taint.

They are part of the contract with people and with other programs, so they are stated once.
"""

import re
from collections.abc import Mapping

SYSTEM_NAMESPACE = "kube-system"
"""Where NodeNetworkConfigs, ClusterSubnets and ClusterSubnetStates live, as Azure CNS has it."""

NAME_LABEL = "app.kubernetes.io/name"
COMPONENT_LABEL = "app.kubernetes.io/component"
PODTIDE = "podtide"
"""The value of the name label on all that the chart makes, and on podtide's CustomResourceDefinitions."""

AGENT_MANAGER = "podtide-agent"
"""The field manager of a node agent in its NodeNetworkConfig: what it applies is the agent's, and nothing else there is."""

SUBNET_LABEL = "podtide.io/subnet"
"""On a Node: the subnet its pods' addresses come from; without it, the controller's default."""

SUBNET_V6_LABEL = "podtide.io/subnet-v6"
"""On a Node: the subnet of its pods' second address, for dual stack; without it, the controller's default, if any."""

WAITING_PODS_ANNOTATION = "podtide.io/waiting-pods"
"""On a NodeNetworkConfig: how many pods of the node have no address. Nodes with more of them are served first. It is kept right
while the subnet owes the node addresses, which is when it is read: a write of its own after that would have no reader."""

STATEMENT_ANNOTATION = "podtide.io/statement"
"""On a NodeNetworkConfig: what its request was computed from, as JSON (see `podtide.core.subnet.statement`)."""

DOUBT_ANNOTATION = "podtide.io/doubt"
"""On a NodeNetworkConfig: the mark by which its agent asks whether it is up to date (see `podtide.resources.config_confirmation`)."""

CONTAINER_FINALIZER = "podtide.io/network-container"
"""On a NodeNetworkConfig: it stays until its network containers are deleted at the allocator."""

RESERVED_ANNOTATION = "podtide.io/reserved"
"""On a NodeNetworkConfig that another program serves: which versions of its containers are reserved (see `podtide.resources.foreign_config`)."""

BEFORE_ANNOTATION = "podtide.io/before"
"""On a NodeNetworkConfig that was handed over: its request and status as the other program left them, as JSON."""

NODE_ANNOTATION = "podtide.io/node"
"""On a node's own IPPool of a secondary network: the node. On that pool's Lease, and on a reservation: the node whose
agent made it."""

NODE_UID_ANNOTATION = "podtide.io/node-uid"
"""On such a pool: the uid of that Node. A new Node under an old name has no part in the pool."""

NODE_GONE_ANNOTATION = "podtide.io/node-gone-since"
"""On the same: when that Node was found to be gone. The slice is in quarantine from then on."""

POOL_UID_ANNOTATION = "podtide.io/pool-uid"
"""On the same: its own uid, once its slice is listed. Without it the pool is inert (see `podtide.networks.confirmation`)."""

MACHINE_ANNOTATION = "podtide.io/machine"
"""On the same: the ids of the machine and boot that the Node ran on, joined by spaces."""

NETWORK_ANNOTATION = "podtide.io/network"
"""On the same: the NodeSlicePool that the slice is from. On that: the network it is of."""

CONFIRMED_ANNOTATION = "podtide.io/confirmed-at"
"""On a NodeSlicePool: when it was last written for no other reason than that writes from before come to nothing,
and in place of which version."""

IPV4_RESOURCE = "podtide.io/ipv4"
"""On a Node, in capacity and allocatable: how many pods with an IPv4 address it can have in all. In a pod: requests one."""

IPV6_RESOURCE = "podtide.io/ipv6"
"""The same of IPv6 addresses."""


NETWORK_RESOURCE_PREFIX = "podtide.io/net-"
"""Of a secondary network's addresses; the network's name follows (see `network_resource`)."""

NO_ADDRESSES_TAINT = "podtide.io/no-addresses"
"""On a Node: its pods can get no more addresses. The effect is NoSchedule."""

PLACEMENT_LABEL = "podtide.io/placement"
"""On a namespace: with the value PLACEMENT_ENABLED its pods request addresses, where not all pods do."""

PLACEMENT_ENABLED = "enabled"

UNREQUESTED_ANNOTATION = "podtide.io/unrequested"
"""On a NodeNetworkConfig: how many pods of the node use an address and request none, less what others request and do
not use."""

_COUNT = re.compile("[0-9]{1,9}")
STATED_ANNOTATIONS = (WAITING_PODS_ANNOTATION, STATEMENT_ANNOTATION, UNREQUESTED_ANNOTATION)
"""On a NodeNetworkConfig: what its agent states along with its request."""

_OF_A_RESOURCE = re.compile("[-_.A-Za-z0-9]{0,58}[A-Za-z0-9]")
"""What may stand after `net-` in the name of a resource, of which an API server takes 63 characters."""
_SIGNED_COUNT = re.compile("-?[0-9]{1,9}")


def network_resource(network: str) -> str | None:
    """The resource of a secondary network's addresses, on Nodes and in pods.

    None for a network that is unnamed or whose name does not fit: an API server refuses pods that request it.
    """
    return f"{NETWORK_RESOURCE_PREFIX}{network}" if _OF_A_RESOURCE.fullmatch(network) else None


def unrequested_in(annotations: Mapping[str, str]) -> int | None:
    """What that annotation says; None where it is missing, as from other agents, or not a plausible number."""
    written = annotations.get(UNREQUESTED_ANNOTATION, "")
    return int(written) if _SIGNED_COUNT.fullmatch(written) else None


def waiting_pods_in(annotations: Mapping[str, str]) -> int:
    """How many pods wait by that annotation; 0 where it is missing or not a plausible number."""
    written = annotations.get(WAITING_PODS_ANNOTATION, "")
    return int(written) if _COUNT.fullmatch(written) else 0
