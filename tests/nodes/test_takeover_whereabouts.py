"""podtide takes over the networks of a cluster that runs Whereabouts, on real nodes: docs/migrating.md, step by step, and back again.

The cluster has its primary network from others (`ptp`, host-local), Multus in front of it, and two networks whose addresses the
real Whereabouts gives: one classic, one cut by Whereabouts' own controller. The tests are one story, in their order.
"""

import json
import shutil
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import yaml

from cni_programs import WHEREABOUTS, WHEREABOUTS_SLICES
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import find_go
from control_plane.process import Nursery
from go_program import executable, source_directory
from left_out import leave_out
from node_bench.bench import NodeBench
from node_bench.cluster import NodeCluster, Parts
from node_bench.node import ProcessInside
from node_bench.podtide_installation import Installation, wait_until
from node_bench.programs import say_on_stderr
from node_bench.workloads import Document, Pod, Workloads
from nodes.audit import told
from nodes.secondary_addresses import held, second_address

NODES = ("node-a", "node-b")
CLASSIC, CUT = "10.20.0.0/24", "10.30.0.0/16"
NETWORKS: dict[str, Document] = {
    "classic": {"range": CLASSIC},
    "cut": {"range": CUT, "network_name": "cut", "node_slice_size": "/24"},
}
"""What their `ipam` says, beside its type."""
INTERFACES = {"net1": CLASSIC, "net2": CUT}
NAMESPACES = {"classic": "default", "cut": "kube-system"}
"""Whereabouts makes a definition the owner of its slices, which are in kube-system; Kubernetes removes what has an owner elsewhere."""
ATTACHED = {"k8s.v1.cni.cncf.io/networks": "default/classic,kube-system/cut"}
PLUGIN = "/opt/cni/bin/whereabouts"
SETTINGS = "/etc/cni/net.d/whereabouts.d"
DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"


@pytest.fixture(scope="module")
def whereabouts(pytestconfig: pytest.Config) -> Path:
    """Its plugin. That it is built takes minutes, once."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            executable(WHEREABOUTS_SLICES, say_on_stderr, find_go)
            return executable(WHEREABOUTS, say_on_stderr, find_go)
    except CannotBuild as reason:
        leave_out(WHEREABOUTS.name, reason)


@pytest.fixture(scope="module")
def cluster(
    parts: Parts, whereabouts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeCluster]:
    """Nodes whose pods have addresses of Whereabouts'; podtide is not there yet."""
    with NodeBench(
        parts.binaries, parts.programs, init=parts.init, images=parts.images, nodes=NODES
    ) as bench:
        kubeconfig = install_whereabouts(bench, whereabouts)
        podtide = Installation(
            bench, parts.helm, tmp_path_factory.mktemp("operator"), {"agent.nodePool": False}
        )
        define_networks(bench, podtide)
        running = NodeCluster(bench, podtide, Workloads(bench))
        cut_slices(running, kubeconfig)
        put_multus_in_front(bench)
        wait_until(lambda: all(node.is_ready for node in bench.nodes), "every node Ready")
        yield running


def install_whereabouts(bench: NodeBench, plugin: Path) -> Path:
    """As its own DaemonSet does: the plugin, and the file from which it knows the cluster. Returns its kubeconfig."""
    kubeconfig = bench.control_plane.credentials.kubeconfig_for_user(
        "whereabouts", groups=["system:masters"], url=bench.control_plane.url_for_nodes
    )
    reach = {"kubernetes": {"kubeconfig": str(kubeconfig)}}
    for node in bench.nodes:
        shutil.copy(plugin, node.machine.path(PLUGIN))
        node.machine.write(f"{SETTINGS}/whereabouts.conf", json.dumps(reach))
    return kubeconfig


def define_networks(bench: NodeBench, podtide: Installation) -> None:
    """Kinds of Whereabouts', as Whereabouts defines them, Multus' kind, and the networks."""
    source = source_directory(WHEREABOUTS, say_on_stderr, find_go)
    for file in sorted((source / "doc" / "crds").glob("*_*.yaml")):
        podtide.kubectl("apply", f"--filename={file}")
    kinds = yaml.safe_load_all(podtide.podtide("crds", "--with-network-attachments"))
    [attachments] = [each for each in kinds if each["spec"]["names"]["kind"] == "NetworkAttachmentDefinition"]
    podtide.kubectl("apply", "--filename=-", stdin=json.dumps(attachments))
    wait_until(lambda: bench.kubectl("get", "network-attachment-definitions").returncode == 0, "Multus' kind")
    define(podtide)


