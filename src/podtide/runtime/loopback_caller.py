"""Whose process is at the other end of a TCP connection within this machine.

A unix socket tells; of a TCP socket the kernel knows it too, because both ends are its own, and answers any process that
asks about the other end by its addresses (sock_diag(7)): the user who opened it. One question and one answer, however
many connections there are.

Only an established connection counts: of one that is being closed the kernel no longer knows whose it was, and says 0,
which is root.
"""

import socket
import struct

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_TCP_ESTABLISHED = 1
_ANY_STATE = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_ANSWER_SECONDS = 1.0
_ANSWER_BYTES = 8192

_HEADER = struct.Struct("=IHHII")
"""Length, type, flags, sequence, sender."""
_QUESTION = struct.Struct("=BBBxI")
"""Family, protocol, extensions, states; the socket's addresses follow."""
_ADDRESSES = struct.Struct("!HH16s16s")
"""Ports and addresses of the socket and of its peer; interface and cookie follow."""
_ANSWER = struct.Struct("=BBBB")
"""Family, state, timer, retransmissions; the socket's addresses follow, interface and cookie."""
_USER = struct.Struct("=IIII")
"""Timer, receive queue, send queue, user."""


def caller_uid(connection: socket.socket) -> int | None:
    """The user id of the process that opened the connection; None where it cannot be found."""
    try:
        peer, own = connection.getpeername(), connection.getsockname()
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWER_SECONDS)
            kernel.sendto(_question(connection.family, peer, own), (0, 0))
            return _uid_in(kernel.recv(_ANSWER_BYTES), peer, own)
    except (OSError, struct.error):
        return None


def _question(family: int, peer: tuple[str, int], own: tuple[str, int]) -> bytes:
    """The request to the kernel for the socket at the other end of this connection."""
    socket_id = _socket_id(family, peer, own) + struct.pack("=I", 0) + _NO_COOKIE
    body = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, _ANY_STATE) + socket_id
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body


def _socket_id(family: int, source: tuple[str, int], destination: tuple[str, int]) -> bytes:
    packed = [socket.inet_pton(family, place[0].partition("%")[0]) for place in (source, destination)]
    return _ADDRESSES.pack(source[1], destination[1], *packed)


def _uid_in(answer: bytes, peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None  # an error: there is no such socket in this network namespace, or the kernel has no inet_diag
    _, state, _, _ = _ANSWER.unpack_from(answer, _HEADER.size)
    ports = _ADDRESSES.unpack_from(answer, _HEADER.size + _ANSWER.size)[:2]
    if state != _TCP_ESTABLISHED or ports != (peer[1], own[1]):
        return None
    after_addresses = _HEADER.size + _ANSWER.size + _ADDRESSES.size + 4 + len(_NO_COOKIE)
    uid: int = _USER.unpack_from(answer, after_addresses)[3]
    return uid
