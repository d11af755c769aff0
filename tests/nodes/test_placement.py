"""Placement on real nodes: kube-scheduler, kubelets and the policy of the chart, in a subnet with fewer addresses than pods.

What is switched on in between is `placement.enabled`, as a user does who has pods in ContainerCreating.
"""

import json
import time
from typing import Any

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import wait_until
from node_bench.workloads import Pod
from nodes.audit import agreed
from real_kubernetes import NEEDS_MUTATING_POLICY

CLUSTER = ClusterSpec(subnets={"pods": ["10.1.0.0/28"]})
FOR_PODS = 11
"""Of 14 usable addresses the gateway has one and each node one."""
TOO_MANY = FOR_PODS + 9
RESOURCE = "podtide.io/ipv4"
"""What nodes publish."""
SEEN_SECONDS = 15.0
"""Within them a kubelet writes its status: every ten seconds, if anything differs."""


def ready(cluster: NodeCluster, app: str = "many") -> list[Pod]:
    return [pod for pod in cluster.workloads.pods(app) if pod.is_ready]


def hanging(cluster: NodeCluster) -> list[Pod]:
    """Pods that are bound to a node and have no address."""
    return [pod for pod in cluster.workloads.pods("many") if pod.node and not pod.addresses]


def unscheduled(cluster: NodeCluster) -> list[str]:
    """What the scheduler says of pods that it places nowhere."""
    return [
        condition["message"]
        for pod in cluster.workloads.pods("many")
        for condition in pod.document["status"].get("conditions", ())
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]


def published(cluster: NodeCluster) -> dict[str, tuple[str, str]]:
    """Capacity and allocatable of every Node; "" for none."""
    nodes = json.loads(cluster.podtide.kubectl("get", "nodes", "--output=json"))["items"]
    return {
        node["metadata"]["name"]: (
            node["status"]["capacity"].get(RESOURCE, ""),
            node["status"]["allocatable"].get(RESOURCE, ""),
        )
        for node in nodes
    }


def are_published(cluster: NodeCluster, total: int) -> bool:
    numbers = published(cluster).values()
    return all(capacity == allocatable != "" for capacity, allocatable in numbers) and (
        sum(int(capacity) for capacity, _ in numbers) == total
    )


def switch(cluster: NodeCluster, **values: Any) -> None:
    cluster.podtide.upgrade(**values)
    cluster.podtide.wait_until_ready()


def test_without_placement_pods_are_bound_and_hang(cluster: NodeCluster) -> None:
    cluster.workloads.deploy("many", TOO_MANY)
    wait_until(lambda: len(ready(cluster)) == FOR_PODS, f"{FOR_PODS} pods with an address")
    wait_until(lambda: len(hanging(cluster)) == TOO_MANY - FOR_PODS, "the others, bound all the same")
    wait_until(lambda: cluster.workloads.events("FailedCreatePodSandBox"), "sandboxes that failed")
    cluster.workloads.scale("many", 4)
    cluster.workloads.wait_until_ready("many", 4)


@NEEDS_MUTATING_POLICY
def test_pods_from_before_count_as_users_though_they_request_nothing(cluster: NodeCluster) -> None:
    switch(cluster, placement__enabled=True)
    # 7 can be had and one more per node may be published. The scheduler does not see the 4 pods that are there.
    wait_until(lambda: all(each != ("", "") for each in published(cluster).values()), "numbers on every Node")
    cluster.workloads.deploy("more", TOO_MANY)
    wait_until(lambda: len(ready(cluster, "more")) == FOR_PODS - 4, "pods on all that is left")
    bound = [pod for pod in cluster.workloads.pods("more") if pod.node]
    assert len(bound) <= FOR_PODS - 4 + len(cluster.bench.nodes), "one per node at most without an address"
    cluster.workloads.remove("deployment/more", "deployment/many")


@NEEDS_MUTATING_POLICY
def test_pods_that_can_have_no_address_stay_pending_by_the_schedulers_own_word(cluster: NodeCluster) -> None:
    cluster.workloads.deploy("many", TOO_MANY)
    wait_until(lambda: len(ready(cluster)) == FOR_PODS, f"{FOR_PODS} pods with an address")
    assert len(hanging(cluster)) <= len(cluster.bench.nodes)
    wait_until(lambda: len(unscheduled(cluster)) >= TOO_MANY - FOR_PODS - 2, "pods that are placed nowhere")
    assert all(f"Insufficient {RESOURCE}" in message for message in unscheduled(cluster))
    wait_until(lambda: condition_of(cluster, "Full") == "True", "the condition that the subnet is full")
    agreed(cluster.podtide)


def condition_of(cluster: NodeCluster, kind: str) -> str:
    path = f'--output=jsonpath={{.status.conditions[?(@.type=="{kind}")].status}}'
    return cluster.podtide.kubectl("get", "clustersubnet", "pods", path)


