"""podtide's programs on an installation, and what they need beside it: a node's directories, secrets, networks, a subnet."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from agent.calling import environment
from cli.processes import Program, running, until
from deploy.installed import NAMESPACE
from patience import PATIENCE_SECONDS
from podtide.agent.cni_installation import CONFLIST
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.cluster.port import NotFound
from podtide.cni.errors import ErrorCode
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.names import Naming
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from real_kubernetes import clear_config

PLUGIN = Path(__file__).parent.parent.parent / "plugin" / "podtide.py"
SUBNET = "10.1.0.0/24"
Configuration = dict[str, Any]


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

    async def call(self, verb: str, sandbox: str, network: Configuration) -> dict[str, Any]:
        """What an interface plugin does for a pod: run the plugin that the network names for addresses."""
        variables = environment(verb, sandbox, CNI_ARGS=f"K8S_POD_NAMESPACE=default;K8S_POD_NAME={sandbox}")
        process = await asyncio.create_subprocess_exec(
            self.bin / network["ipam"]["type"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**variables, "PODTIDE_SOCKET": str(self.socket), "PATH": os.environ["PATH"]},
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, _ = await process.communicate(json.dumps(network).encode())
        answer: dict[str, Any] = json.loads(output or b"{}")
        return answer

    async def address(self, sandbox: str, network: Configuration) -> str:
        """ADD, again while it is told to come back, as a runtime does."""
        answers: list[dict[str, Any]] = []

        async def is_settled() -> bool:
            answers[:] = [await self.call("ADD", sandbox, network)]
            return answers[0].get("code") != ErrorCode.TRY_AGAIN_LATER

        with suppress(TimeoutError):
            await until(is_settled)
        assert "ips" in answers[0], answers[0]
        address: str = answers[0]["ips"][0]["address"]
        return address


def secondary(name: str, **keys: str) -> Configuration:
    """A network beside the primary one."""
    ipam = {"type": "podtide", "network_name": name, **keys}
    return {"cniVersion": "1.1.0", "name": name, "type": "macvlan", "ipam": ipam}


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
            "--allocator",
            url,
            "--token-file",
            site.admins_token,
        )
        async with running(*adding) as command:
            assert await command.process.wait() == 0
        yield allocator, url


@asynccontextmanager
async def a_controller(
    site: Site, url: str, kubeconfig: Path, naming: Naming, **settings: str
) -> AsyncIterator[Program]:
    """By the environment: KUBECONFIG goes before the pod that it may run in."""
    async with running(
        *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
        *("--allocator", url, "--token-file", site.controllers_token, "--naming", naming),
        KUBECONFIG=str(kubeconfig),
        **settings,
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


async def stop_unrefused(*programs: Program) -> None:
    """Stop them, and see that their roles and policies have refused them nothing since they were started."""
    for program in programs:
        await program.stop()
        assert not [line for line in program.lines if "forbidden" in json.dumps(line).lower()]


async def define(admin: KubernetesCluster, *networks: Configuration) -> None:
    """Let there be NetworkAttachmentDefinitions of them."""
    for network in networks:
        spec = NetworkAttachmentDefinitionSpec(config=json.dumps(network))
        place = ObjectMeta(name=network["name"], namespace="default")
        await admin.create(NetworkAttachmentDefinition(metadata=place, spec=spec), manager="test")


async def clear_networks(admin: KubernetesCluster, *networks: Configuration) -> None:
    """Take these away again, and all that is called after them."""
    for network in networks:
        await admin.delete(NetworkAttachmentDefinition, network["name"], "default")
        for kind in (IPPool, NodeSlicePool, OverlappingRangeIPReservation, Lease):
            for item in (await admin.list(kind, NAMESPACE)).items:
                if item.metadata.name.startswith(network["name"]):
                    await admin.delete(kind, item.metadata.name, NAMESPACE)


async def clear_nodes(admin: KubernetesCluster, nodes: Iterable[str]) -> None:
    """Take away Nodes, and what the controller has made for them."""
    for name in nodes:
        with suppress(NotFound):  # it may have gone in the test
            await admin.delete(Node, name)
        await clear_config(admin, name)
    for told in (ClusterSubnet, ClusterSubnetState):
        await admin.delete(told, "pods", NAMESPACE)
