"""Ports nobody uses, for servers that must be told theirs."""

import secrets
import socket
from itertools import islice

LOOPBACK = "127.0.0.1"
# Below the range from which the system takes ports for outgoing connections (from 32768 on Linux): while an API server
# is down between kill and restart, none of those can take its place.
CANDIDATES = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens now, taken at random, so that two processes hardly ever choose the same."""
    in_random_order = secrets.SystemRandom().sample(CANDIDATES, len(CANDIDATES))
    return list(islice(filter(_is_free, in_random_order), count))


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        try:
            attempt.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
