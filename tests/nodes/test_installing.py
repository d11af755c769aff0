"""podtide is installed on real nodes by what docs/installing.md begins with, and says itself whether it works."""

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import wait_until

CLUSTER = ClusterSpec(nodes=("node-a",))
SUBNETS_JOB = "--selector=app.kubernetes.io/component=subnets"


def test_after_one_helm_install_the_node_is_ready_and_helm_test_passes(cluster: NodeCluster) -> None:
    told = cluster.podtide.test()
    assert told.count("Phase:          Succeeded") == 5, told
    logs = cluster.podtide.kubectl("logs", "podtide-test-check")
    assert logs.startswith("clean: 1 node with"), logs
    unchecked = [line for line in logs.splitlines() if "not checked" in line]
    assert len(unchecked) == 1, logs
    assert "what agents keep to themselves" in unchecked[0], "it may read all else that there is"


def test_a_subnet_grows_by_an_upgrade(cluster: NodeCluster) -> None:
    more = ["10.1.0.0/24", "10.2.0.0/24"]
    cluster.podtide.upgrade(subnets=[{"name": "pods", "cidrs": more}])
    wait_until(
        lambda: ",".join(more) in cluster.podtide.administer("subnet", "list"), "a subnet that has grown"
    )
    jobs = cluster.podtide.kubectl("get", "jobs", SUBNETS_JOB, "--output=name").split()
    assert len(jobs) == 1, "the former one is gone"
