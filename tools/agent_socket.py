"""What a running agent says of itself on its socket, for whoever waits for it."""

import re
import socket
from pathlib import Path

_SECONDS = 10.0


def ask_agent(agent: Path, path: str) -> bytes:
    """What the agent answers to a GET, from its status on; nothing when there is no agent."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(str(agent))
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            with connection.makefile("rb") as answer:
                return answer.read().partition(b" ")[2]
        except OSError:
            return b""


def agent_is_ready(agent: Path) -> bool:
    """Whether the agent has what it takes to answer the plugin."""
    return ask_agent(agent, "/readyz").startswith(b"200 ")


def held_addresses(agent: Path) -> int:
    """How many addresses the node's pool has for pods."""
    return _gauge(agent, "cx_ipam_secondary_ips")


def assigned_addresses(agent: Path) -> int:
    """How many of them pods have."""
    return _gauge(agent, "cx_ipam_pod_allocated_ips")


def _gauge(agent: Path, name: str) -> int:
    """The sum of a gauge over its labels; 0 when there is no agent."""
    metrics = ask_agent(agent, "/metrics").decode()
    values = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", metrics, flags=re.MULTILINE)
    return sum(int(float(value)) for value in values)
