"""podtide's commands as processes of their own: each with a log that is kept, and none that outlives its test."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from control_plane.process import Nursery, Process

PODTIDE = (sys.executable, "-m", "podtide")
COMMAND_SECONDS = 120.0
ANSWER_SECONDS = 10.0


def podtide(
    nursery: Nursery,
    log: Path,
    *arguments: str | Path,
    is_ready: Callable[[], bool] = lambda: True,
    inside: Sequence[str] = (),
) -> Process:
    """A `podtide` program to be started, killed, and started again; the nursery ends it at the latest.

    `inside` is what to put before a command that is to run elsewhere, such as `ip netns exec`.
    """
    return Process(nursery, [*inside, *PODTIDE, *arguments], is_ready, log=log)


def run_podtide(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A `podtide` command that ends by itself. Whether it failed is for the caller to look at."""
    return subprocess.run(
        [*PODTIDE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )


def is_well(port: int, path: str) -> bool:
    """Whether a program answers well at that path of its port on this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def agent_is_ready(agent: Path) -> bool:
    """Whether the agent behind this socket has what it takes to answer the plugin."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.connect(str(agent))
            connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            return b" 200 " in connection.recv(64)
        except OSError:
            return False