@NEEDS_MUTATING_POLICY
def test_a_restarted_kubelet_keeps_its_pods_and_what_was_published(cluster: NodeCluster) -> None:
    before = {pod.uid for pod in ready(cluster)}
    numbers = published(cluster)
    for node in cluster.bench.nodes:
        node.kubelet.kill()
        node.kubelet.start()
    cluster.podtide.wait_until_ready()
    time.sleep(SEEN_SECONDS)
    assert {pod.uid for pod in ready(cluster)} == before
    assert published(cluster) == numbers


@NEEDS_MUTATING_POLICY
def test_a_kubelet_without_its_records_keeps_them_too_and_no_controller_is_needed_for_that(
    cluster: NodeCluster,
) -> None:
    """By its source a kubelet sets extended resources to 0 if it has no records of device plugins: it does not come to that."""
    cluster.podtide.kubectl("scale", "deployment/podtide-controller", "--replicas=0")
    wait_until(lambda: not controllers(cluster), "no controller")
    numbers = published(cluster)
    node = cluster.bench.nodes[0]
    node.kubelet.kill()
    node.machine.run("sh", "-c", "rm -f /var/lib/kubelet/device-plugins/*")
    node.kubelet.start()
    wait_until(lambda: node.is_ready, "a kubelet that reports")
    time.sleep(SEEN_SECONDS)
    assert published(cluster) == numbers
    assert len(ready(cluster)) == FOR_PODS
    cluster.podtide.kubectl("scale", "deployment/podtide-controller", "--replicas=2")
    cluster.podtide.wait_until_ready()


def controllers(cluster: NodeCluster) -> str:
    selector = "--selector=app.kubernetes.io/component=controller"
    return cluster.podtide.kubectl("get", "pods", selector, "--output=name")


@NEEDS_MUTATING_POLICY
def test_pods_run_when_addresses_come_free(cluster: NodeCluster) -> None:
    uids = {pod.uid for pod in ready(cluster)}
    for pod in ready(cluster)[:3]:
        cluster.podtide.bench.kubectl("delete", "pod", pod.name, "--namespace=default", "--wait=false")
    wait_until(
        lambda: len(ready(cluster)) == FOR_PODS and len({pod.uid for pod in ready(cluster)} - uids) == 3,
        "others in place of the three that ended",
    )
    assert len(hanging(cluster)) <= len(cluster.bench.nodes)
    agreed(cluster.podtide)


@NEEDS_MUTATING_POLICY
def test_exact_fit_every_address_is_a_pods_and_every_pod_runs(cluster: NodeCluster) -> None:
    cluster.workloads.remove("deployment/many")
    cluster.workloads.deploy("many", FOR_PODS)
    pods = cluster.workloads.wait_until_ready("many", FOR_PODS)
    assert len({address for pod in pods for address in pod.addresses}) == FOR_PODS
    agreed(cluster.podtide)


def test_by_the_taint_alone_pods_stay_away_from_nodes_without_addresses(cluster: NodeCluster) -> None:
    switch(cluster, placement__enabled=True, placement__taint="always")
    cluster.workloads.scale("many", FOR_PODS)
    cluster.workloads.wait_until_ready("many", FOR_PODS)
    wait_until(lambda: len(tainted(cluster)) == len(cluster.bench.nodes), "the taint on every Node")
    assert len(ready(cluster)) == FOR_PODS, "pods that run stay"
    cluster.workloads.scale("many", FOR_PODS - 4)
    wait_until(lambda: not tainted(cluster), "Nodes without the taint")
    cluster.workloads.wait_until_ready("many", FOR_PODS - 4)


def tainted(cluster: NodeCluster) -> list[str]:
    nodes = json.loads(cluster.podtide.kubectl("get", "nodes", "--output=json"))["items"]
    return [
        node["metadata"]["name"]
        for node in nodes
        if any(taint["key"] == "podtide.io/no-addresses" for taint in node["spec"].get("taints", ()))
    ]


def test_switched_off_again_nothing_of_it_is_left_and_pods_run_on(cluster: NodeCluster) -> None:
    before = {pod.uid for pod in ready(cluster)}
    switch(cluster, placement__enabled=False)
    wait_until(
        lambda: all(each == ("", "") for each in published(cluster).values()), "Nodes without the resource"
    )
    assert not tainted(cluster)
    if "mutatingadmissionpolicies" in cluster.podtide.kubectl("api-resources", "--output=name"):
        policies = cluster.podtide.kubectl("get", "mutatingadmissionpolicies", "--output=name")
        assert "podtide" not in policies
    assert {pod.uid for pod in ready(cluster)} == before
    cluster.workloads.scale("many", FOR_PODS)
    cluster.workloads.wait_until_ready("many", FOR_PODS)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/many")
