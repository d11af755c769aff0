"""The contenders of a run, each put in place in the cluster; what cannot be had is among them, with the reason."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from agent_socket import assigned_addresses
from cni_programs import WHEREABOUTS, WHEREABOUTS_SLICES, say_on_stderr
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import find_or_install_go
from control_plane.process import Process
from go_program import executable
from peers.cluster import PeerCluster
from peers.contenders import Contender, Kind, NodePlugin, absent

HOST_LOCAL = Path("/usr/lib/cni/host-local")
RUST_PLUGIN = Path(__file__).parents[2] / "plugin" / "target" / "release" / "podtide"
_RANGES = {
    "podtide-shared": "10.20.0.0/16",
    "podtide-slices": "10.21.0.0/16",
    "whereabouts-shared": "10.30.0.0/16",
    "whereabouts-slices": "10.31.0.0/16",
}
"""By the name of the network: of one size, and apart from each other, so that nobody is in another's way."""
_SLICE_SIZE = "/24"


@contextmanager
def line_up(cluster: PeerCluster) -> Iterator[list[Contender]]:
    """All contenders, of each kind ours first."""
    with ExitStack() as running:
        yield [
            _podtide_node_pool(cluster),
            _host_local(cluster),
            _podtide_network(cluster, "podtide, shared pool", Kind.SHARED),
            _whereabouts_shared(cluster),
            _podtide_network(cluster, "podtide, slices", Kind.SLICES),
            running.enter_context(_whereabouts_slices(cluster)),
        ]


def _podtide_node_pool(cluster: PeerCluster) -> Contender:
    network = _written(cluster, "podtide-node-pool", {"type": "podtide"})
    return _podtide(cluster, "podtide, node pool", Kind.NODE_POOL, network)


def _podtide_network(cluster: PeerCluster, name: str, kind: Kind) -> Contender:
    network = f"podtide-{kind.name.lower()}"
    configuration = _defined(cluster, network, kind, {"type": "podtide"})
    if kind is Kind.SLICES:
        cluster.wait_for_slices(network)
    return _podtide(cluster, name, kind, configuration)


def _podtide(cluster: PeerCluster, name: str, kind: Kind, configuration: Path) -> Contender:
    if not RUST_PLUGIN.exists():
        return absent(name, kind, "its plugin in Rust is not built, which takes cargo")
    return Contender(
        name=name,
        kind=kind,
        executable=RUST_PLUGIN,
        by_node={
            node: NodePlugin(
                configuration, {"PODTIDE_SOCKET": str(cluster.socket(node))}, cluster.agents[node].pid
            )
            for node in cluster.nodes
        },
        held=partial(_assigned, cluster)
        if kind is Kind.NODE_POOL
        else partial(_held, cluster, f"podtide-{kind.name.lower()}"),
    )


def _host_local(cluster: PeerCluster) -> Contender:
    name = "host-local"
    if not HOST_LOCAL.exists():
        return absent(name, Kind.NODE_POOL, f"there is no {HOST_LOCAL} (Debian: containernetworking-plugins)")
    data = cluster.directory / "host-local"
    return Contender(
        name=name,
        kind=Kind.NODE_POOL,
        executable=HOST_LOCAL,
        by_node={
            node: NodePlugin(
                _written(
                    cluster,
                    f"host-local-{node}",
                    {
                        "type": "host-local",
                        "dataDir": str(data / node),
                        "ranges": [[{"subnet": f"10.40.{number}.0/24"}]],
                    },
                ),
                {},
            )
            for number, node in enumerate(cluster.nodes)
        },
        held=lambda: [str(file) for file in data.rglob("10.*")],
    )


def _whereabouts_shared(cluster: PeerCluster) -> Contender:
    return _whereabouts(cluster, "Whereabouts, shared pool", Kind.SHARED)


@contextmanager
def _whereabouts_slices(cluster: PeerCluster) -> Iterator[Contender]:
    """With its own controller at work, as its users have it."""
    contender = _whereabouts(cluster, "Whereabouts, slices", Kind.SLICES)
    if contender.cannot:
        yield contender
        return
    try:
        program = executable(WHEREABOUTS_SLICES, say_on_stderr, find_or_install_go)
    except CannotBuild as reason:
        yield absent(contender.name, contender.kind, f"its controller is not there: {reason}")
        return
    controller = Process(
        cluster.nursery,
        [
            *("env", "WHEREABOUTS_NAMESPACE=kube-system", program),
            *("-kubeconfig", cluster.control_plane.kubeconfig),
        ],
        is_ready=lambda: True,
        log=cluster.directory / "whereabouts-controller.log",
    )
    try:
        controller.start()
        cluster.wait_for_slices("whereabouts-slices")
        yield contender
    finally:
        controller.kill()


def _whereabouts(cluster: PeerCluster, name: str, kind: Kind) -> Contender:
    try:
        plugin = executable(WHEREABOUTS, say_on_stderr, find_or_install_go)
    except CannotBuild as reason:
        return absent(name, kind, str(reason))
    reach = cluster.directory / "whereabouts.conf"
    reach.write_text(json.dumps({"kubernetes": {"kubeconfig": str(cluster.control_plane.kubeconfig)}}))
    network = f"whereabouts-{kind.name.lower()}"
    ipam = {"type": "whereabouts", "configuration_path": str(reach)}
    configuration = _defined(cluster, network, kind, ipam)
    return Contender(
        name=name,
        kind=kind,
        executable=plugin,
        by_node={node: NodePlugin(configuration, {"NODENAME": node}) for node in cluster.nodes},
        held=partial(_held, cluster, network),
    )


def _defined(cluster: PeerCluster, network: str, kind: Kind, ipam: Mapping[str, object]) -> Path:
    """The configuration of a secondary network, made known to the cluster."""
    cut = {"node_slice_size": _SLICE_SIZE} if kind is Kind.SLICES else {}
    configuration = _written(
        cluster, network, {**ipam, "network_name": network, "range": _RANGES[network], **cut}
    )
    cluster.define(network, json.loads(configuration.read_text()))
    return configuration


def _written(cluster: PeerCluster, name: str, ipam: Mapping[str, object]) -> Path:
    """The file that a plugin gets as its stdin."""
    file = cluster.directory / f"{name}.json"
    file.write_text(json.dumps({"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": ipam}))
    return file


def _held(cluster: PeerCluster, network: str) -> list[str]:
    return cluster.held_in(network, _RANGES[network])


def _assigned(cluster: PeerCluster) -> list[str]:
    counts = {node: assigned_addresses(cluster.socket(node)) for node in cluster.nodes}
    return [f"{count} on {node}" for node, count in counts.items() if count]
