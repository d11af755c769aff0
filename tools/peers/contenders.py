"""Who takes part: an IPAM plugin with a network of its own, of one of three kinds, and what it must have left behind: nothing."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path

from msgspec import Struct

from peers.plugin_process import PluginCall


class Kind(Enum):
    """What addresses are given from. Only contenders of one kind are compared."""

    NODE_POOL = "a node's own addresses"
    SHARED = "one pool that all nodes share"
    SLICES = "a slice of the network for each node"


class PeerPod(Struct, frozen=True):
    """A pod that the API server has, bound to a node."""

    node: str
    name: str
    uid: str


class NodePlugin(Struct, frozen=True):
    """A plugin as one node has it."""

    configuration: Path
    environment: Mapping[str, str]
    agent_pid: int | None = None
    """Who works for it on the node, if anybody does."""


class Contender(Struct, frozen=True, kw_only=True):
    """A plugin, on every node."""

    name: str
    kind: Kind
    executable: Path
    by_node: Mapping[str, NodePlugin]
    held: Callable[[], list[str]]
    """The addresses that are not free, by what it wrote itself. After the last DEL there must be none."""
    cannot: str = ""
    """Why it cannot take part, if so."""

    @property
    def is_podtide(self) -> bool:
        """Whether it is ours."""
        return self.name.startswith("podtide")

    def agent_pids(self, nodes: Iterable[str]) -> list[int]:
        """Who works for it on these nodes."""
        pids = (self.by_node[node].agent_pid for node in nodes)
        return [pid for pid in pids if pid is not None]

    def call(self, verb: str, pod: PeerPod, sandbox: str) -> PluginCall:
        """A call as a runtime makes it."""
        node = self.by_node[pod.node]
        arguments = {
            "IgnoreUnknown": "1",
            "K8S_POD_NAMESPACE": "default",
            "K8S_POD_NAME": pod.name,
            "K8S_POD_INFRA_CONTAINER_ID": sandbox,
            "K8S_POD_UID": pod.uid,
        }
        variables = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": sandbox,
            "CNI_NETNS": f"/var/run/netns/{sandbox}",
            "CNI_IFNAME": "net1",
            "CNI_PATH": str(self.executable.parent),
            "CNI_ARGS": ";".join(f"{name}={value}" for name, value in arguments.items()),
        }
        return PluginCall(self.executable, {**variables, **node.environment}, node.configuration)


def absent(name: str, kind: Kind, reason: str) -> Contender:
    """A contender that cannot take part, and why."""
    return Contender(name=name, kind=kind, executable=Path(), by_node={}, held=list, cannot=reason)
