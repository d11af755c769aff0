"""Node: what podtide reads of one."""

from typing import ClassVar

from msgspec import field

from podtide.resources.base import Api, Part, Resource


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
    """The machine."""

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

    status: NodeStatus = NodeStatus()
