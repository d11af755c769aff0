"""Which machine a Node says it is."""

from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.resources.node import Node


def machine_of(node: Node | None) -> MachineIdentity:
    """What the Node's kubelet states of its machine; nothing for no Node."""
    if node is None:
        return UNKNOWN_MACHINE
    stated = node.status.node_info
    return MachineIdentity(stated.machine_id, stated.system_uuid, stated.boot_id)
