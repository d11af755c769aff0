"""What clients of Azure CNS send to a node agent, and read from it: the names are theirs (design W8).

The older of each pair of calls spells its keys with capitals, the newer without. Keys of a request are matched without
regard to case (`podtide.cni.documents`), so one struct reads both; answers keep each call's own spelling.
"""

from enum import IntEnum
from typing import Any

from msgspec import Struct, field

from podtide.core.pool.states import State


class ReturnCode(IntEnum):
    """The codes of the answers given here. Their names go into a header."""

    SUCCESS = 0
    INVALID_REQUEST = 23
    INCONSISTENT_IP_CONFIG_STATE = 29
    FAILED_TO_ALLOCATE_IP_CONFIG = 32
    EMPTY_ORCHESTRATOR_CONTEXT = 33
    UNSUPPORTED_ORCHESTRATOR_CONTEXT = 34
    UNEXPECTED_ERROR = 99

    @property
    def title(self) -> str:
        """The name as CNS says it."""
        return _TITLES[self]


_TITLES = {
    ReturnCode.SUCCESS: "Success",
    ReturnCode.INVALID_REQUEST: "InvalidRequest",
    ReturnCode.INCONSISTENT_IP_CONFIG_STATE: "InconsistentIPConfigState",
    ReturnCode.FAILED_TO_ALLOCATE_IP_CONFIG: "FailedToAllocateIpConfig",
    ReturnCode.EMPTY_ORCHESTRATOR_CONTEXT: "EmptyOrchestratorContext",
    ReturnCode.UNSUPPORTED_ORCHESTRATOR_CONTEXT: "UnsupportedOrchestratorContext",
    ReturnCode.UNEXPECTED_ERROR: "UnexpectedError",
}

WIRE_STATES = {
    State.PENDING_PROGRAMMING: "PendingProgramming",
    State.AVAILABLE: "Available",
    State.ASSIGNED: "Assigned",
    State.PENDING_RELEASE: "PendingRelease",
    State.QUARANTINED: "PendingProgramming",
    State.ORPHANED: "Assigned",
}
"""The wire knows four states: see `podtide.core.pool.states`."""


class IpConfigRequest(Struct, frozen=True, kw_only=True):
    """A sandbox's interface wants its addresses, or is gone. The older call wants at most one certain address."""

    desired_ip_addresses: tuple[str, ...] = field(default=(), name="desiredIPAddresses")
    desired_ip_address: str = field(default="", name="desiredIPAddress")
    infra_container_id: str = field(default="", name="infraContainerID")
    orchestrator_context: Any = field(default=None, name="orchestratorContext")
    """Which pod it is: JSON that CNS passes on unread, so it may be anything."""
    ifname: str = ""


class KubernetesPodInfo(Struct, frozen=True, kw_only=True):
    """The orchestrator context."""

    pod_name: str = field(default="", name="podName")
    pod_namespace: str = field(default="", name="podNamespace")


class DebugRequest(Struct, frozen=True, kw_only=True):
    """Which addresses to show, by state."""

    states: tuple[str, ...] = field(default=(), name="IPConfigStateFilter")


class IpSubnet(Struct, frozen=True, kw_only=True):
    """An address and its network's prefix length."""

    ip_address: str = field(default="", name="IPAddress")
    prefix_length: int = field(default=0, name="PrefixLength")


class IpConfiguration(Struct, frozen=True, kw_only=True):
    """A network container's primary address, and what its network is like."""

    ip_subnet: IpSubnet = field(default=IpSubnet(), name="IPSubnet")
    dns_servers: tuple[str, ...] = field(default=(), name="DNSServers")
    gateway: str = field(default="", name="GatewayIPAddress")


class HostIpInfo(Struct, frozen=True, kw_only=True, rename="pascal"):
    """The network as the host sees it."""

    gateway: str = ""
    primary_ip: str = field(default="", name="PrimaryIP")
    subnet: str = ""


class PodIpInfo(Struct, frozen=True, kw_only=True):
    """One address of a pod, with all that the plugin sets up by it."""

    pod_ip_config: IpSubnet = field(default=IpSubnet(), name="PodIPConfig")
    primary: IpConfiguration = field(default=IpConfiguration(), name="NetworkContainerPrimaryIPConfig")
    host: HostIpInfo = field(default=HostIpInfo(), name="HostPrimaryIPInfo")
    nic_type: str = field(default="", name="NICType")
    interface_name: str = field(default="", name="InterfaceName")
    mac_address: str = field(default="", name="MacAddress")
    skip_default_routes: bool = field(default=False, name="SkipDefaultRoutes")
    routes: tuple[str, ...] = field(default=(), name="Routes")
    container_id: str = field(default="", name="NetworkContainerID")


INFRA_NIC = "InfraNIC"


class Response(Struct, frozen=True):
    """How it went."""

    return_code: int = field(name="ReturnCode")
    message: str = field(default="", name="Message")


class IpConfigsResponse(Struct, frozen=True, kw_only=True):
    """The answer to the newer calls, and to the older release."""

    pod_ip_info: tuple[PodIpInfo, ...] = field(default=(), name="podIPInfo")
    response: Response


class IpConfigResponse(Struct, frozen=True, kw_only=True):
    """The answer to the older request."""

    pod_ip_info: PodIpInfo = field(default=PodIpInfo(), name="PodIpInfo")
    response: Response = field(name="Response")


class PodInfo(Struct, frozen=True, kw_only=True, rename="pascal"):
    """Who has an address."""

    pod_name: str
    pod_namespace: str
    pod_infra_container_id: str = field(name="PodInfraContainerID")
    pod_interface_id: str = field(name="PodInterfaceID")
    version: int = 1
    """CNS counts its ways of naming a pod: this is the one by sandbox and interface."""
    secondary_interface_set: bool = False


class IpConfigurationStatus(Struct, frozen=True, kw_only=True):
    """One address of the pool."""

    state: str
    name: str = field(name="ID")
    ip_address: str = field(name="IPAddress")
    last_state_transition: str = field(name="LastStateTransition")
    container_id: str = field(name="NCID")
    pod_info: PodInfo | None = field(name="PodInfo")


class DebugResponse(Struct, frozen=True, kw_only=True):
    """The pool's addresses."""

    addresses: tuple[IpConfigurationStatus, ...] = field(name="IPConfigurationStatus")
    response: Response = field(name="Response")
