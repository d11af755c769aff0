"""The cluster that all contenders share: one real API server, nodes, pods bound to them, and the programs of each.

podtide runs as it is installed: allocator, controller, and an agent on every node, all with their default settings.
Pods are there before their ADDs, as in any cluster; so the nodes' pools have addresses for them when ADDs come.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

from msgspec import Struct

from agent_socket import agent_is_ready, held_addresses
from control_plane.cluster import ControlPlane
from control_plane.errors import DidNotStart
from control_plane.process import POLL_SECONDS, READY_SECONDS, Nursery, Process
from fleet_programs import PODTIDE, FleetPrograms
from peers.contenders import PeerPod
from peers.sizes import Sizes

WHEREABOUTS_KINDS = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system"
_DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/kube-system/network-attachment-definitions"
_STARTED_AT_ONCE = 4


class PeerCluster(Struct, frozen=True):
    """What contenders find."""

    control_plane: ControlPlane
    nursery: Nursery
    pods: Sequence[PeerPod]
    agents: dict[str, Process]
    """podtide's, by node."""

    @property
    def directory(self) -> Path:
        """Goes when the cluster goes."""
        return self.nursery.directory

    @property
    def nodes(self) -> list[str]:
        """Their names."""
        return list(self.agents)

    def socket(self, node: str) -> Path:
        """Where the agent of a node answers."""
        return _socket(self.nursery, node)

    def define(self, name: str, network: object) -> None:
        """Make a network known to controllers. Whereabouts wants it in its own namespace."""
        definition = {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name},
            "spec": {"config": json.dumps(network)},
        }
        self.control_plane.admin.request("POST", _DEFINITIONS, definition)

    def wait_for_slices(self, network: str) -> None:
        """Until every node has a slice of the network."""
        wait_until(
            lambda: self._nodes_with_slices(network) >= set(self.nodes), f"a slice of {network} for each node"
        )

    def held_in(self, network: str, range_: str) -> list[str]:
        """Allocations in the pools of a range, and reservations by the name of its network."""
        admin = self.control_plane.admin
        pools = admin.request("GET", f"{WHEREABOUTS_KINDS}/ippools")["items"]
        reserved = admin.request("GET", f"{WHEREABOUTS_KINDS}/overlappingrangeipreservations")["items"]
        beginning = range_.partition(".0.0/")[0] + "."
        return [
            *(
                f"{pool['metadata']['name']} #{offset}"
                for pool in pools
                if pool["spec"]["range"].startswith(beginning)
                for offset in pool["spec"]["allocations"] or {}
            ),
            *(name for each in reserved if (name := each["metadata"]["name"]).startswith(f"{network}-")),
        ]

    def _nodes_with_slices(self, network: str) -> set[str]:
        pools = self.control_plane.admin.request("GET", f"{WHEREABOUTS_KINDS}/nodeslicepools")["items"]
        return {
            entry["nodeName"]
            for pool in pools
            if pool["metadata"]["name"] == network
            for entry in pool.get("status", {}).get("allocations", ())
        }


@contextmanager
def running_cluster(control_plane: ControlPlane, sizes: Sizes) -> Iterator[PeerCluster]:
    """The cluster, with podtide's programs at work and an address for every pod on its node."""
    nursery = Nursery()
    with ExitStack() as ending:
        ending.callback(nursery.close)
        ending.enter_context(FleetPrograms(control_plane))
        names = [f"node-{number:02}" for number in range(sizes.nodes)]
        pods = [
            pod
            for number, node in enumerate(names)
            for pod in _join(control_plane, node, sizes.pods_on(number))
        ]
        agents = {name: _agent(control_plane, nursery, name) for name in names}
        with ThreadPoolExecutor(_STARTED_AT_ONCE) as threads:
            for started in [threads.submit(agent.start) for agent in agents.values()]:
                started.result()
        wanted = {_socket(nursery, name): sizes.pods_on(number) for number, name in enumerate(names)}
        wait_until(
            lambda: all(held_addresses(agent) >= pods for agent, pods in wanted.items()),
            "addresses for the pods of every node",
        )
        yield PeerCluster(control_plane, nursery, pods, agents)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Come back when it holds; DidNotStart when that takes too long."""
    deadline = monotonic() + READY_SECONDS
    while not holds():
        if monotonic() > deadline:
            raise DidNotStart(f"{what}: not there after {READY_SECONDS:.0f} s")
        sleep(POLL_SECONDS)


def _join(control_plane: ControlPlane, node: str, pods: int) -> Iterator[PeerPod]:
    """A Node, and pods that are bound to it."""
    control_plane.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    for number in range(pods):
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "nothing"}]}
        pod = {"metadata": {"name": f"{node}-pod-{number}"}, "spec": spec}
        made = control_plane.admin.request("POST", "/api/v1/namespaces/default/pods", pod)
        yield PeerPod(node, made["metadata"]["name"], made["metadata"]["uid"])


def _agent(control_plane: ControlPlane, nursery: Nursery, node: str) -> Process:
    socket = _socket(nursery, node)
    return Process(
        nursery,
        [
            *(*PODTIDE, "agent", "--node-name", node, "--kubeconfig", control_plane.kubeconfig),
            *("--socket", socket, "--state-directory", nursery.directory / node / "state"),
        ],
        is_ready=lambda: agent_is_ready(socket),
        log=nursery.directory / f"agent-{node}.log",
    )


def _socket(nursery: Nursery, node: str) -> Path:
    return nursery.directory / node / "agent.sock"
