"""The few messages of rtnetlink that a bridge needs: links and addresses, to read, make, change and delete.

Written out instead of taken from pyroute2: importing that costs 16 MB and 230 modules in a program that is to stay
below 50 MB on every node, and seven kinds of message are enough here. Numbers and layouts are those of the kernel's
linux/netlink.h, linux/rtnetlink.h, linux/if_link.h and linux/if_addr.h, which never change.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum, IntFlag
from ipaddress import IPv4Interface, ip_address, ip_interface
from struct import Struct as Layout

from msgspec import Struct

LINK_CHANGES, IPV4_CHANGES, IPV6_CHANGES = 0x1, 0x10, 0x100
"""Groups of messages that a socket can be bound to."""
IS_UP = 0x1
"""The flag of a link that was set up (IFF_UP)."""

_HEADER = Layout("=IHHII")  # length, type, flags, sequence number, port
_LINK = Layout("=BxHiII")  # family, device type, index, flags, mask of flags
_ADDRESS = Layout("=BBBBI")  # family, prefix length, flags, scope, index
_ATTRIBUTE = Layout("=HH")  # length, type
_NUMBER = Layout("=I")
_STATUS = Layout("=i")  # negative errno, or 0
_ALIGNMENT = 4
_ATTRIBUTE_TYPE = 0x3FFF
"""Without the bits for nesting and byte order."""
_RECEIVED_BYTES = 1 << 17
_SOL_NETLINK, _NETLINK_GET_STRICT_CHK = 270, 12
_NO_CHECK_OF_DUPLICATES = 0x02
"""IFA_F_NODAD."""


class MessageType(IntEnum):
    """What a message is about."""

    STATUS = 2
    END = 3
    NEW_LINK = 16
    DELETE_LINK = 17
    GET_LINK = 18
    NEW_ADDRESS = 20
    DELETE_ADDRESS = 21
    GET_ADDRESS = 22


class _Flag(IntFlag):
    REQUEST = 0x1
    ACKNOWLEDGE = 0x4
    DUMP = 0x300
    EXCLUSIVE = 0x200
    CREATE = 0x400


class _LinkAttribute(IntEnum):
    MAC = 1
    NAME = 3
    MTU = 4
    MASTER = 10
    INFO = 18


_KIND_IN_INFO = 1


class _AddressAttribute(IntEnum):
    ADDRESS = 1
    LOCAL = 2
    BROADCAST = 4
    FLAGS = 8
    PROTOCOL = 11


class LinkMessage(Struct, frozen=True, kw_only=True):
    """A network interface."""

    type: int
    index: int
    name: str
    kind: str
    """Such as `bridge`; "" for one that is not virtual."""
    mac: bytes
    master: int
    """The index of the bridge that it is a port of; 0 for none."""
    flags: int


class AddressMessage(Struct, frozen=True, kw_only=True):
    """An address of an interface."""

    type: int
    index: int
    """The interface's."""
    address: str
    """With its prefix length."""
    protocol: int
    """The mark of the program that put it there; 0 if it set none, or the kernel is older than 5.18."""


