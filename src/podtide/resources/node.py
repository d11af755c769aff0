"""Node: what podtide reads of one, and the taint and extended resources that it writes there.

A kubelet, the scheduler and other controllers write the same object, and no struct names all their fields: change a Node
by `Cluster.patch`, never by a replace.
"""

from typing import ClassVar

from msgspec import field

from podtide.resources.base import Api, Part, Resource


class Taint(Part, frozen=True, kw_only=True):
    """What keeps pods that do not tolerate it off a node. A node has at most one of a key and effect."""

    merge_key: ClassVar[str | None] = "key"

    key: str
    value: str = ""
    effect: str
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    time_added: str | None = None
    """Set by the controller that evicts pods; sent back as it was read."""


class NodeSpec(Part, frozen=True, kw_only=True):
    """Whether pods may be scheduled to the node."""

    unschedulable: bool = False
    taints: list[Taint] = field(default_factory=list)


class NodeAddress(Part, frozen=True, kw_only=True):
    """One address or name of the machine."""

    merge_key: ClassVar[str | None] = "address"

    type: str
    """`InternalIP`, `Hostname` and so on; a dual-stack node has two of a type."""
    address: str


class NodeSystemInfo(Part, frozen=True, kw_only=True):
    """Which machine it is, and since when it runs, by ids."""

    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    """Drawn anew at every boot."""


class NodeStatus(Part, frozen=True, kw_only=True):
    """The machine, and how much of each resource it has: quantities by name (see `podtide.resources.quantity`)."""

    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    """What of the capacity is for pods: the scheduler compares their requests with it."""
    addresses: list[NodeAddress] = field(default_factory=list)
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Resource, frozen=True, kw_only=True):
    """A node. Its uid is the identity of everything podtide keeps for it."""

    api: ClassVar[Api] = Api(
        group="",
        version="v1",
        kind="Node",
        plural="nodes",
        namespaced=False,
        status_subresource=True,
        keeps_unknown=False,
        short_names=("no",),
        field_selectors=("metadata.name",),
    )

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
