"""Two addresses for every pod, by `bridge` and by `ptp`, on a runtime that speaks CNI 1.1."""

from itertools import permutations

import pytest

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.node import Node
from node_bench.podtide_installation import wait_until
from nodes.audit import agreed

CLUSTER = ClusterSpec(
    # With `bridge` a node's subnet is its own: pods take all of it for their neighbours.
    subnets={
        "pods": ["10.1.0.0/24"],
        "pods-b": ["10.2.0.0/24"],
        "pods-v6": ["fd00:1::/64"],
        "pods-v6-b": ["fd00:2::/64"],
    },
    labels={"node-b": {"podtide.io/subnet": "pods-b", "podtide.io/subnet-v6": "pods-v6-b"}},
    values={
        "subnetV6": "pods-v6",
        "cni.type": "bridge",
        "cni.cniVersion": "1.1.0",
        "cni.routes": ["0.0.0.0/0", "::/0"],
    },
)


def network_of(node: Node) -> str:
    return node.machine.path("/etc/cni/net.d/10-podtide.conflist").read_text()


@pytest.mark.parametrize("interface", ["bridge", "ptp"])
def test_pods_with_two_addresses_reach_each_other_by_both(cluster: NodeCluster, interface: str) -> None:
    if cluster.podtide.values["cni.type"] != interface:
        cluster.podtide.upgrade(cni__type=interface)
        cluster.podtide.kubectl("rollout", "status", "daemonset/podtide-agent", "--timeout=120s")
        wait_until(
            lambda: all(f'"{interface}"' in network_of(node) for node in cluster.bench.nodes),
            f"a network of {interface} on every node",
        )
    workloads = cluster.workloads
    for node in cluster.bench.nodes:
        workloads.deploy(f"{interface}-{node.name}", 2, node=node.name)
    pods = [
        pod
        for node in cluster.bench.nodes
        for pod in workloads.wait_until_ready(f"{interface}-{node.name}", 2)
    ]
    for pod in pods:
        assert [":" in address for address in pod.addresses] == [False, True]
    for one, other in permutations(pods, 2):
        for address in other.addresses:
            assert workloads.fetch(one, address) == other.name
    agreed(cluster.podtide)
    workloads.remove(*(f"deployment/{interface}-{node.name}" for node in cluster.bench.nodes))


def test_a_booted_node_is_not_ready_before_its_agent(cluster: NodeCluster) -> None:
    """By STATUS, which a runtime asks of a network of CNI 1.1: pods are not started into failure."""
    node = cluster.bench.node("node-b")
    cluster.podtide.kubectl(
        "patch",
        "daemonset/podtide-agent",
        "--type=merge",
        '--patch={"spec":{"template":{"spec":{"nodeSelector":{"example.org/agent":"yes"}}}}}',
    )
    wait_until(lambda: not node.is_ready, "a node that is not ready without its agent")
    cluster.podtide.kubectl(
        "patch",
        "daemonset/podtide-agent",
        "--type=json",
        '--patch=[{"op":"remove","path":"/spec/template/spec/nodeSelector/example.org~1agent"}]',
    )
    cluster.podtide.wait_until_ready()
