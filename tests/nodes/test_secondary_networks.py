"""Secondary networks under real kubelets: by Multus, and without it by a runtime that has two networks."""

import json
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from itertools import pairwise

import pytest

from node_bench import settings
from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import NAMESPACE, wait_until
from node_bench.workloads import Document, Pod
from nodes.audit import agreed
from nodes.secondary_addresses import held, second_address

CLUSTER = ClusterSpec()
RANGE = "10.20.0.0/16"
NETWORK: Document = {
    "cniVersion": "1.0.0",
    "name": "blue",
    "type": "bridge",
    "bridge": "blue0",
    "ipam": {"type": "podtide", "network_name": "blue", "range": RANGE, "node_slice_size": "/24"},
}
DEFINITION: Document = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "blue", "namespace": "default"},
    "spec": {"config": json.dumps(NETWORK)},
}


@pytest.fixture(scope="module", autouse=True)
def network(cluster: NodeCluster) -> None:
    """The network, as users of Multus define it, and a slice of it for every node."""
    crds = cluster.podtide.podtide("crds", "--with-network-attachments")
    applied = cluster.bench.kubectl("apply", "--server-side", "--filename=-", stdin=crds)
    assert applied.returncode == 0, applied.stderr
    wait_until(
        lambda: cluster.bench.kubectl("get", "network-attachment-definitions").returncode == 0,
        "Multus's kind",
    )
    cluster.workloads.apply(DEFINITION)
    names = {f"ippool.whereabouts.cni.cncf.io/blue-{node.name}" for node in cluster.bench.nodes}
    wait_until(lambda: names <= pools(cluster), f"the pools {names}")


def pools(cluster: NodeCluster) -> set[str]:
    return set(cluster.podtide.kubectl("get", "ippools", "--output=name").split())


@pytest.fixture
def two_networks(cluster: NodeCluster) -> Iterator[None]:
    """Containerd itself attaches every pod to two networks: the second file of its directory is the secondary one."""
    several = settings.CONTAINERD.replace('conf_dir = "', 'max_conf_num = 2\n  conf_dir = "')
    for node in cluster.bench.nodes:
        node.machine.write("/etc/cni/net.d/20-blue.conf", json.dumps(NETWORK))
        node.machine.write("/etc/containerd/config.toml", several)
        node.containerd.kill()
        node.containerd.start()
    yield
    for node in cluster.bench.nodes:
        node.machine.path("/etc/cni/net.d/20-blue.conf").unlink()
        node.machine.write("/etc/containerd/config.toml", settings.CONTAINERD)
        node.containerd.kill()
        node.containerd.start()


@pytest.fixture
def multus(cluster: NodeCluster) -> Iterator[None]:
    """Multus in front of podtide's primary network, as its own installer puts it there."""
    kubeconfig = cluster.bench.control_plane.credentials.kubeconfig_for_user(
        "multus", groups=["system:masters"], url=cluster.bench.control_plane.url_for_nodes
    )
    for node in cluster.bench.nodes:
        primary = json.loads(node.machine.path("/etc/cni/net.d/10-podtide.conflist").read_text())
        configuration = {
            "cniVersion": "1.0.0",
            "name": "multus",
            "type": "multus",
            "kubeconfig": str(kubeconfig),
            "delegates": [primary],
        }
        node.machine.write("/etc/cni/net.d/00-multus.conf", json.dumps(configuration))
    yield
    for node in cluster.bench.nodes:
        node.machine.path("/etc/cni/net.d/00-multus.conf").unlink()


def exercise(cluster: NodeCluster, app: str, interface: str, annotations: dict[str, str]) -> None:
    """Pods on both nodes have an address of their node's slice, reach their neighbours by it, and give it back."""
    workloads = cluster.workloads
    workloads.deploy(app, 6, annotations=annotations)
    pods = workloads.wait_until_ready(app, 6)
    second = {second_address(cluster, pod, interface): pod for pod in pods}
    assert {address: f"default/{pod.name}" for address, pod in second.items()} == held(cluster)
    assert all(ip_address(address) in ip_network(RANGE) for address in second)
    by_node: dict[str, list[tuple[str, Pod]]] = {}
    for address, pod in second.items():
        by_node.setdefault(pod.node, []).append((address, pod))
    for neighbours in by_node.values():
        assert len({address.rpartition(".")[0] for address, _ in neighbours}) == 1, "a node has one slice"
        for (_, pod), (address, _) in pairwise(neighbours):
            workloads.ping(pod, address)
    workloads.remove(f"deployment/{app}")
    wait_until(lambda: not held(cluster), "pools without addresses that nobody has")
    assert "clean" in cluster.podtide.check()


@pytest.mark.usefixtures("two_networks")
def test_a_runtime_with_two_networks_needs_no_multus(cluster: NodeCluster) -> None:
    exercise(cluster, "plain", "eth1", {})


@pytest.mark.usefixtures("multus")
def test_multus_attaches_pods_to_a_sliced_network(cluster: NodeCluster) -> None:
    exercise(cluster, "multus", "net1", {"k8s.v1.cni.cncf.io/networks": "default/blue"})
    cluster.podtide.kubectl("get", "nodeslicepools", f"--namespace={NAMESPACE}")
    agreed(cluster.podtide)
