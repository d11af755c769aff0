"""Nodes that are network namespaces, on one switch, each with an agent process of its own inside.

Everything between the API server and a pod's interface is real; what is missing of a node is the kubelet and its
containers, and of a cloud the network that brings an address to the node that has it: `deliver` is that.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from control_plane.cluster import ControlPlane
from control_plane.process import Process
from e2e import pods
from e2e.cni import INTERFACE_PLUGINS, Plugins, Sandbox
from e2e.programs import Site, running
from namespaces.namespace import Namespace, linked, made
from namespaces.relay import HERE, relay_command
from podtide.agent.cni_installation import CONFLIST

UPLINK = "eth0"
"""A node's interface to the other nodes."""
_NODES = "192.168.77"
_CONFIGS = "/apis/acn.azure.com/v1alpha/namespaces/kube-system/nodenetworkconfigs"


class VirtualNode(Struct, frozen=True, kw_only=True):
    """One node."""

    name: str
    namespace: Namespace
    address: str
    """On the network of the nodes."""
    directory: Path
    socket: Path
    """Where its agent answers."""
    agent: Process

    @property
    def network_directory(self) -> Path:
        """Where its agent installs the primary network."""
        return self.directory / "net.d"

    @property
    def has_network(self) -> bool:
        """Whether its agent has installed the primary network: from then on a runtime starts pods."""
        return (self.network_directory / CONFLIST).exists()

    @property
    def plugins(self) -> Plugins:
        """What its runtime runs."""
        return Plugins(
            directories=(INTERFACE_PLUGINS, self.directory / "bin"),
            environment={"PODTIDE_SOCKET": str(self.socket)},
            inside=self.namespace.prefix,
        )


class VirtualCluster:
    """Nodes, and the pods on them."""

    def __init__(self, control_plane: ControlPlane, nodes: Sequence[VirtualNode]) -> None:
        self.nodes = nodes
        self._control_plane = control_plane

    @contextmanager
    def pods(self, *nodes: VirtualNode) -> Iterator[list[Sandbox]]:
        """A new pod on each of these nodes, with a sandbox that has no network yet."""
        with made(*(f"pod{number}" for number, _ in enumerate(nodes))) as namespaces:
            created = [
                pods.create(self._control_plane, each.name, node.name)
                for each, node in zip(namespaces, nodes, strict=True)
            ]
            try:
                yield [
                    Sandbox(id=f"{each.name}-1", pod=each.name, uid=pod["metadata"]["uid"], namespace=each)
                    for each, pod in zip(namespaces, created, strict=True)
                ]
            finally:
                for each in namespaces:
                    pods.delete(self._control_plane, each.name)

    def deliver(self) -> None:
        """Let every node know where the addresses are that others hold for their pods."""
        for node in self.nodes:
            status = self._control_plane.admin.request("GET", f"{_CONFIGS}/{node.name}")["status"]
            for container in status["networkContainers"]:
                for assignment in container.get("ipAssignments", ()):
                    for other in self.nodes:
                        if other is not node:
                            other.namespace.ip("route", "replace", assignment["ip"], "via", node.address)


@contextmanager
def joined_nodes(site: Site, plugin: Path, names: Sequence[str]) -> Iterator[VirtualCluster]:
    """Nodes of these names, registered and joined to each other, with their agents at work."""
    with made("switch", *names) as (switch, *namespaces):
        switch.ip("link", "add", "bridge", "type", "bridge")
        switch.ip("link", "set", "bridge", "up")
        nodes = []
        for number, (name, namespace) in enumerate(zip(names, namespaces, strict=True), start=1):
            address = f"{_NODES}.{number}"
            linked(namespace, UPLINK, switch, name)
            switch.ip("link", "set", name, "master", "bridge")
            namespace.ip("address", "add", f"{address}/24", "dev", UPLINK)
            namespace.forward()
            site.control_plane.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
            options = (
                *("--cni-bin-directory", site.directory / name / "bin"),
                *("--cni-conf-directory", site.directory / name / "net.d", "--plugin", plugin),
            )
            nodes.append(
                VirtualNode(
                    name=name,
                    namespace=namespace,
                    address=address,
                    directory=site.directory / name,
                    socket=site.agent_socket(name),
                    agent=site.agent(name, *options, inside=namespace.prefix),
                )
            )
        with ExitStack() as programs:  # they end before their namespaces go
            for program in (_relay(site, namespaces), *(node.agent for node in nodes)):
                programs.enter_context(running(program))
            yield VirtualCluster(site.control_plane, nodes)


def _relay(site: Site, namespaces: Sequence[Namespace]) -> Process:
    """Lets agents reach the API server, which listens on the loopback address outside. They try until it is there."""
    port = urlsplit(site.control_plane.url).port
    command = relay_command([port or 0], HERE, [each.name for each in namespaces])
    return Process(site.nursery, command, lambda: True, log=site.logs / "relay.log")
