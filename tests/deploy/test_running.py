"""The programs on a real API server, each with its own token and nobody else's: from the subnet to a pod's address."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from agent.calling import environment
from cli.processes import PATIENCE_SECONDS, Program, running, until
from deploy.installed import NAMESPACE, Installed, connected
from podtide.agent.installing import CONFLIST
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.cluster.port import Conflict, NotFound
from podtide.cni.errors import ErrorCode
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

PLUGIN = Path(__file__).parent.parent.parent / "plugin" / "podtide.py"
SUBNET = "10.1.0.0/24"
Configuration = dict[str, Any]


def secondary(name: str, **keys: str) -> Configuration:
    ipam = {"type": "podtide", "network_name": name, **keys}
    return {"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": ipam}


SLICED = secondary("running-sliced", range="10.20.0.0/16", node_slice_size="/24")
SHARED = secondary("running-shared", range="10.21.0.0/24")


class NodeFiles:
    """A node's directories: those of its agent, and those of its runtime."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.state = directory / name / "state"
        self.socket = directory / name / "run" / "agent.sock"
        self.bin = directory / name / "bin"
        self.conf = directory / name / "net.d"

    @property
    def network_is_there(self) -> bool:
        return (self.conf / CONFLIST).exists()

    def primary(self) -> Configuration:
        """What the runtime gives the first plugin of the network that it finds."""
        network = json.loads((self.conf / CONFLIST).read_bytes())
        return {"cniVersion": network["cniVersion"], "name": network["name"], **network["plugins"][0]}

    async def add(self, sandbox: str, network: Configuration) -> dict[str, Any]:
        """What an interface plugin does for a pod: run the plugin that the network names for addresses."""
        variables = environment("ADD", sandbox, CNI_ARGS=f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={sandbox}")
        process = await asyncio.create_subprocess_exec(
            self.bin / network["ipam"]["type"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**variables, "PODTIDE_SOCKET": str(self.socket), "PATH": os.environ["PATH"]},
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, _ = await process.communicate(json.dumps(network).encode())
        answer: dict[str, Any] = json.loads(output)
        return answer

    async def address(self, sandbox: str, network: Configuration) -> str:
        """The same again while it is told to come back, as a runtime does."""
        answers: list[dict[str, Any]] = []

        async def is_settled() -> bool:
            answers[:] = [await self.add(sandbox, network)]
            return answers[0].get("code") != ErrorCode.TRY_AGAIN_LATER

        with suppress(TimeoutError):
            await until(is_settled)
        assert "ips" in answers[0], answers[0]
        address: str = answers[0]["ips"][0]["address"]
        return address


class Site:
    """Where the programs find their secrets."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tokens = directory / "tokens"
        self.controllers_token = self._token("controller", "cluster default")
        self.admins_token = self._token("admin", "administration")

    def _token(self, name: str, purpose: str) -> Path:
        file = self.directory / f"{name}.token"
        file.write_text(f"token-of-{name}")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        with self.tokens.open("a") as tokens:
            tokens.write(f"{digest}  {purpose}\n")
        return file


@asynccontextmanager
async def an_allocator(site: Site) -> AsyncIterator[tuple[Program, str]]:
    """By the environment, as the chart names its database, and with the subnet in it."""
    async with running(
        *("allocator", "--listen", "127.0.0.1:0", "--tokens", site.tokens),
        PODTIDE_DATABASE=f"sqlite:///{site.directory}/subnets.db",
    ) as allocator:
        url = (await allocator.logged("listening"))["url"]
        adding = (
            "subnet",
            "add",
            "default",
            "pods",
            SUBNET,
            "--server",
            url,
            "--token-file",
            site.admins_token,
        )
        async with running(*adding) as command:
            assert await command.process.wait() == 0
        yield allocator, url


@asynccontextmanager
async def a_controller(site: Site, url: str, kubeconfig: Path) -> AsyncIterator[Program]:
    """By the environment: KUBECONFIG goes before the pod that it may run in."""
    async with running(
        *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
        *("--allocator", url, "--token-file", site.controllers_token),
        KUBECONFIG=str(kubeconfig),
    ) as controller:
        await controller.logged("leading")
        yield controller


@asynccontextmanager
async def an_agent(files: NodeFiles, kubeconfig: Path) -> AsyncIterator[Program]:
    async with running(
        *("agent", "--kubeconfig", kubeconfig, "--state-directory", files.state, "--socket", files.socket),
        *("--cni-bin-directory", files.bin, "--cni-conf-directory", files.conf, "--plugin", PLUGIN),
        *("--metrics-listen", "127.0.0.1:0"),
        NODENAME=files.name,
    ) as agent:
        await agent.logged("listening")
        yield agent


async def clear(admin: KubernetesCluster, nodes: Iterable[str]) -> None:
    """Leave nothing to the tests that share the control plane."""
    for name in nodes:
        await admin.delete(Node, name)
        await clear_config(admin, name)
    for network in (SLICED, SHARED):
        await admin.delete(NetworkAttachmentDefinition, network["name"], "default")
    for told in (ClusterSubnet, ClusterSubnetState):
        await admin.delete(told, "pods", NAMESPACE)
    for kind in (IPPool, NodeSlicePool, OverlappingRangeIPReservation, Lease):
        for item in (await admin.list(kind, NAMESPACE)).items:
            if item.metadata.name.startswith("running-"):
                await admin.delete(kind, item.metadata.name, NAMESPACE)


async def clear_config(admin: KubernetesCluster, name: str) -> None:
    """Let it go without its finalizer, while the garbage collector is after it too."""
    while True:
        try:
            config = await admin.get(NodeNetworkConfig, name, NAMESPACE)
            freed = structs.replace(config.metadata, finalizers=[])
            await admin.replace(structs.replace(config, metadata=freed), manager="test")
            await admin.delete(NodeNetworkConfig, name, NAMESPACE)
        except Conflict:
            continue
        except NotFound:
            return


async def test_with_its_own_role_each_program_does_its_part_and_is_refused_nothing(
    installed: Installed, tmp_path: Path
) -> None:
    site = Site(tmp_path)
    nodes = [NodeFiles(tmp_path, name) for name in ("running-a", "running-b")]
    async with connected(installed.control_plane.kubeconfig) as admin, AsyncExitStack() as programs:
        for node in nodes:
            await admin.create(Node(metadata=ObjectMeta(name=node.name)), manager="test")
        programs.push_async_callback(clear, admin, [node.name for node in nodes])
        for network in (SLICED, SHARED):
            spec = NetworkAttachmentDefinitionSpec(config=json.dumps(network))
            place = ObjectMeta(name=network["name"], namespace="default")
            await admin.create(NetworkAttachmentDefinition(metadata=place, spec=spec), manager="test")

        agents = [
            await programs.enter_async_context(an_agent(node, installed.agent(node.name))) for node in nodes
        ]
        assert not any(node.network_is_there for node in nodes), "nothing was granted, so nothing is ready"

        allocator, url = await programs.enter_async_context(an_allocator(site))
        controller = await programs.enter_async_context(a_controller(site, url, installed.controller()))
        for agent in agents:
            assert (await agent.logged("installed"))["path"].endswith("/podtide"), "the plugin comes first"
            assert (await agent.logged("installed"))["path"].endswith(CONFLIST)

        for network in (nodes[0].primary(), SLICED, SHARED):
            addresses = [
                await node.address(f"{node.name}-{number}", network) for node in nodes for number in range(3)
            ]
            assert len(set(addresses)) == 6

        async def has_asked() -> bool:
            configs = [await admin.get(NodeNetworkConfig, node.name, NAMESPACE) for node in nodes]
            return all(config.spec.requested_ip_count for config in configs)

        await until(has_asked)
        for program in (*agents, controller, allocator):
            await program.stop()
            assert not [line for line in program.lines if "forbidden" in json.dumps(line).lower()]
        for name in ("podtide-controller", *(f"{SLICED['name']}-{node.name}" for node in nodes)):
            lease = await admin.get(Lease, name, NAMESPACE)
            assert not lease.spec.holder_identity, f"{name} is not given up"
        assert all(node.network_is_there for node in nodes), "an agent that stops leaves its node its network"


@pytest.mark.parametrize("program", ["agent", "controller"])
async def test_without_its_role_a_program_says_what_it_may_not(
    installed: Installed, tmp_path: Path, program: str
) -> None:
    """So the test above would have noticed."""
    stranger = installed.control_plane.credentials.kubeconfig_for_user(f"stranger-{program}")
    files = NodeFiles(tmp_path, "running-c")
    started = {
        "agent": (
            "agent",
            "--state-directory",
            files.state,
            "--socket",
            files.socket,
            "--node-name",
            "running-c",
        ),
        "controller": (
            *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
            *("--database", f"sqlite:///{tmp_path}/subnets.db"),
        ),
    }[program]
    async with running(*started, "--kubeconfig", stranger) as refused:
        while "forbidden" not in json.dumps(refused.lines).lower():
            await refused.logged(
                {
                    "agent": "cannot follow the cluster; will go on trying",
                    "controller": "cannot stand for election; will go on trying",
                }[program]
            )
        await refused.stop()
