"""What users run, on real nodes with podtide's default settings."""

import json
from itertools import pairwise

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import wait_until
from node_bench.settings import STATIC_PODS
from node_bench.workloads import by_node, pod_template, service
from nodes.audit import agreed

CLUSTER = ClusterSpec()
ONE_NODE = "node-a"


def test_forty_pods_come_and_go(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    workloads.deploy("forty", 40)
    pods = workloads.wait_until_ready("forty", 40)
    assert set(by_node(pods)) == {node.name for node in cluster.bench.nodes}
    agreed(cluster.podtide)
    workloads.scale("forty", 5)
    workloads.wait_until_ready("forty", 5)
    agreed(cluster.podtide)
    workloads.remove("deployment/forty")
    agreed(cluster.podtide)


def test_pods_reach_each_other_within_and_across_nodes(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    for node in cluster.bench.nodes:
        workloads.deploy(f"peers-{node.name}", 2, node=node.name)
    pods = [
        pod for node in cluster.bench.nodes for pod in workloads.wait_until_ready(f"peers-{node.name}", 2)
    ]
    for one, other in pairwise([*pods, pods[0]]):
        workloads.ping(one, other.addresses[0])
        assert workloads.fetch(one, other.addresses[0]) == other.name
    workloads.remove(*(f"deployment/peers-{node.name}" for node in cluster.bench.nodes))


def test_a_service_leads_to_pods_of_all_nodes(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    workloads.deploy("web", 4)
    pods = workloads.wait_until_ready("web", 4)
    workloads.apply(service("web"))
    address = cluster.bench.control_plane.admin.request("GET", "/api/v1/namespaces/default/services/web")[
        "spec"
    ]["clusterIP"]
    answered = set[str]()

    def all_answered() -> bool:
        for pod in pods:
            answered.add(workloads.fetch(pod, address, 80))
        return answered == {pod.name for pod in pods}

    wait_until(all_answered, "an answer of every pod behind the Service", 60)
    workloads.remove("deployment/web", "service/web")


def test_a_burst_of_35_pods_on_one_node_fails_no_sandbox(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    workloads.deploy("burst", 35, node=ONE_NODE)
    workloads.wait_until_ready("burst", 35)
    refused = [event["message"] for event in workloads.events("FailedCreatePodSandBox")]
    assert not [message for message in refused if "burst" in message or "address" in message], refused
    agreed(cluster.podtide)
    workloads.remove("deployment/burst")


def test_a_stateful_set_keeps_its_names_and_gets_addresses_anew(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    workloads.apply(
        service("stateful", clusterIP="None"),
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "stateful"},
            "spec": {
                "replicas": 3,
                "serviceName": "stateful",
                "selector": {"matchLabels": {"app": "stateful"}},
                "template": pod_template("stateful"),
            },
        },
    )
    before = {pod.name: pod for pod in workloads.wait_until_ready("stateful", 3)}
    cluster.bench.kubectl("delete", "pod", "stateful-1", "--wait=false")
    wait_until(
        lambda: all(pod.uid != before["stateful-1"].uid for pod in workloads.pods("stateful")), "another pod"
    )
    after = {pod.name: pod for pod in workloads.wait_until_ready("stateful", 3)}
    assert after.keys() == before.keys()
    assert after["stateful-0"].addresses == before["stateful-0"].addresses
    agreed(cluster.podtide)
    workloads.remove("statefulset/stateful", "service/stateful")


def test_jobs_with_many_completions_leave_nothing_held(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    template = pod_template("counting", command=("true",), restartPolicy="Never")
    workloads.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "counting"},
            "spec": {"completions": 30, "parallelism": 10, "template": template},
        }
    )

    def is_complete() -> bool:
        job = cluster.bench.control_plane.admin.request(
            "GET", "/apis/batch/v1/namespaces/default/jobs/counting"
        )
        return bool(job["status"].get("succeeded") == 30)

    wait_until(is_complete, "thirty completions")
    agreed(cluster.podtide)
    workloads.remove("job/counting")


def test_pods_of_the_nodes_network_take_no_address(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    workloads.deploy("host", 2, command=("sleep", "1000"), hostNetwork=True)
    pods = workloads.wait_until_ready("host", 2)
    places = {node.machine.place.address for node in cluster.bench.nodes}
    assert {pod.addresses[0] for pod in pods} <= places
    agreed(cluster.podtide)
    workloads.remove("deployment/host")


def test_a_static_pod_gets_an_address_and_gives_it_back(cluster: NodeCluster) -> None:
    node = cluster.bench.node(ONE_NODE)
    template = pod_template("static")
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "static", "namespace": "default", **template["metadata"]},
        "spec": template["spec"],
    }
    path = f"{STATIC_PODS}/static.json"
    node.machine.write(path, json.dumps(manifest))
    [pod] = cluster.workloads.wait_until_ready("static", 1)
    assert pod.node == node.name
    agreed(cluster.podtide)
    node.machine.path(path).unlink()
    wait_until(lambda: not cluster.workloads.pods("static"), "the static pod's end")
    agreed(cluster.podtide)


def test_a_hundred_pods_run_on_two_nodes(cluster: NodeCluster) -> None:
    cluster.workloads.deploy("hundred", 100)
    pods = cluster.workloads.wait_until_ready("hundred", 100, 600)
    assert {len(each) for each in by_node(pods).values()} <= set(range(30, 71))
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/hundred")
