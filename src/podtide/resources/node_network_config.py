"""NodeNetworkConfig: a node's request for addresses (spec), and what it was given (status).

The node agent writes spec and the request controller writes status; the names and oddities of the fields are
Azure CNS's (`subcriptionID` is spelled so on the wire), whose programs read and write the same objects.
"""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from podtide.core.subnet.scaler import NodeScaler
from podtide.resources.base import Api, Cidr, Column, Int64, OpenEnum, Part, Resource, always
from podtide.resources.conditions import Conditions
from podtide.resources.node import Node


class AssignmentMode(OpenEnum):
    """Whether a network container's addresses come one by one or as a whole block."""

    DYNAMIC = "dynamic"
    STATIC = "static"


class ContainerStatus(OpenEnum):
    """How the last request for a network container ended."""

    SUBNET_FULL = "NCUpdateSubnetFullError"
    INTERNAL_SERVER_ERROR = "NCUpdateInternalServerError"
    UNAUTHORIZED = "NCUpdateUnauthorizedError"
    SUCCESS = "NCUpdateSuccess"
    FAILED = "NCUpdateFailed"


class ConfigStatus(OpenEnum):
    """How far the request controller is with the spec."""

    UPDATING = "Updating"
    UPDATED = "Updated"
    ERROR = "Error"


class IPAssignment(Part, frozen=True, kw_only=True):
    """One secondary address of a network container."""

    merge_key: ClassVar[str | None] = "name"

    name: Annotated[str, Meta(description="Identifies this grant of the address; never used again.")] = ""
    ip: Annotated[str, Meta(description="The address.")] = ""


class CidrOfAddresses(Part, frozen=True, kw_only=True):
    """A range that addresses of a network container are in."""

    merge_key: ClassVar[str | None] = "cidr"

    cidr: Annotated[Cidr, Meta(description="The range: its prefix length is that of the addresses in it.")]
    gateway: Annotated[str, Meta(description="The gateway of the addresses in it.")] = ""


class NetworkContainer(Part, frozen=True, kw_only=True):
    """A node's holding in one subnet: a primary address and secondary ones for its pods."""

    merge_key: ClassVar[str | None] = "id"

    id: Annotated[str, Meta(description="Identifies the network container.")] = ""
    assignment_mode: Annotated[
        AssignmentMode,
        Meta(description="Whether addresses come one by one (dynamic) or as a block (static)."),
    ] = always(AssignmentMode.DYNAMIC)
    type: Annotated[str, Meta(description="The kind of network, vnet unless said otherwise.")] = always(
        "vnet"
    )
    primary_ip: Annotated[
        str, Meta(description="The primary IPv4 address (or block, when static); not given to pods.")
    ] = field(default="", name="primaryIP")
    primary_ipv6: Annotated[str, Meta(description="The primary IPv6 address or block.")] = field(
        default="", name="primaryIPV6"
    )
    subnet_name: Annotated[str, Meta(description="The subnet the addresses are from.")] = ""
    ip_assignments: Annotated[
        list[IPAssignment], Meta(description="The secondary addresses the node may give to pods.")
    ] = field(default_factory=list)
    default_gateway: Annotated[str, Meta(description="The subnet's IPv4 gateway.")] = ""
    default_gateway_v6: Annotated[str, Meta(description="The subnet's IPv6 gateway.")] = ""
    mac_address: Annotated[str, Meta(description="The MAC address of the interface behind it.")] = ""
    subnet_address_space: Annotated[str, Meta(description="The subnet's IPv4 range, as a CIDR.")] = ""
    subnet_address_space_v6: Annotated[str, Meta(description="The subnet's IPv6 range, as a CIDR.")] = ""
    cidrs: Annotated[
        list[CidrOfAddresses],
        Meta(
            description="The ranges that the addresses are in, where that is more than one; the primary address's first."
        ),
    ] = field(default_factory=list)
    version: Annotated[
        Int64, Meta(description="Grows with every change of the addresses; an older one is ignored.")
    ] = always(0)
    node_ip: Annotated[str, Meta(description="The node's own address in the network.")] = field(
        default="", name="nodeIP"
    )
    subscription_id: Annotated[str, Meta(description="The cloud subscription of the network.")] = field(
        default="", name="subcriptionID"
    )
    resource_group_id: Annotated[str, Meta(description="The cloud resource group of the network.")] = field(
        default="", name="resourceGroupID"
    )
    vnet_id: Annotated[str, Meta(description="The virtual network the subnet is in.")] = field(
        default="", name="vnetID"
    )
    subnet_id: Annotated[str, Meta(description="The subnet's id in the cloud.")] = field(
        default="", name="subnetID"
    )
    status: Annotated[
        ContainerStatus | None, Meta(description="How the last request for this network container ended.")
    ] = None


