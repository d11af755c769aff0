"""The configuration list of a node's primary network: a standard interface plugin, with addresses from podtide.

The interface plugins are those that every node has (containernetworking's). What podtide must get right is what it asks
of them:

- `ptp` gives each pod a link of its own to the node, which routes for it, and claims the subnet's gateway on that link.
  Pods of one subnet on different nodes reach each other through the nodes, so it is right wherever the network behind
  the nodes knows which node has which address.
- `bridge` puts the pods of a node on one bridge that has the gateway's address: for a node whose subnet is its own, for
  to the node that whole subnet is on the bridge. The gateways are the agent's to put there (`agent.bridge`): as
  `isGateway`, the plugin would refuse the second IPv4 gateway of a subnet with two CIDRs.

Neither adds a default route by itself: the routes are IPAM's to say, and so they are in its part.

The list is of CNI 1.0.0 unless told otherwise. A runtime asks plugins for STATUS and GC from 1.1.0 on, and podtide
answers both; but a plugin that does not know the version it is called with refuses every call, so one old interface
plugin would leave a node without pods (Debian 12's know 1.0.0 at most). What is lost at 1.0.0: the list stays on the
disk, so a node that was rebooted counts as ready before its agent is, and its first ADDs are told to try again. GC is
hardly missed: a runtime that collects garbage calls DEL for sandboxes that it knows to be dead, and the agent collects
by itself those that the runtime has forgotten. And the reference interface plugins that know 1.1.0 pass STATUS on to
IPAM, but not GC (release 1.9.0).

With 1.1.0 the list offers both versions (`cniVersions`, which came with 1.1.0): a runtime that knows 1.1.0 takes that, and an
older one sees 1.0.0 alone. So the choice depends on the interface plugins, not on the runtime as well.
"""

import re
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from podtide.cni.documents import decode
from podtide.cni.errors import Undecodable
from podtide.core.errors import InvalidConfig
from podtide.core.ranges import parse_network

IPAM_TYPE = "podtide"

BRIDGE = "podtide0"
"""The node's bridge, in a network of the type `bridge`."""
_NETWORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""As CNI's specification has it."""
_SMALLEST_MTU, _LARGEST_MTU = 68, 65_535
"""What IPv4 needs, and what its packets can have."""


class InterfaceType(StrEnum):
    """The plugin that creates the pod's interface."""

    PTP = "ptp"
    BRIDGE = "bridge"


class ListVersion(StrEnum):
    """The newest version of CNI that plugins are called with."""

    V1_0 = "1.0.0"
    """What interface plugins of the last years all know."""
    V1_1 = "1.1.0"
    """With STATUS."""


class PrimaryNetwork(Struct, frozen=True, kw_only=True):
    """The options of a node's primary network."""

    name: str = "podtide"
    cni_version: ListVersion = ListVersion.V1_0
    type: InterfaceType = InterfaceType.PTP
    mtu: int = 0
    """0 leaves it to the interface plugin."""
    ip_masq: bool = False
    """Whether what pods send outside their subnet bears the node's address."""
    routes: tuple[str, ...] = ("0.0.0.0/0",)
    """What pods reach through the gateway; a second address needs its own, `::/0`."""

    def __post_init__(self) -> None:
        if not _NETWORK_NAME.fullmatch(self.name):
            raise InvalidConfig(
                f"--network-name {self.name!r} is not a valid network name: give letters, digits, '.', '_' "
                "and '-', with a letter or digit first, such as podtide"
            )
        if self.mtu and not _SMALLEST_MTU <= self.mtu <= _LARGEST_MTU:
            raise InvalidConfig(
                f"--mtu={self.mtu} is refused: give {_SMALLEST_MTU} to {_LARGEST_MTU}, or 0 for the interface plugin's own"
            )
        for route in self.routes:
            parse_network(route)


def render_conflist(network: PrimaryNetwork) -> bytes:
    """The configuration list, as a runtime reads it."""
    interface: dict[str, Any] = {"type": network.type.value}
    if network.type is InterfaceType.BRIDGE:
        interface |= {"bridge": BRIDGE, "isGateway": False, "hairpinMode": True}
    if network.mtu:
        interface["mtu"] = network.mtu
    interface["ipMasq"] = network.ip_masq
    interface["ipam"] = {"type": IPAM_TYPE, "routes": [{"dst": route} for route in network.routes]}
    # It comes with the interface plugins, and without it a pod's hostPort would lead nowhere.
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    document = {**_versions(network.cni_version), "name": network.name, "plugins": [interface, ports]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _versions(newest: ListVersion) -> dict[str, Any]:
    """The keys by which a runtime chooses the version."""
    oldest: dict[str, Any] = {"cniVersion": ListVersion.V1_0.value}
    if newest is ListVersion.V1_0:
        return oldest
    return oldest | {"cniVersions": [ListVersion.V1_0.value, newest.value]}


def is_podtide_conflist(text: bytes) -> bool:
    """Whether this is a list in which pods get their addresses from podtide."""
    try:
        plugins = decode(text, "network configuration").get("plugins")
    except Undecodable:
        return False
    if not isinstance(plugins, list):
        return False
    return any(_has_our_ipam(plugin) for plugin in plugins)


def _has_our_ipam(plugin: object) -> bool:
    ipam = plugin.get("ipam") if isinstance(plugin, dict) else None
    return isinstance(ipam, dict) and ipam.get("type") == IPAM_TYPE
