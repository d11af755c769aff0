"""A subnet with fewer addresses than there are pods: what people read, and how it ends; default settings."""

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import wait_until
from node_bench.workloads import Pod
from nodes.audit import agreed

CLUSTER = ClusterSpec(subnets={"pods": ["10.1.0.0/28"]})
FOR_PODS = 11
"""Of 14 usable addresses the gateway has one and each node one."""


def ready(cluster: NodeCluster) -> list[Pod]:
    return [pod for pod in cluster.workloads.pods("many") if pod.is_ready]


def test_every_last_address_is_a_pods_and_the_rest_are_told_why_they_wait(cluster: NodeCluster) -> None:
    cluster.workloads.deploy("many", FOR_PODS + 3)
    wait_until(lambda: len(ready(cluster)) == FOR_PODS, f"{FOR_PODS} pods with an address")

    def messages() -> list[str]:
        return [event["message"] for event in cluster.workloads.events("FailedCreatePodSandBox")]

    wait_until(lambda: any("no address" in each for each in messages()), "an Event that says what is missing")
    waiting = next(pod for pod in cluster.workloads.pods("many") if not pod.is_ready)
    told = cluster.podtide.podtide(
        *("why", f"pod/{waiting.name}", "--namespace=default"),
        *("--kubeconfig", str(cluster.bench.control_plane.kubeconfig)),
    )
    assert "full" in told.splitlines()[0], told
    assert all(node.is_ready for node in cluster.bench.nodes), "a full subnet is not a failure of the node"
    agreed(cluster.podtide)


def test_pods_that_wait_start_when_others_end(cluster: NodeCluster) -> None:
    cluster.workloads.scale("many", FOR_PODS - 3)
    cluster.workloads.wait_until_ready("many", FOR_PODS - 3)
    cluster.workloads.scale("many", FOR_PODS)
    cluster.workloads.wait_until_ready("many", FOR_PODS)
    agreed(cluster.podtide)


def test_pods_that_wait_start_when_the_subnet_grows(cluster: NodeCluster) -> None:
    cluster.workloads.scale("many", FOR_PODS + 5)
    wait_until(lambda: len(cluster.workloads.pods("many")) == FOR_PODS + 5, "more pods than addresses")
    cluster.podtide.administer("subnet", "grow", "default", "pods", "10.9.0.0/28")
    pods = cluster.workloads.wait_until_ready("many", FOR_PODS + 5)
    later = [pod for pod in pods if pod.addresses[0].startswith("10.9.")]
    assert later
    earlier = next(pod for pod in pods if pod not in later)
    cluster.workloads.ping(later[0], earlier.addresses[0])
    cluster.workloads.ping(earlier, later[0].addresses[0])
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/many")
