"""Programs and machines that end at once, while pods come and go on real nodes; default settings."""

import os
import signal
import time

import pytest

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.podtide_installation import wait_until
from node_bench.workloads import Pod
from nodes.audit import agreed, processes_of, told
from nodes.churn import STEP_SECONDS, churning

CLUSTER = ClusterSpec()
VICTIM = "node-b"
"""The allocator's database is on the other node."""


@pytest.mark.parametrize("command", ["agent", "controller", "allocator"])
def test_a_program_of_podtides_is_killed_again_and_again(cluster: NodeCluster, command: str) -> None:
    def running() -> list[int]:
        return [each for node in cluster.bench.nodes for each in processes_of(node, command)]

    with churning(cluster):
        for _ in range(2):  # what ends more often the kubelet starts ever later
            wait_until(running, f"a running {command}")
            for process in running():
                os.kill(process, signal.SIGKILL)
            time.sleep(STEP_SECONDS)
    cluster.podtide.wait_until_ready()
    agreed(cluster.podtide)


@pytest.mark.parametrize("program", ["containerd", "kubelet"])
def test_a_program_of_the_nodes_is_killed_and_pods_stay_as_they_are(
    cluster: NodeCluster, program: str
) -> None:
    node = cluster.bench.node(VICTIM)
    cluster.workloads.deploy("steady", 4, node=VICTIM)
    before = cluster.workloads.wait_until_ready("steady", 4)
    killed = getattr(node, program)
    with churning(cluster):
        killed.kill()
        time.sleep(STEP_SECONDS)
        killed.start()
    cluster.podtide.wait_until_ready()
    assert told(cluster.workloads.wait_until_ready("steady", 4)) == told(before)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/steady")


def test_all_sandboxes_of_a_node_are_killed(cluster: NodeCluster) -> None:
    node = cluster.bench.node(VICTIM)
    cluster.workloads.deploy("struck", 6, node=VICTIM)
    before = cluster.workloads.wait_until_ready("struck", 6)
    for task in node.ctr("tasks", "list", "--quiet").split():
        node.machine.attempt("ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", task)
    wait_until(
        lambda: all(
            pod.restarts > was.restarts
            for pod, was in zip(sorted_pods(cluster), by_name(before), strict=True)
        ),
        "a restart of every pod",
    )
    after = cluster.workloads.wait_until_ready("struck", 6)
    assert {pod.uid for pod in after} == {pod.uid for pod in before}
    cluster.podtide.wait_until_ready()
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/struck")


def test_a_node_loses_its_power_and_boots_again(cluster: NodeCluster) -> None:
    node = cluster.bench.node(VICTIM)
    cluster.workloads.deploy("dark", 6, node=VICTIM)
    before = cluster.workloads.wait_until_ready("dark", 6)
    with churning(cluster):
        node.reboot()
        time.sleep(STEP_SECONDS)
    cluster.podtide.wait_until_ready()
    after = cluster.workloads.wait_until_ready("dark", 6)
    assert {pod.uid for pod in after} == {pod.uid for pod in before}, (
        "the pods are the same, with new sandboxes"
    )
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/dark")


def test_the_agents_are_rolled_out_anew_while_pods_come_and_go(cluster: NodeCluster) -> None:
    with churning(cluster):
        cluster.podtide.upgrade(agent__podAnnotations={"example.org/rollout": "1"})
        cluster.podtide.kubectl("rollout", "status", "daemonset/podtide-agent", "--timeout=120s")
    cluster.podtide.wait_until_ready()
    agreed(cluster.podtide)


def test_everything_of_a_node_is_gone_when_it_is_drained(cluster: NodeCluster) -> None:
    workloads = cluster.workloads
    workloads.deploy("moving", 6)
    workloads.wait_until_ready("moving", 6)
    done = cluster.bench.kubectl(
        "drain", VICTIM, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s"
    )
    assert done.returncode == 0, done.stderr
    pods = workloads.wait_until_ready("moving", 6)
    assert VICTIM not in {pod.node for pod in pods}
    agreed(cluster.podtide)
    cluster.bench.kubectl("uncordon", VICTIM)
    workloads.remove("deployment/moving")


def by_name(pods: list[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: pod.name)


def sorted_pods(cluster: NodeCluster) -> list[Pod]:
    return by_name(cluster.workloads.pods("struck"))
