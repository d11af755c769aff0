"""The bridge of a Linux node, through rtnetlink: the adapter of the port `Bridge`.

It works in the network namespace of the agent, which is the node's, and takes the capability NET_ADMIN and no program.
"""

import asyncio
import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from secrets import token_bytes

from podtide.agent.bridge.forwarding import turn_on_forwarding
from podtide.agent.bridge.port import BridgeError
from podtide.agent.bridge.rtnetlink import (
    IS_UP,
    AddressMessage,
    ChangeSocket,
    LinkMessage,
    LinkSocket,
    MessageType,
)
from podtide.core.pool.address import Family
from podtide.core.pool.bridge_gateways import BridgeAddress

_PODTIDE = 0x50
"""The mark of podtide's addresses (`ip address` shows it as `proto 0x50`). The kernel uses the numbers up to 3."""
_KIND = "bridge"
_LACKS_RIGHTS = (
    "the agent needs the capability NET_ADMIN, in the network namespace of the node (hostNetwork); "
    "the chart gives it with cni.type bridge"
)


class NetlinkBridge:
    """A bridge of this machine. `mtu` is for one that is created here; 0 leaves it to the kernel."""

    def __init__(self, name: str, *, mtu: int = 0) -> None:
        self._name = name
        self._mtu = mtu
        self._settled: set[int] = set()
        """The indexes of bridges whose MAC address does not change."""
        with _explained(f"the interfaces of this node cannot be read, for the bridge {name}"):
            self._socket = LinkSocket()

    @property
    def name(self) -> str:
        """The name of the interface."""
        return self._name

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def ensure(self) -> tuple[BridgeAddress, ...]:
        """Create the bridge if it is missing, set it up if it is down, and return its addresses."""
        with _explained(f"the bridge {self._name} cannot be set up"):
            link = self._link() or self._create()
            if not link.flags & IS_UP:
                self._socket.set_up(link.index)
            return tuple(
                BridgeAddress(each.address, is_ours=each.protocol == _PODTIDE)
                for each in self._socket.addresses(link.index)
            )

    def add(self, address: str) -> None:
        """Put an address on the bridge."""
        with _explained(f"{address} cannot be put on the bridge {self._name}", but=errno.EEXIST):
            if link := self._link():
                self._keep_mac(link)
                self._socket.add_address(link.index, address, _PODTIDE)

    def remove(self, address: str) -> None:
        """Take an address off the bridge."""
        with _explained(f"{address} cannot be taken off the bridge {self._name}", but=errno.EADDRNOTAVAIL):
            if link := self._link():
                self._socket.delete_address(link.index, address)

    def forward(self, family: Family) -> bool:
        """Have the node forward packets of this family, if the agent may change that."""
        return turn_on_forwarding(family)

    def ports(self) -> tuple[str, ...] | None:
        """The names of the interfaces on the bridge; None if there is no bridge."""
        with _explained(f"the bridge {self._name} cannot be read"):
            link = self._link()
            return None if link is None else tuple(each.name for each in self._socket.ports(link.index))

    def delete(self) -> None:
        """Delete the bridge."""
        with _explained(f"the bridge {self._name} cannot be deleted"):
            if link := self._link():
                self._socket.delete_link(link.index)

    def watch(self, changed: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `changed` when the kernel tells of a change to the bridge or to its addresses."""
        return _watching(self._name, changed)

    def _create(self) -> LinkMessage:
        with suppress(FileExistsError):  # the bridge plugin, which creates it too, was quicker
            self._socket.create_bridge(self._name, _random_mac(), self._mtu)
        link = self._link()
        if link is None:
            raise BridgeError(f"the bridge {self._name} was deleted as soon as it was created: trying again")
        return link

    def _keep_mac(self, link: LinkMessage) -> None:
        """Have a bridge keep its MAC address that another program created: else it takes that of a port.

        One without ports gets another address, because the kernel ignores the one that it has.
        """
        if link.index not in self._settled:
            self._socket.set_mac(link.index, link.mac if self._socket.ports(link.index) else _random_mac())
            self._settled.add(link.index)

    def _link(self) -> LinkMessage | None:
        """The bridge; None if it is missing. BridgeError if another kind of interface has its name."""
        link = self._socket.link(self._name)
        if link is not None and link.kind != _KIND:
            raise BridgeError(
                f"{self._name} is an interface of the kind {link.kind or 'device'}, not a bridge: delete or rename it, "
                "and the agent creates the bridge"
            )
        return link


def _random_mac() -> bytes:
    """A MAC address for this machine alone: one station, locally administered."""
    first, *others = token_bytes(6)
    return bytes([first & 0xFC | 0x02, *others])


@contextmanager
def _watching(name: str, changed: Callable[[], None]) -> Iterator[None]:
    with _explained("changes to the interfaces of this node cannot be watched"):
        changes = ChangeSocket()
    loop = asyncio.get_running_loop()

    def is_about_it(change: LinkMessage | AddressMessage) -> bool:
        if isinstance(change, LinkMessage):
            return change.name == name
        return (
            change.type == MessageType.DELETE_ADDRESS
        )  # of any interface: that is rare, and a check costs little

    def read() -> None:
        told = changes.read()
        if told is None or any(is_about_it(change) for change in told):
            changed()

    loop.add_reader(changes.fileno(), read)
    try:
        yield
    finally:
        loop.remove_reader(changes.fileno())
        changes.close()


@contextmanager
def _explained(what: str, *, but: int = 0) -> Iterator[None]:
    """Turns an OSError into a BridgeError that says what to do; `but` is an errno that does not count as a failure."""
    try:
        yield
    except OSError as error:
        if error.errno == but:
            return
        advice = _LACKS_RIGHTS if error.errno == errno.EPERM else "the agent goes on trying"
        raise BridgeError(f"{what} ({error.strerror}): {advice}") from error