def define(podtide: Installation) -> None:
    """Write the networks as they are for Whereabouts."""
    for name in NETWORKS:
        text = json.dumps(definition(name))
        done = podtide.bench.kubectl("apply", "--filename=-", stdin=text)
        assert done.returncode == 0, done.stderr


def definition(name: str) -> Document:
    """A network as users of Whereabouts write it."""
    ipam = {"type": "whereabouts", **NETWORKS[name]}
    network = {"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": f"{name}0", "ipam": ipam}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": NAMESPACES[name]},
        "spec": {"config": json.dumps(network)},
    }


def cut_slices(cluster: NodeCluster, kubeconfig: Path) -> None:
    """Let Whereabouts' own controller give every node its slice; it ends then, as docs/migrating.md wants it to."""
    nursery = Nursery()
    program = executable(WHEREABOUTS_SLICES, say_on_stderr, find_go)
    log = nursery.directory / "node-slices.log"
    command = [  # on a node: it reads the same file as the plugin
        *(*cluster.bench.nodes[0].machine.inside, "env", "WHEREABOUTS_NAMESPACE=kube-system"),
        *(str(program), "-kubeconfig", str(kubeconfig)),
    ]
    controller = ProcessInside(nursery, command, lambda: True, log=log)
    try:
        controller.start()
        wait_until(lambda: slices(cluster).keys() == set(NODES), "a slice for every node", 60)
    except AssertionError as error:
        raise AssertionError(f"{error}: {log.read_text()[-2000:]}") from error
    finally:
        controller.kill()
        nursery.close()


def put_multus_in_front(bench: NodeBench) -> None:
    """Multus, with a primary network that has nothing to do with podtide."""
    kubeconfig = bench.control_plane.credentials.kubeconfig_for_user(
        "multus", groups=["system:masters"], url=bench.control_plane.url_for_nodes
    )
    for number, node in enumerate(bench.nodes):
        ipam = {"type": "host-local", "ranges": [[{"subnet": f"10.200.{number}.0/24"}]]}
        primary = {"cniVersion": "1.0.0", "name": "primary", "plugins": [{"type": "ptp", "ipam": ipam}]}
        configuration = {
            "cniVersion": "1.0.0",
            "name": "multus",
            "type": "multus",
            "kubeconfig": str(kubeconfig),
            "delegates": [primary],
        }
        node.machine.write("/etc/cni/net.d/00-multus.conf", json.dumps(configuration))


def slices(cluster: NodeCluster) -> dict[str, str]:
    """By node, the slice that it has."""
    listed = json.loads(cluster.podtide.kubectl("get", "nodeslicepools", "--output=json"))["items"]
    return {
        entry["nodeName"]: entry["sliceRange"]
        for pool in listed
        for entry in pool.get("status", {}).get("allocations", ())
        if entry["nodeName"]
    }


def start(cluster: NodeCluster, app: str, count: int) -> dict[str, Pod]:
    """Pods on both networks, by the addresses that they have there."""
    cluster.workloads.deploy(app, count, annotations=ATTACHED)
    try:
        pods = cluster.workloads.wait_until_ready(app, count, 120)
    except AssertionError as error:
        failed = {event["message"] for event in cluster.workloads.events("FailedCreatePodSandBox")}
        raise AssertionError(f"{error}: {failed}") from error
    return addresses(cluster, pods)


def addresses(cluster: NodeCluster, pods: list[Pod]) -> dict[str, Pod]:
    """By address, who has it; each is its network's, and of a network that is cut, its node's."""
    found: dict[str, Pod] = {}
    for pod in pods:
        for interface, range_ in INTERFACES.items():
            address = second_address(cluster, pod, interface)
            assert address not in found, f"{pod.name} and {found[address].name} share {address}"
            assert ip_address(address) in ip_network(slices(cluster)[pod.node] if range_ == CUT else range_)
            found[address] = pod
    return found


