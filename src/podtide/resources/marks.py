"""What podtide writes on objects that are not all its own: labels, annotations and the finalizer.

They are part of the contract with people and with other programs, so they are stated once.
"""

SYSTEM_NAMESPACE = "kube-system"
"""Where NodeNetworkConfigs, ClusterSubnets and ClusterSubnetStates live, as Azure CNS has it."""

SUBNET_LABEL = "podtide.io/subnet"
"""On a Node: the subnet its pods' addresses come from; without it, the controller's default."""

SUBNET_V6_LABEL = "podtide.io/subnet-v6"
"""On a Node: the subnet of its pods' second address, for dual stack; without it, the controller's default, if any."""

WAITING_PODS_ANNOTATION = "podtide.io/waiting-pods"
"""On a NodeNetworkConfig: how many pods of the node have no address. Nodes with more of them are served first."""

CONTAINER_FINALIZER = "podtide.io/network-container"
"""On a NodeNetworkConfig: it stays until its network containers are deleted at the allocator."""
