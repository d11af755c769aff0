"""Nodes that are deleted, registered again and replaced, under real kubelets.

The subnet is so small that the pods of one node, and nothing but what they leave, are all that the other can have: what was
given twice, or lost, is seen at once.
"""

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import wait_until
from node_bench.workloads import Pod
from nodes.audit import agreed

CLUSTER = ClusterSpec(
    subnets={"pods": ["10.1.0.0/27"]},
    # A removed node's addresses rest for six minutes by default, which is longer than a test can wait.
    values={"settings": {"contact_timeout": "15s", "quarantine": "20s"}},
)
FOR_PODS = 27
"""Of 30 usable addresses the gateway has one and each node one."""
HOME, OTHER = "node-a", "node-b"


def addresses(pods: list[Pod]) -> dict[str, list[str]]:
    return {pod.uid: pod.addresses for pod in pods}


def test_a_node_that_is_registered_again_keeps_its_pods_and_their_addresses(cluster: NodeCluster) -> None:
    node = cluster.bench.node(OTHER)
    cluster.workloads.deploy("living", 4, node=OTHER)
    before = cluster.workloads.wait_until_ready("living", 4)
    former = node.object["metadata"]["uid"]
    deleted = cluster.bench.kubectl("delete", "node", OTHER)
    assert deleted.returncode == 0, deleted.stderr
    node.kubelet.kill()
    node.kubelet.start()
    wait_until(
        lambda: node.object["metadata"]["uid"] != former and node.is_ready, "the node, registered again"
    )
    assert addresses(cluster.workloads.wait_until_ready("living", 4)) == addresses(before)
    assert {address for pod in before for address in pod.addresses} == node.pod_addresses()
    # All that is left goes to the other node: an address of the living would now be two pods'.
    cluster.workloads.deploy("filling", FOR_PODS - 4, node=HOME)
    cluster.workloads.wait_until_ready("filling", FOR_PODS - 4)
    assert addresses(cluster.workloads.pods("living")) == addresses(before)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/filling")
    cluster.workloads.scale("living", 8)
    cluster.workloads.wait_until_ready("living", 8)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/living")


def test_what_a_removed_node_had_goes_to_others_and_its_replacement_starts_anew(cluster: NodeCluster) -> None:
    node = cluster.bench.node(OTHER)
    cluster.workloads.deploy("roaming", 8)
    cluster.workloads.wait_until_ready("roaming", 8)
    drained = cluster.bench.kubectl(
        "drain", OTHER, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s"
    )
    assert drained.returncode == 0, drained.stderr
    node.power_cut()
    cluster.bench.kubectl("delete", "node", OTHER)
    cluster.workloads.scale("roaming", FOR_PODS + 1)  # nobody else has a primary now
    cluster.workloads.wait_until_ready("roaming", FOR_PODS + 1)
    cluster.workloads.scale("roaming", 8)
    node.replace()
    cluster.podtide.wait_until_ready()
    cluster.workloads.deploy("landing", 6, node=OTHER)
    cluster.workloads.wait_until_ready("landing", 6)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/roaming", "deployment/landing")