def by_podref(*holders: dict[str, Pod]) -> dict[str, str]:
    return {address: f"default/{pod.name}" for each in holders for address, pod in each.items()}


def wait_for_held(cluster: NodeCluster, expected: dict[str, str]) -> None:
    """Until the pools say that these have addresses and nobody else."""
    try:
        wait_until(lambda: held(cluster) == expected, "pools as they are to be", 90)
    except AssertionError:
        assert held(cluster) == expected


def types(cluster: NodeCluster) -> set[str]:
    """Who answers for the networks."""
    items = cluster.bench.control_plane.admin.request("GET", DEFINITIONS)["items"]
    return {json.loads(each["spec"]["config"])["ipam"]["type"] for each in items}


def migrate(cluster: NodeCluster, how: str) -> str:
    kubeconfig = str(cluster.bench.control_plane.kubeconfig)
    return cluster.podtide.podtide("migrate", "whereabouts", how, "--kubeconfig", kubeconfig)


def test_podtide_takes_the_networks_over_and_no_pod_notices(cluster: NodeCluster) -> None:
    before = start(cluster, "before", 6)
    pods = cluster.workloads.pods("before")
    assert held(cluster) == by_podref(before)
    pools = cluster.podtide.kubectl("get", "ippools", "--output=name")
    cut = slices(cluster)

    crds = cluster.podtide.podtide("crds")
    cluster.podtide.kubectl("apply", "--filename=-", stdin=crds)
    cluster.podtide.install()
    cluster.podtide.wait_until_ready()
    assert "would change" in migrate(cluster, "--dry-run")
    assert types(cluster) == {"whereabouts"}
    migrate(cluster, "--apply")
    assert types(cluster) == {"podtide"}

    after = start(cluster, "after", 6)
    assert not before.keys() & after.keys()
    assert held(cluster) == by_podref(before, after)
    assert told(cluster.workloads.pods("before")) == told(pods)
    assert addresses(cluster, cluster.workloads.pods("before")).keys() == before.keys()
    assert slices(cluster) == cut
    assert cluster.podtide.kubectl("get", "ippools", "--output=name") == pools, "no pool has been made"
    assert "clean" in cluster.podtide.check()


def test_pods_from_before_free_their_addresses_by_podtide_under_the_name_of_whereabouts(
    cluster: NodeCluster, whereabouts: Path
) -> None:
    workloads = cluster.workloads
    after = addresses(cluster, workloads.pods("after"))
    for node in cluster.bench.nodes:
        node.machine.path(PLUGIN).unlink()
    cluster.podtide.upgrade(cni__forWhereabouts=True)
    cluster.podtide.wait_until_ready()
    wait_until(lambda: all(node.machine.path(PLUGIN).exists() for node in cluster.bench.nodes), PLUGIN)
    for node in cluster.bench.nodes:
        assert node.machine.path(PLUGIN).read_bytes() != whereabouts.read_bytes()

    workloads.scale("before", 3)
    left = addresses(cluster, workloads.wait_until_ready("before", 3))
    wait_for_held(cluster, by_podref(left, after))
    workloads.remove("deployment/before")
    wait_for_held(cluster, by_podref(after))
    assert "clean" in cluster.podtide.check()


def test_the_way_back_leads_to_whereabouts_with_the_same_pools(
    cluster: NodeCluster, whereabouts: Path
) -> None:
    workloads = cluster.workloads
    pods = workloads.pods("after")
    after = addresses(cluster, pods)
    cluster.podtide.upgrade(secondaryNetworks__enabled=False, cni__forWhereabouts=False)
    cluster.podtide.wait_until_ready()
    for node in cluster.bench.nodes:
        node.machine.path(PLUGIN).unlink(missing_ok=True)
        shutil.copy(whereabouts, node.machine.path(PLUGIN))
    define(cluster.podtide)
    assert types(cluster) == {"whereabouts"}
    cluster.podtide.kubectl("rollout", "restart", "daemonset/podtide-agent")
    cluster.podtide.wait_until_ready()
    again = start(cluster, "again", 6)
    assert not again.keys() & after.keys()
    assert held(cluster) == by_podref(after, again)
    assert told(workloads.pods("after")) == told(pods)
    workloads.remove("deployment/after", "deployment/again")
    wait_for_held(cluster, {})
