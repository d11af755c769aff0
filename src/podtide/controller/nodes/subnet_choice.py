"""Which subnets a node's addresses come from, and by which ids its network containers go.

A container stays in its subnet until its node is gone (addresses leave a node only when the node names them), so what
the node's NodeNetworkConfig shows goes before labels and options; those say where a new container is made.
"""

from collections.abc import Iterable

from msgspec import Struct

from podtide.controller.options import ControllerOptions
from podtide.resources.metadata_keys import SUBNET_LABEL, SUBNET_V6_LABEL
from podtide.resources.node import Node
from podtide.resources.node_network_config import NetworkContainer

_SECOND = "-v6"


class ContainerPlace(Struct, frozen=True, kw_only=True):
    """One network container of a node, and where it is or shall be."""

    container: str
    subnet: str
    stated: str
    """The subnet that label or option name; another than `subnet` for a container that is elsewhere already."""
    stated_by: str
    """What to mend when the subnet is wrong, in words."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether label or option ask for what cannot be: that a container move."""
        return self.subnet != self.stated


def container_ids(node_uid: str) -> tuple[str, str]:
    """All ids that containers of a node ever go by."""
    return node_uid, f"{node_uid}{_SECOND}"


def node_uid(container_id: str) -> str:
    """The uid of the Node that a container is of."""
    return container_id.removesuffix(_SECOND)


def places_of(
    node: Node, held: Iterable[NetworkContainer], options: ControllerOptions
) -> tuple[ContainerPlace, ...]:
    """The node's containers, first the one every node has, then the one for a second address if it has that."""
    found = {container.id: container.subnet_name for container in held if container.subnet_name}
    first, second = container_ids(node.metadata.uid)
    wanted = (
        (first, SUBNET_LABEL, options.subnet, "--subnet"),
        (second, SUBNET_V6_LABEL, options.subnet_v6, "--subnet-v6"),
    )
    places = []
    for container, label, default, option in wanted:
        labelled = node.metadata.labels.get(label, "")
        stated = labelled or default
        subnet = found.get(container, stated)
        if subnet:
            stated_by = (
                f"label {label} of node {node.metadata.name}" if labelled else f"the controller's {option}"
            )
            places.append(
                ContainerPlace(container=container, subnet=subnet, stated=stated, stated_by=stated_by)
            )
    return tuple(places)
