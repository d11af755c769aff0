"""Where to listen: where nobody is asked who they are, on this machine's own loopback address and nowhere else."""

from ipaddress import ip_address

from msgspec import Struct

from podtide.core.errors import FixError, InvalidInput

_LAST_PORT = 65535


class InvalidListenAddress(InvalidInput):
    """No address to listen on, or one that others could reach without a token."""


class CannotListen(FixError):
    """The port is taken, or may not be."""


class ListenAddress(Struct, frozen=True):
    """An address of this machine and a port; port 0 stands for any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str, *, with_tokens: bool) -> ListenAddress:
    """`127.0.0.1:8080`, `0.0.0.0:8080`, `localhost:0` or `[::1]:8080`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > _LAST_PORT:
        raise InvalidListenAddress(
            f"{text!r} is no address to listen on: give one such as 127.0.0.1:8080, with port 0 for any that is free"
        )
    if not with_tokens and not is_loopback(host):
        raise InvalidListenAddress(
            f"{text!r} could be reached by others, and without tokens nobody is asked who they are: "
            "give --tokens FILE, or listen on 127.0.0.1"
        )
    return ListenAddress(host, int(port))


def host_of(authority: str) -> str:
    """The host in what may be a host and a port: `127.0.0.1:8080`, `localhost`, `[::1]:8080`."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by a name or address that no other machine has."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
