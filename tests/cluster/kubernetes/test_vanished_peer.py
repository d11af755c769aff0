"""A server whose machine is gone from one moment to the next: no FIN, no RST, nothing.

It runs in a network of its own, which takes root to make, and whose cable is pulled.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from msgspec import Struct

from cluster.kubernetes.loopback_server import client
from podtide.cluster.kubernetes import ApiServerTimeouts
from podtide.cluster.port import Unavailable
from podtide.resources.node import Node

IP = shutil.which("ip") or ""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_time,
    pytest.mark.skipif(os.geteuid() != 0 or not IP, reason="takes root and iproute2 to make a network"),
]

SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], 8001))
print("listening", flush=True)
connection, _ = server.accept()
connection.recv(65536)
connection.sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
connection.recv(1)
"""
HERE, THERE = "198.18.77.1", "198.18.77.2"
"""Of the range that is set aside for such experiments."""


class Machine(Struct, frozen=True):
    """Another machine, as far as the network goes."""

    name: str

    def pull_the_cable(self) -> None:
        """From now on nothing goes there or comes from there."""
        ip("-n", self.name, "link", "set", "cable", "down")


def ip(*arguments: str) -> None:
    subprocess.run([IP, *arguments], check=True, capture_output=True)


@contextmanager
def another_machine() -> Iterator[Machine]:
    """A machine with a server that accepts one watch, and then has nothing to say."""
    machine, cable = Machine(f"podtide-{uuid.uuid4().hex[:8]}"), f"pt{uuid.uuid4().hex[:8]}"
    with ExitStack() as cleaning_up:
        try:
            ip("netns", "add", machine.name)
            cleaning_up.callback(ip, "netns", "del", machine.name)
            ip("link", "add", cable, "type", "veth", "peer", "name", "cable", "netns", machine.name)
            cleaning_up.callback(ip, "link", "del", cable)
            ip("addr", "add", f"{HERE}/30", "dev", cable)
            ip("link", "set", cable, "up")
            ip("-n", machine.name, "addr", "add", f"{THERE}/30", "dev", "cable")
            ip("-n", machine.name, "link", "set", "cable", "up")
        except subprocess.CalledProcessError as refusal:
            pytest.skip(f"this root may not make a network: {refusal.stderr.decode().strip()}")
        command = [IP, "netns", "exec", machine.name, sys.executable, "-c", SERVER, THERE]
        server = cleaning_up.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        cleaning_up.callback(server.kill)
        assert server.stdout is not None
        server.stdout.readline()
        yield machine


async def test_a_watch_whose_peer_vanished_is_noticed_within_seconds_though_nothing_was_said() -> None:
    timeouts = ApiServerTimeouts(silence_seconds=600)
    with another_machine() as machine:
        async with client(f"http://{THERE}:8001", timeouts=timeouts) as cluster:
            watching = asyncio.create_task(anext(cluster.watch(Node, resource_version="5")))
            await asyncio.sleep(1)
            machine.pull_the_cable()
            with pytest.raises(Unavailable, match="broke"):
                async with asyncio.timeout(30):
                    await watching
