"""Which proxy to go through, by the environment variables that every program on a machine shares.

As Go reads them, and with it kubectl: NO_PROXY lists host names (and with them everything below), addresses, networks,
names and addresses with a port if wanted, or `*`; this machine itself is never reached through a proxy. Python's own
reading knows no networks, and `NO_PROXY=10.0.0.0/8` is how clusters are set up.
"""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from podtide.cluster.kubernetes.access import InvalidAccess

_PORTS = {"http": 80, "https": 443}
_THIS_MACHINE = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


def check_proxy(url: str, where: str) -> None:
    """Refuse a proxy of an unsupported kind. Through a plain HTTP proxy, TLS passes untouched."""
    if not url.startswith("http://"):
        raise InvalidAccess(f"{where} is not the URL of an HTTP proxy: give one such as http://host:port")


def proxy_for(url: str, environment: Mapping[str, str]) -> str | None:
    """The proxy for a server; None for a direct connection."""
    server = urlsplit(url)
    variable = f"{server.scheme}_proxy"
    proxy = environment.get(variable.upper()) or environment.get(variable)
    if not proxy or _is_this_machine(server.hostname or ""):
        return None
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if any(_covers(exception.strip().lower(), server) for exception in exceptions.split(",")):
        return None
    named = proxy if "://" in proxy else f"http://{proxy}"
    check_proxy(named, variable.upper())
    return named


def _is_this_machine(host: str) -> bool:
    return host == "localhost" or any(_is_in(host, network) for network in _THIS_MACHINE)


def _covers(exception: str, server: SplitResult) -> bool:
    host = server.hostname or ""
    if exception in {"", "*"}:
        return exception == "*"
    try:
        return _is_in(host, ip_network(exception, strict=False))
    except ValueError:
        pass
    place = urlsplit(f"//{exception}")
    try:
        port = place.port
    except ValueError:
        return False
    if port is not None and port != (server.port or _PORTS[server.scheme]):
        return False
    name = (place.hostname or "").removeprefix("*")
    return host == name or host.endswith(f".{name.removeprefix('.')}")


def _is_in(host: str, network: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(host) in network
    except ValueError:
        return False