class LinkSocket:
    """A socket for requests, which the kernel answers before the call returns. Raises OSError."""

    def __init__(self) -> None:
        self._socket = _open()
        with suppress(OSError):  # kernels before 4.20 send the addresses of all interfaces
            self._socket.setsockopt(_SOL_NETLINK, _NETLINK_GET_STRICT_CHK, 1)
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def link(self, name: str) -> LinkMessage | None:
        """The interface of this name."""
        request = _LINK.pack(0, 0, 0, 0, 0) + _attribute(_LinkAttribute.NAME, _text(name))
        try:
            answers = self._ask(MessageType.GET_LINK, 0, request)
        except OSError as error:
            if _is_missing(error):
                return None
            raise
        return next((each for each in answers if isinstance(each, LinkMessage)), None)

    def ports(self, index: int) -> list[LinkMessage]:
        """The ports of a bridge."""
        answers = self._ask(MessageType.GET_LINK, _Flag.DUMP, _LINK.pack(0, 0, 0, 0, 0))
        return [each for each in answers if isinstance(each, LinkMessage) and each.master == index]

    def create_bridge(self, name: str, mac: bytes, mtu: int) -> None:
        """Create a bridge that keeps this MAC address. OSError with EEXIST if there is an interface of this name."""
        request = _LINK.pack(0, 0, 0, 0, 0) + _attribute(_LinkAttribute.NAME, _text(name))
        request += _attribute(_LinkAttribute.MAC, mac)
        if mtu:
            request += _attribute(_LinkAttribute.MTU, _NUMBER.pack(mtu))
        request += _attribute(_LinkAttribute.INFO, _attribute(_KIND_IN_INFO, _text("bridge")))
        self._ask(MessageType.NEW_LINK, _Flag.CREATE | _Flag.EXCLUSIVE, request)

    def set_up(self, index: int) -> None:
        """Set an interface up."""
        self._ask(MessageType.NEW_LINK, 0, _LINK.pack(0, 0, index, IS_UP, IS_UP))

    def set_mac(self, index: int, mac: bytes) -> None:
        """Set the MAC address of an interface. From then on a bridge keeps it, whatever its ports have."""
        request = _LINK.pack(0, 0, index, 0, 0) + _attribute(_LinkAttribute.MAC, mac)
        self._ask(MessageType.NEW_LINK, 0, request)

    def delete_link(self, index: int) -> None:
        """Delete an interface."""
        self._ask(MessageType.DELETE_LINK, 0, _LINK.pack(0, 0, index, 0, 0))

    def addresses(self, index: int) -> list[AddressMessage]:
        """The addresses of an interface, of both families."""
        answers = self._ask(MessageType.GET_ADDRESS, _Flag.DUMP, _ADDRESS.pack(0, 0, 0, 0, index))
        return [each for each in answers if isinstance(each, AddressMessage) and each.index == index]

    def add_address(self, index: int, address: str, protocol: int) -> None:
        """Give an interface an address. OSError with EEXIST if it has that."""
        interface = ip_interface(address)
        request = _address_request(index, address) + _attribute(_AddressAttribute.PROTOCOL, bytes([protocol]))
        if isinstance(interface, IPv4Interface):
            request += _attribute(_AddressAttribute.BROADCAST, interface.network.broadcast_address.packed)
        else:
            # The gateway is on no other bridge of this node, and a check for duplicates would delay the first pod.
            request += _attribute(_AddressAttribute.FLAGS, _NUMBER.pack(_NO_CHECK_OF_DUPLICATES))
        self._ask(MessageType.NEW_ADDRESS, _Flag.CREATE | _Flag.EXCLUSIVE, request)

    def delete_address(self, index: int, address: str) -> None:
        """Take an address off an interface. OSError with EADDRNOTAVAIL if it does not have it."""
        self._ask(MessageType.DELETE_ADDRESS, 0, _address_request(index, address))

    def _ask(self, type_: MessageType, flags: int, body: bytes) -> list[LinkMessage | AddressMessage]:
        """Send a request, and return what is answered until its end. OSError if it is refused."""
        self._sequence += 1
        flags |= _Flag.REQUEST if flags & _Flag.DUMP == _Flag.DUMP else _Flag.REQUEST | _Flag.ACKNOWLEDGE
        header = _HEADER.pack(_HEADER.size + len(body), type_, flags, self._sequence, 0)
        self._socket.send(header + body)
        answers: list[LinkMessage | AddressMessage] = []
        while True:
            for answered, sequence, content in _messages(self._socket.recv(_RECEIVED_BYTES)):
                if sequence != self._sequence:
                    continue  # the rest of an answer that a failed call left behind
                if answered in (MessageType.STATUS, MessageType.END):
                    _raise_if_refused(content)
                    return answers
                if (message := _decoded(answered, content)) is not None:
                    answers.append(message)


