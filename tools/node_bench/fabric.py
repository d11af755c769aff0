"""The network between nodes: a namespace with a bridge that every node is on, and a router that knows where addresses are.

The control plane runs in it. A cloud's network delivers an address to the node that holds it; here the router has a route
for each of them.
"""

from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from namespaces.namespace import CannotMake, Namespace

BRIDGE = "nodes"
ROUTER, ROUTER_V6 = "172.30.0.1", "fd00:172:30::1"
_SETTINGS = {
    "/proc/sys/net/ipv4/ip_forward": "1",
    "/proc/sys/net/ipv6/conf/all/forwarding": "1",
    # Duplicate address detection makes every new IPv6 address wait a second.
    "/proc/sys/net/ipv6/conf/all/accept_dad": "0",
    "/proc/sys/net/ipv6/conf/default/accept_dad": "0",
}


class Place(Struct, frozen=True):
    """Where a node is on the fabric."""

    address: str
    address_v6: str

    @classmethod
    def of(cls, number: int) -> "Place":
        """That of the node with this number, from 1."""
        return cls(f"172.30.0.{10 + number}", f"fd00:172:30::{10 + number}")


class Fabric:
    """One network of nodes."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._routes: dict[str, str] = {}
        configure_router(namespace)
        namespace.ip("link", "add", BRIDGE, "type", "bridge")
        for address in (f"{ROUTER}/16", f"{ROUTER_V6}/64"):
            namespace.ip("address", "add", address, "dev", BRIDGE)
        namespace.ip("link", "set", BRIDGE, "up")

    @property
    def inside(self) -> tuple[str, ...]:
        """What to put before a command that is to run in it."""
        return self._namespace.prefix

    @property
    def name(self) -> str:
        """The namespace's."""
        return self._namespace.name

    def plug_in(self, cable: str, node: int) -> None:
        """Put a cable between the bridge and `eth0` of the process's network namespace."""
        end = ("peer", "name", "eth0", "netns", str(node))
        self._namespace.ip("link", "add", cable, "type", "veth", *end)
        self._namespace.ip("link", "set", cable, "master", BRIDGE, "up")

    def deliver(self, holders: dict[str, Place]) -> None:
        """Route each of these addresses to the node that holds it, and no others."""
        wanted = {
            address: place.address_v6 if ":" in address else place.address
            for address, place in holders.items()
        }
        for address in self._routes.keys() - wanted.keys():
            with suppress(CannotMake):  # the kernel has dropped it already
                self._namespace.ip("route", "delete", address, "via", self._routes[address])
            del self._routes[address]
        for address, via in wanted.items():
            if self._routes.get(address) != via:
                self._namespace.ip("route", "replace", address, "via", via)
                self._routes[address] = via


def configure_router(namespace: Namespace) -> None:
    """Let a namespace pass on what is not for itself."""

    def write() -> None:
        for file, value in _SETTINGS.items():
            Path(file).write_text(value)

    namespace.inside(write)
