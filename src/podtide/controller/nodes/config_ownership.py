"""What ties a NodeNetworkConfig to its Node: the owner reference, and the finalizer that is removed after the containers."""

from msgspec import structs

from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.metadata_keys import CONTAINER_FINALIZER, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig


def uid_of(node: Node | None) -> str:
    """The uid of a Node; "" for None."""
    return node.metadata.uid if node else ""


def is_being_deleted(config: NodeNetworkConfig) -> bool:
    """Whether it is only there until its finalizers are removed."""
    return config.metadata.deletion_timestamp is not None


def new_config(node: Node) -> NodeNetworkConfig:
    """A NodeNetworkConfig that asks for nothing yet: the node's agent makes the first request."""
    place = ObjectMeta(name=node.metadata.name, namespace=SYSTEM_NAMESPACE)
    return bound(NodeNetworkConfig(metadata=place), node)


def is_bound(config: NodeNetworkConfig, node: Node) -> bool:
    """Whether the NodeNetworkConfig has the node as its controller, and our finalizer."""
    metadata = config.metadata
    return _owner(node) in metadata.owner_references and CONTAINER_FINALIZER in metadata.finalizers


def bound(config: NodeNetworkConfig, node: Node) -> NodeNetworkConfig:
    """The NodeNetworkConfig with both; owners and finalizers of other programs stay."""
    owners = [each for each in config.metadata.owner_references if each.uid != node.metadata.uid]
    finalizers = [each for each in config.metadata.finalizers if each != CONTAINER_FINALIZER]
    metadata = structs.replace(
        config.metadata,
        owner_references=[*owners, _owner(node)],
        finalizers=[*finalizers, CONTAINER_FINALIZER],
    )
    return structs.replace(config, metadata=metadata)


def without_finalizer(config: NodeNetworkConfig) -> NodeNetworkConfig:
    """The NodeNetworkConfig without our finalizer."""
    finalizers = [each for each in config.metadata.finalizers if each != CONTAINER_FINALIZER]
    return structs.replace(config, metadata=structs.replace(config.metadata, finalizers=finalizers))


def _owner(node: Node) -> OwnerReference:
    return OwnerReference(
        api_version=Node.api.api_version,
        kind=Node.api.kind,
        name=node.metadata.name,
        uid=node.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
