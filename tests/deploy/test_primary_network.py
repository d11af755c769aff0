"""The network that an agent installs carries traffic: the interface plugins that every node has, and real namespaces."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from cli.processes import running, served_cluster
from cli.test_agent import Place, join
from left_out import leave_out
from patience import PATIENCE_SECONDS
from podtide.agent.cni_installation import CONFLIST

INTERFACE_PLUGINS = Path("/usr/lib/cni")
"""Where Debian's containernetworking-plugins are."""
PLUGIN = Path(__file__).parent.parent.parent / "plugin" / "podtide.py"

LISTEN = """
import socket, sys
with socket.create_server((sys.argv[1], 7)) as server:
    print("listening", flush=True)
    connection, peer = server.accept()
    connection.sendall(peer[0].encode())
"""
CALL = """
import socket, sys
with socket.create_connection((sys.argv[1], 7), timeout=10) as connection:
    print(connection.recv(100).decode())
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


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """A node and two pods."""
    if os.geteuid() or not shutil.which("ip") or not (INTERFACE_PLUGINS / "ptp").exists():
        leave_out("network namespaces", "that takes root, iproute2 and containernetworking-plugins")
    made = [Namespace(f"podtide-{uuid.uuid4().hex[:8]}") for _ in range(3)]
    try:
        for namespace in made:
            subprocess.run(["ip", "netns", "add", namespace.name], check=True)  # noqa: S607 - the ip of this machine
            subprocess.run(namespace.command("ip", "link", "set", "lo", "up"), check=True)
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


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("type_", ["ptp", "bridge"])
async def test_pods_on_the_installed_network_reach_each_other_by_their_addresses(
    tmp_path: Path, namespaces: list[Namespace], type_: str
) -> None:
    node, *pods = namespaces
    place, bin_directory, conf_directory = Place(tmp_path), tmp_path / "bin", tmp_path / "net.d"
    options = (
        *("--cni-bin-directory", bin_directory, "--cni-conf-directory", conf_directory),
        *("--plugin", PLUGIN, "--network-type", type_),
    )
    runtime = Runtime(node, bin_directory, conf_directory / CONFLIST, place.socket)
    async with served_cluster(place.kubeconfig) as cluster, running(*place.options, *options) as agent:
        await join(cluster, "10.1.0.5", "10.1.0.6")
        for _ in ("the plugin", "the network"):
            await agent.logged("installed")
        one, other = [await asyncio.to_thread(runtime.add, pod) for pod in pods]
        assert {one, other} == {"10.1.0.5", "10.1.0.6"}
        assert await asyncio.to_thread(called_from, pods[0], pods[1], other) == one
        assert await asyncio.to_thread(called_from, pods[1], pods[0], one) == other
        assert "via 10.1.0.1" in await asyncio.to_thread(default_route, pods[0]), (
            "the way out is the subnet's gateway"
        )
        await asyncio.to_thread(runtime.delete, pods[0])
        assert await asyncio.to_thread(runtime.add, pods[0]) == one, (
            "what a pod gave back is there for the next"
        )
        await agent.stop()
