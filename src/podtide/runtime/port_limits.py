"""What every open port allows, so that a flood on one port stops neither the program nor its other ports.

Each port has limits of its own: none takes more than its share of the process's file descriptors, and what is left
is for the database, the cluster and the plugin's socket.
"""

import resource

from msgspec import Struct

_WANTED_DESCRIPTORS = 1 << 16


class PortLimits(Struct, frozen=True, kw_only=True):
    """The limits of one port."""

    connections: int = 256
    """At most so many at once. One too many takes the place of the one that has been waited for longest."""
    descriptor_share: int = 8
    """Of the files that the process may open, a port gets at most one in so many: no program has more than three."""
    request_seconds: float = 10.0
    """In which the head of a request must come, and its body; and a TLS handshake."""
    idle_seconds: float = 75.0
    """How long a connection is kept open between two requests.

    Longer than clients keep theirs, so that they close theirs first and no request is sent on a closed connection.
    """
    unread_seconds: float = 30.0
    """After which a connection is closed whose peer reads nothing, or vanished without closing it."""


def raise_descriptor_limit() -> int:
    """Raise this process's limit of open files, up to what it could need; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft if soft != resource.RLIM_INFINITY else wanted


def most_connections(limits: PortLimits) -> int:
    """As many as a port allows, or fewer where the process may not open that many files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits.connections
    return max(1, min(limits.connections, soft // limits.descriptor_share))
