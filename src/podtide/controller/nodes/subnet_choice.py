"""Which subnets a node's addresses come from.

A container stays in its subnet until its node is deleted (addresses leave a node only when the node names them), so
what the node's NodeNetworkConfig shows takes precedence over labels and options, which say where a new container is
made.
"""

from collections.abc import Iterable

from msgspec import Struct

from podtide.controller.options import ControllerOptions
from podtide.resources.container_ids import container_ids
from podtide.resources.metadata_keys import SUBNET_LABEL, SUBNET_V6_LABEL
from podtide.resources.node import Node
from podtide.resources.node_network_config import NetworkContainer


class ContainerPlace(Struct, frozen=True, kw_only=True):
    """One network container of a node, and its subnet."""

    container: str
    subnet: str
    stated: str
    """The subnet that label or option name; it differs from `subnet` if the container is in another one already."""
    stated_by: str
    """Which label or option names the subnet, for messages."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether label or option name another subnet than the container's, which cannot move."""
        return self.subnet != self.stated


def places_of(
    node: Node, held: Iterable[NetworkContainer], options: ControllerOptions
) -> tuple[ContainerPlace, ...]:
    """The node's containers: the first, which every node has, then the one for a second address, if it has one."""
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
