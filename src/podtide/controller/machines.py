"""The identity of the machine that a Node runs on."""

from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.resources.node import Node


def machine_of(node: Node | None) -> MachineIdentity:
    """The machine as the Node's kubelet states it; an unknown one for None."""
    if node is None:
        return UNKNOWN_MACHINE
    stated = node.status.node_info
    return MachineIdentity(stated.machine_id, stated.system_uuid, stated.boot_id)