class ChangeSocket:
    """A socket on which the kernel tells of changes to links and addresses."""

    def __init__(self) -> None:
        self._socket = _open(LINK_CHANGES | IPV4_CHANGES | IPV6_CHANGES)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """The descriptor: readable when something changed."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def read(self) -> list[LinkMessage | AddressMessage] | None:
        """The changes since the last call. None if the kernel had to drop some, so that anything may have changed."""
        changes: list[LinkMessage | AddressMessage] = []
        while True:
            try:
                received = self._socket.recv(_RECEIVED_BYTES)
            except BlockingIOError:
                return changes
            except OSError:
                return None  # ENOBUFS: they came faster than they were read
            changes += (
                message
                for type_, _, content in _messages(received)
                if (message := _decoded(type_, content)) is not None
            )


def _open(groups: int = 0) -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    opened.bind((0, groups))
    return opened


def _messages(received: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The type, sequence number and body of each message."""
    while len(received) >= _HEADER.size:
        length, type_, _, sequence, _ = _HEADER.unpack_from(received)
        yield type_, sequence, received[_HEADER.size : length]
        received = received[_aligned(length) :]


def _decoded(type_: int, body: bytes) -> LinkMessage | AddressMessage | None:
    if type_ in (MessageType.NEW_LINK, MessageType.DELETE_LINK):
        return _link(type_, body)
    if type_ in (MessageType.NEW_ADDRESS, MessageType.DELETE_ADDRESS):
        return _address(type_, body)
    return None


def _link(type_: int, body: bytes) -> LinkMessage:
    _, _, index, flags, _ = _LINK.unpack_from(body)
    found = _attributes(body[_LINK.size :])
    info = _attributes(found.get(_LinkAttribute.INFO, b""))
    return LinkMessage(
        type=type_,
        index=index,
        name=_string(found.get(_LinkAttribute.NAME, b"")),
        kind=_string(info.get(_KIND_IN_INFO, b"")),
        mac=found.get(_LinkAttribute.MAC, b""),
        master=_NUMBER.unpack(found[_LinkAttribute.MASTER])[0] if _LinkAttribute.MASTER in found else 0,
        flags=flags,
    )


def _address(type_: int, body: bytes) -> AddressMessage | None:
    _, length, _, _, index = _ADDRESS.unpack_from(body)
    found = _attributes(body[_ADDRESS.size :])
    # An IPv4 address is the local one; what the other attribute has is the peer's, where there is one.
    packed = found.get(_AddressAttribute.LOCAL) or found.get(_AddressAttribute.ADDRESS)
    if packed is None:
        return None
    return AddressMessage(
        type=type_,
        index=index,
        address=f"{ip_address(packed)}/{length}",
        protocol=found.get(_AddressAttribute.PROTOCOL, b"\0")[0],
    )


def _address_request(index: int, address: str) -> bytes:
    interface = ip_interface(address)
    family = socket.AF_INET if isinstance(interface, IPv4Interface) else socket.AF_INET6
    return (
        _ADDRESS.pack(family, interface.network.prefixlen, 0, 0, index)
        + _attribute(_AddressAttribute.LOCAL, interface.ip.packed)
        + _attribute(_AddressAttribute.ADDRESS, interface.ip.packed)
    )


def _attribute(type_: int, content: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(content)
    return _ATTRIBUTE.pack(length, type_) + content + bytes(_aligned(length) - length)


def _attributes(encoded: bytes) -> dict[int, bytes]:
    found = {}
    while len(encoded) >= _ATTRIBUTE.size:
        length, type_ = _ATTRIBUTE.unpack_from(encoded)
        found[type_ & _ATTRIBUTE_TYPE] = encoded[_ATTRIBUTE.size : length]
        encoded = encoded[max(_aligned(length), _ATTRIBUTE.size) :]
    return found


def _raise_if_refused(content: bytes) -> None:
    refusal = -_STATUS.unpack_from(content)[0] if len(content) >= _STATUS.size else 0
    if refusal:
        raise OSError(refusal, os.strerror(refusal))


def _is_missing(error: OSError) -> bool:
    return error.errno == errno.ENODEV


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def _string(content: bytes) -> str:
    return content.rstrip(b"\0").decode(errors="replace")