class ScalerStatus(Part, frozen=True, kw_only=True):
    """How the node's pool is to be sized, unless the subnet's ClusterSubnet says otherwise."""

    batch_size: Annotated[Int64, Meta(description="Addresses are held in multiples of this.")] = 0
    release_threshold_percent: Annotated[
        Int64, Meta(description="More free than this share of a batch is given back.")
    ] = 0
    request_threshold_percent: Annotated[
        Int64, Meta(description="Fewer free than this share of a batch asks for more.")
    ] = 0
    max_ip_count: Annotated[Int64, Meta(description="The most addresses the node may hold.")] = field(
        default=0, name="maxIPCount"
    )

    @property
    def is_written(self) -> bool:
        """Whether a controller has written it: one with nothing but zeros was never written."""
        return self != ScalerStatus()

    @property
    def stated(self) -> NodeScaler:
        """The parameters it states. In a written one every field counts, zeros too, except that a batch is at least 1."""
        if not self.is_written:
            return NodeScaler()
        return NodeScaler(
            batch=max(self.batch_size, 1),
            request_percent=self.request_threshold_percent,
            max_ips=self.max_ip_count or None,
        )


class NodeNetworkConfigSpec(Part, frozen=True, kw_only=True):
    """What the node asks for."""

    requested_ip_count: Annotated[
        Int64, Meta(description="How many secondary addresses the node wants in each network container.")
    ] = always(0, name="requestedIPCount")
    ips_not_in_use: Annotated[
        list[str], Meta(description="Names of addresses the node gives back; never addresses themselves.")
    ] = field(default_factory=list, name="ipsNotInUse")
    availability_zone: Annotated[int, Meta(description="The zone the node's machine is in.")] = 0


class NodeNetworkConfigStatus(Part, frozen=True, kw_only=True):
    """What the node was given."""

    assigned_ip_count: Annotated[int, Meta(description="How many secondary addresses the node holds.")] = (
        always(0, name="assignedIPCount")
    )
    scaler: ScalerStatus = ScalerStatus()
    status: Annotated[
        ConfigStatus | None, Meta(description="How far the request controller is with the spec.")
    ] = None
    network_containers: Annotated[
        list[NetworkContainer], Meta(description="The node's holdings, one per subnet.")
    ] = field(default_factory=list)
    conditions: Conditions = field(default_factory=list)


class NodeNetworkConfig(Resource, frozen=True, kw_only=True):
    """A node's request for pod addresses, and what it was given; named after the node and owned by it."""

    api: ClassVar[Api] = Api(
        group="acn.azure.com",
        version="v1alpha",
        kind="NodeNetworkConfig",
        plural="nodenetworkconfigs",
        namespaced=True,
        status_subresource=True,
        short_names=("nnc",),
        columns=(
            Column(name="Requested IPs", type="integer", json_path=".spec.requestedIPCount", priority=1),
            Column(name="Allocated IPs", type="integer", json_path=".status.assignedIPCount"),
            Column(
                name="Subnet", type="string", json_path=".status.networkContainers[*].subnetName", priority=1
            ),
            Column(
                name="Subnet CIDR",
                type="string",
                json_path=".status.networkContainers[*].subnetAddressSpace",
                priority=1,
            ),
            Column(name="NC ID", type="string", json_path=".status.networkContainers[*].id", priority=1),
            Column(name="NC Mode", type="string", json_path=".status.networkContainers[*].assignmentMode"),
            Column(name="NC Type", type="string", json_path=".status.networkContainers[*].type", priority=1),
            Column(name="NC Version", type="integer", json_path=".status.networkContainers[*].version"),
            # Ours come after those of Azure CNS: what a person wants to see first is then in sight, too.
            Column(name="Requested", type="integer", json_path=".spec.requestedIPCount"),
            Column(name="Reason", type="string", json_path='.status.conditions[?(@.type=="Granted")].reason'),
        ),
    )

    spec: NodeNetworkConfigSpec = field(
        default_factory=NodeNetworkConfigSpec
    )  # sent always: it says the count
    status: NodeNetworkConfigStatus = NodeNetworkConfigStatus()

    @property
    def node_uid(self) -> str:
        """The uid of the Node that controls this object; "" if none does.

        Only an owner reference to a core/v1 Node with `controller: true` counts, of which Kubernetes allows one: any other
        owner may have been added by another program, and says nothing of whose addresses these are.
        """
        return next(
            (
                owner.uid
                for owner in self.metadata.owner_references
                if owner.controller
                and (owner.api_version, owner.kind) == (Node.api.api_version, Node.api.kind)
            ),
            "",
        )
