"""Where a service listens: an address and a port, and only on loopback where there is no authentication."""

import os
import re
from ipaddress import ip_address

from msgspec import Struct

from podtide.core.errors import FixError, InvalidInput

_ADDRESS = re.compile(r"(\[(?P<bracketed>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")
_LAST_PORT = 65535


class InvalidListenAddress(InvalidInput):
    """An invalid address to listen on, or one that must not be reachable from other machines."""


class CannotListen(FixError):
    """The port is in use, or the process may not bind it."""


class ListenAddress(Struct, frozen=True):
    """An address of this machine and a port; port 0 stands for any that is free."""

    host: str
    port: int
    flag: str = ""
    """The option that named it, for errors."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str, *, flag: str = "", open_because: str = "") -> ListenAddress:
    """Parse `127.0.0.1:8001`, `0.0.0.0:8080`, `localhost:0` or `[::1]:8001`.

    A service without authentication says so in `open_because`, and is refused every address but the loopback's.
    `flag` is the option that the address was given by.
    """
    said = f"{flag} {text!r}" if flag else repr(text)
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _LAST_PORT:
        raise InvalidListenAddress(
            f"{said} is not an address to listen on: give one such as 127.0.0.1:8001, with port 0 for any that is free"
        )
    host = match["bracketed"] or match["host"]
    if open_because and not is_loopback(host):
        raise InvalidListenAddress(f"{said} could be reached by others, and {open_because}")
    return ListenAddress("127.0.0.1" if host == "localhost" else host, int(match["port"]), flag)


def cannot_listen(address: ListenAddress, error: OSError) -> CannotListen:
    """The error to raise, with the kernel's own reason: servers wrap it, each in its own words."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    by = f" by {address.flag}" if address.flag else ""
    return CannotListen(
        f"cannot listen on {address} ({reason}): name another address or port{by}, or port 0 for any that is free"
    )


def host_of(authority: str) -> str:
    """The host in what may be a host and a port: `127.0.0.1:8001`, `localhost`, `[::1]:8001`."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether a host names only this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
