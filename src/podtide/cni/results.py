"""What ADD answers, in the caller's version of the specification.

An IPAM plugin answers with addresses, routes and DNS, and leaves interfaces to the plugin that called it. The shape
changed twice: until 0.2.0 one address for each family, under `ip4` and `ip6`, with its family's routes inside; until
0.4.0 a list whose entries say their family in words; since 1.0.0 the same list without that word.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from podtide.cni.addresses import IPInterface, parse_interface
from podtide.cni.versions import at_least, spoken
from podtide.core.ranges import IPAddress


class Route(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A route, passed on as configured. The attributes after `gw` came with 1.1.0."""

    dst: str
    gw: str = ""
    mtu: int = 0
    advmss: int = 0
    priority: int = 0
    table: int | None = None
    scope: int | None = None

    @property
    def family(self) -> int:
        """4 or 6."""
        return parse_interface(self.dst).version


class Dns(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The resolver's configuration."""

    nameservers: tuple[str, ...] = ()
    domain: str = ""
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class AssignedAddress(msgspec.Struct, frozen=True):
    """An address with its network's prefix length, and the gateway of that network."""

    address: IPInterface
    gateway: IPAddress | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ADD."""

    addresses: tuple[AssignedAddress, ...]
    routes: tuple[Route, ...] = ()
    dns: Dns = Dns()


def render_result(result: Result, cni_version: str) -> bytes:
    """The result as JSON in the caller's version."""
    version = spoken(cni_version)
    document: dict[str, Any] = {"cniVersion": version}
    if at_least(version, "0.3.0"):
        with_family = not at_least(version, "1.0.0")
        document["ips"] = [_ip(item, with_family=with_family) for item in result.addresses]
        if result.routes:
            document["routes"] = _routes(result.routes, version)
    else:
        document |= _one_for_each_family(result, version)
    if result.dns != Dns():
        document["dns"] = result.dns
    return msgspec.json.encode(document)


def _ip(assigned: AssignedAddress, *, with_family: bool) -> dict[str, str]:
    family = {"version": str(assigned.address.version)} if with_family else {}
    return family | {"address": str(assigned.address)} | _gateway(assigned)


def _gateway(assigned: AssignedAddress) -> dict[str, str]:
    return {"gateway": str(assigned.gateway)} if assigned.gateway else {}


def _routes(routes: Iterable[Route], version: str) -> list[Route]:
    """The routes with no more attributes than the version has words for."""
    if at_least(version, "1.1.0"):
        return list(routes)
    return [Route(dst=route.dst, gw=route.gw) for route in routes]


def _one_for_each_family(result: Result, version: str) -> dict[str, Any]:
    """`ip4` and `ip6`. There is room for one address in each, and the first is the one that was asked for first."""
    document: dict[str, Any] = {}
    for assigned in result.addresses:
        family = assigned.address.version
        routes = _routes((route for route in result.routes if route.family == family), version)
        entry = {"ip": str(assigned.address)} | _gateway(assigned) | ({"routes": routes} if routes else {})
        document.setdefault(f"ip{family}", entry)
    return document
