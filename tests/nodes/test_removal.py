"""podtide is removed from real nodes, and installed again."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

from node_bench.cluster import ClusterSpec, NodeCluster
from node_bench.node import Node
from node_bench.podtide_installation import PODTIDE, wait_until
from nodes.audit import agreed, processes_of
from podtide.cli.shell.exit_status import ExitStatus

CLUSTER = ClusterSpec()
LONG_SECONDS = 300
"""A program that ignores SIGTERM would be waited for as long as this, which is longer than the test waits."""

EVENTS = {"events", "events.events.k8s.io"}
SIGNS = ("podtide", "acn.azure.com", "whereabouts.cni.cncf.io", "pod-ro")


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


def uninstall(cluster: NodeCluster, *options: str) -> subprocess.CompletedProcess[str]:
    """`podtide uninstall`; how long it took is printed."""
    began = time.monotonic()
    command = [*PODTIDE, "uninstall", f"--kubeconfig={cluster.bench.control_plane.kubeconfig}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG_SECONDS)
    print(f"podtide uninstall took {time.monotonic() - began:.1f} s\n{done.stdout}{done.stderr}")  # noqa: T201 - for who runs it
    return done


def objects_left(cluster: NodeCluster) -> list[str]:
    """Every object of every kind with podtide in its name, or of a kind of podtide's; Events are forgotten by themselves."""
    kubectl = cluster.podtide.kubectl
    kinds = set(kubectl("api-resources", "--verbs=list", "--output=name").split()) - EVENTS
    found = kubectl("get", ",".join(sorted(kinds)), "--all-namespaces", "--output=name", "--ignore-not-found")
    return [line for line in found.split() if any(word in line for word in SIGNS)]


def files_left(cluster: NodeCluster) -> list[str]:
    """A bench mounts /var/lib/podtide, and what is mounted cannot be removed: there it has to be empty."""
    return [
        f"{node.name}:{path}"
        for node in cluster.bench.nodes
        for path in (
            node.machine.path("/etc/cni/net.d/10-podtide.conflist"),
            node.machine.path("/opt/cni/bin/podtide"),
            node.machine.path("/run/podtide"),
            *node.machine.path("/var/lib/podtide").iterdir(),
        )
        if path.exists()
    ]


def test_uninstalling_is_refused_while_pods_hold_addresses_and_nothing_changes(cluster: NodeCluster) -> None:
    cluster.workloads.deploy("holding", 4)
    cluster.workloads.wait_until_ready("holding", 4)
    before = objects_left(cluster), files_left(cluster)
    refused = uninstall(cluster)
    assert refused.returncode == ExitStatus.BAD_INPUT
    assert "4 pods hold addresses of podtide's (default/holding-" in refused.stderr
    assert (objects_left(cluster), files_left(cluster)) == before
    agreed(cluster.podtide)


def test_forced_it_leaves_nothing_and_pods_keep_their_addresses_through_the_next_installation(
    cluster: NodeCluster,
) -> None:
    before = {pod.uid: pod.addresses for pod in cluster.workloads.wait_until_ready("holding", 4)}
    assert uninstall(cluster, "--force").returncode == 0
    cluster.podtide.uninstall()
    wait_until(lambda: not objects_left(cluster), f"the end of {objects_left(cluster)}")
    assert files_left(cluster) == []
    cluster.podtide.install()
    cluster.podtide.wait_until_ready()
    assert {pod.uid: pod.addresses for pod in cluster.workloads.pods("holding")} == before
    cluster.workloads.scale("holding", 8)
    after = cluster.workloads.wait_until_ready("holding", 8)
    assert len({address for pod in after for address in pod.addresses}) == len(after)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/holding")


def test_when_pods_are_gone_nothing_is_left_also_at_the_allocator_and_installing_again_works(
    cluster: NodeCluster,
) -> None:
    wait_until(lambda: not cluster.workloads.pods("holding"), "the end of the pods")
    said = cluster.podtide.administer("uninstall", f"--kubeconfig={cluster.bench.control_plane.kubeconfig}")
    assert "freed at the allocator: cluster default, 2 containers" in said
    cluster.podtide.uninstall()
    wait_until(lambda: not objects_left(cluster), f"the end of {objects_left(cluster)}")
    assert files_left(cluster) == []
    assert "nothing of podtide's is left" in uninstall(cluster).stdout
    cluster.podtide.install()
    cluster.podtide.wait_until_ready()
    cluster.workloads.deploy("new", 4)
    cluster.workloads.wait_until_ready("new", 4)
    agreed(cluster.podtide)
    cluster.workloads.remove("deployment/new")


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
