"""podtide is removed from real nodes, and installed again."""

import json
import re
import signal
from pathlib import Path

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.node import Node
from node_bench.podtide_installation import wait_until
from nodes.audit import agreed, processes_of

CLUSTER = ClusterSpec()
LONG_SECONDS = 300
"""A program that ignores SIGTERM would be waited for as long as this, which is longer than the test waits."""


def leader(cluster: NodeCluster) -> str:
    lease = json.loads(cluster.podtide.kubectl("get", "lease", "podtide-controller", "--output=json"))
    holder: str = lease["spec"].get("holderIdentity") or ""
    return holder


def heeds_sigterm(node: Node) -> bool:
    statuses = [Path(f"/proc/{process}/status").read_text() for process in processes_of(node, "wait")]
    caught = [int(re.findall(r"^SigCgt:\t(\w+)", status, re.MULTILINE)[0], 16) for status in statuses]
    return bool(caught) and all(mask >> (signal.SIGTERM - 1) & 1 for mask in caught)


def test_nobody_holds_the_lease_after_an_uninstall_and_pods_outlive_it(cluster: NodeCluster) -> None:
    cluster.workloads.deploy("staying", 4)
    before = cluster.workloads.wait_until_ready("staying", 4)
    assert leader(cluster)
    cluster.podtide.uninstall()
    assert leader(cluster) == ""
    assert {pod.uid: pod.addresses for pod in cluster.workloads.pods("staying")} == {
        pod.uid: pod.addresses for pod in before
    }
    cluster.podtide.install()
    cluster.podtide.wait_until_ready()
    wait_until(lambda: leader(cluster), "a leader")
    cluster.workloads.scale("staying", 8)
    after = cluster.workloads.wait_until_ready("staying", 8)
    assert {address for pod in before for address in pod.addresses} < {
        address for pod in after for address in pod.addresses
    }
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/staying")


def test_what_agents_installed_is_removed_and_the_remover_ends_when_it_is_told_to(
    cluster: NodeCluster,
) -> None:
    cluster.podtide.upgrade(cni__remove=True)
    cluster.podtide.kubectl("rollout", "status", "daemonset/podtide-remover", "--timeout=120s")
    for node in cluster.bench.nodes:
        assert not node.machine.path("/etc/cni/net.d/10-podtide.conflist").exists()
        assert not node.machine.path("/opt/cni/bin/podtide").exists()
    # Until a program has said what it does at SIGTERM, the kernel spares the first process of a container.
    wait_until(lambda: all(heeds_sigterm(node) for node in cluster.bench.nodes), "removers that heed SIGTERM")
    of_remover = "--selector=app.kubernetes.io/component=remover"
    pods = cluster.podtide.kubectl("get", "pods", of_remover, "--output=name").split()
    cluster.podtide.kubectl("delete", *pods, f"--grace-period={LONG_SECONDS}", "--wait=false")
    wait_until(
        lambda: (
            not set(pods) & set(cluster.podtide.kubectl("get", "pods", of_remover, "--output=name").split())
        ),
        "the end of the remover's pods",
        LONG_SECONDS / 3,
    )
    cluster.podtide.uninstall()
