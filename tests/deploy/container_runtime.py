"""Network namespaces as nodes and pods, and what a container runtime does on a node by a configuration list."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct

from left_out import leave_out
from patience import PATIENCE_SECONDS

INTERFACE_PLUGINS = Path("/usr/lib/cni")
"""Where Debian's containernetworking-plugins are."""
PLUGIN = Path(__file__).parent.parent.parent / "plugin" / "podtide.py"

LISTEN = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], 7), family=family) as server:
    print("listening", flush=True)
    connection, peer = server.accept()
    connection.sendall(peer[0].encode())
"""
CALL = """
import socket, sys
with socket.create_connection((sys.argv[1], 7), timeout=10) as connection:
    print(connection.recv(100).decode())
"""
PING = """
import socket, struct, sys
echo = struct.pack("!BBHHH", 8, 0, 0, 7, 1)
checksum = ~sum(struct.unpack("!4H", echo)) & 0xFFFF
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as link:
    link.settimeout(10)
    link.sendto(struct.pack("!BBHHH", 8, 0, checksum, 7, 1), (sys.argv[1], 0))
    while True:
        packet, (peer, _) = link.recvfrom(100)
        if packet[20] == 0:
            print(peer)
            break
"""


class Namespace(Struct, frozen=True):
    """A network namespace: a node, or a pod."""

    name: str

    @property
    def path(self) -> str:
        return f"/var/run/netns/{self.name}"

    def command(self, *command: str | Path) -> list[str]:
        return ["ip", "netns", "exec", self.name, *map(str, command)]

    def python(self, code: str, *arguments: str) -> list[str]:
        return self.command(sys.executable, "-c", code, *arguments)


def ip(*command: str) -> str:
    done = subprocess.run(["ip", *command], check=True, stdout=subprocess.PIPE, text=True)  # noqa: S607 - the ip of this machine
    return done.stdout


@contextmanager
def made_namespaces(number: int) -> Iterator[list[Namespace]]:
    """Network namespaces, or the test is left out."""
    if os.geteuid() or not shutil.which("ip") or not (INTERFACE_PLUGINS / "ptp").exists():
        leave_out("network namespaces", "that takes root, iproute2 and containernetworking-plugins")
    made = [Namespace(f"podtide-{uuid4().hex[:8]}") for _ in range(number)]
    try:
        for namespace in made:
            ip("netns", "add", namespace.name)
            ip("-n", namespace.name, "link", "set", "lo", "up")
        yield made
    finally:
        for namespace in made:
            subprocess.run(["ip", "netns", "delete", namespace.name], check=False)  # noqa: S607 - as above


class Runtime(Struct, frozen=True):
    """What a container runtime does by a configuration list, on a node."""

    node: Namespace
    bin_directory: Path
    conflist: Path
    socket: Path

    def add(self, pod: Namespace) -> str:
        """Run the list's plugins in turn, each with the result of the one before; answers the pod's address."""
        result: dict[str, Any] = {}
        for plugin in self._plugins():
            result = self._run("ADD", pod, plugin, {"prevResult": result} if result else {})
        address: str = result["ips"][0]["address"].partition("/")[0]
        return address

    def delete(self, pod: Namespace) -> None:
        for plugin in reversed(self._plugins()):
            self._run("DEL", pod, plugin, {})

    def _plugins(self) -> list[dict[str, Any]]:
        plugins: list[dict[str, Any]] = json.loads(self.conflist.read_bytes())["plugins"]
        return plugins

    def _run(self, verb: str, pod: Namespace, plugin: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        network = json.loads(self.conflist.read_bytes())
        configuration = {"cniVersion": network["cniVersion"], "name": network["name"], **plugin, **more}
        environment = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": pod.name,
            "CNI_NETNS": pod.path,
            "CNI_IFNAME": "eth0",
            "CNI_PATH": f"{INTERFACE_PLUGINS}:{self.bin_directory}",
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod.name}",
            "PODTIDE_SOCKET": str(self.socket),
            "PATH": os.environ["PATH"],
        }
        answer = subprocess.run(
            self.node.command(INTERFACE_PLUGINS / plugin["type"]),
            input=json.dumps(configuration),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert answer.returncode == 0, answer.stdout
        result: dict[str, Any] = json.loads(answer.stdout or "{}")
        return result


def called_from(caller: Namespace, callee: Namespace, address: str) -> str:
    """Whose call it is that arrives when one pod calls another by its address."""
    with subprocess.Popen(callee.python(LISTEN, address), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "listening\n"
            call = subprocess.run(
                caller.python(CALL, address),
                check=True,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
        finally:
            server.kill()
    return call.stdout.strip()


def default_route(pod: Namespace) -> str:
    command = pod.command("ip", "route", "show", "default")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ping(pod: Namespace, address: str) -> str:
    """Who answers."""
    answer = subprocess.run(pod.python(PING, address), check=True, capture_output=True, text=True, timeout=20)
    return answer.stdout.strip()
