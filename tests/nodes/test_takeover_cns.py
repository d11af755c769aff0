"""podtide takes the place of Azure CNS on real nodes, and gives it back: pods keep running with their addresses.

Neither DNC nor CNS can run outside of Azure. So NodeNetworkConfigs are written in their shape, and pods get the addresses
in them by another IPAM (host-local) that knows nothing of podtide. On one of the nodes there is a state file as CNS writes it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from node_bench.bench import CONFIGS, NodeBench
from node_bench.cluster import Parts
from node_bench.node import Node
from node_bench.podtide_installation import Installation, wait_until
from node_bench.workloads import Pod, Workloads
from nodes.audit import agreed, assigned

GATEWAY, CIDR = "10.1.0.1", "10.1.0.0/24"
GIVEN = {"node-a": range(41, 45), "node-b": range(61, 65)}
"""The last numbers of the addresses that each node was given; its primary is the one before."""
CONFLIST = "/etc/cni/net.d/10-azure.conflist"
STATE_FILE = "/var/run/azure-cns/azure-endpoints.json"
WHERE = ("--cluster-name", "default", "--network", "default")


class Facts(Struct, frozen=True):
    """What must not change about a pod."""

    uid: str
    addresses: tuple[str, ...]
    restarts: int
    is_ready: bool


class Story(Struct):
    """A cluster of another program's, and podtide beside it."""

    bench: NodeBench
    podtide: Installation
    workloads: Workloads
    before: dict[str, Facts] = {}
    statuses: dict[str, Any] = {}
    """Of NodeNetworkConfigs, as they were written."""

    def migrate(self, *arguments: str) -> str:
        kubeconfig = str(self.bench.control_plane.kubeconfig)
        return self.podtide.administer("migrate", "cns", *arguments, *WHERE, "--kubeconfig", kubeconfig)

    def config(self, node: str) -> Any:
        path = CONFIGS.replace("/nodenetworkconfigs", f"/namespaces/kube-system/nodenetworkconfigs/{node}")
        return self.bench.control_plane.admin.request("GET", path)

    def old_pods(self) -> dict[str, Facts]:
        return {pod.name: facts(pod) for app in ("old-a", "old-b") for pod in self.workloads.pods(app)}

    def run_controllers(self, replicas: int) -> None:
        self.podtide.kubectl("scale", "deployment/podtide-controller", f"--replicas={replicas}")
        selector = "--selector=app.kubernetes.io/component=controller"
        wait_until(
            lambda: len(self.podtide.kubectl("get", "pods", selector, "--output=name").split()) == replicas,
            f"{replicas} controllers",
        )

    def write_state_file(self, node: Node) -> None:
        """What CNS would have recorded of the node's pods by now, in the form of tests/recorded/cns_endpoints."""
        endpoints = {
            sandbox_of(node, pod): {
                "PodName": pod.name,
                "PodNamespace": "default",
                "IfnameToIPMap": {
                    "eth0": {"IPv4": [{"IP": ip, "Mask": "////AA=="} for ip in pod.addresses], "NICType": ""}
                },
            }
            for app in ("old-a", "leaving")
            for pod in self.workloads.pods(app)
        }
        node.machine.run("mkdir", "-p", str(Path(STATE_FILE).parent))
        node.machine.run("tee", STATE_FILE, stdin=json.dumps({"Endpoints": endpoints}))

    def hand_over(self, node: Node) -> None:
        """As docs/migrating.md says it: the other program off, the hand-over, podtide's agent on."""
        node.machine.run("rm", CONFLIST)
        told = self.migrate("--hand-over", "--node", node.name)
        assert f"handed over to podtide (1)\n  {node.name}\n" in told
        self.podtide.kubectl("label", "node", node.name, "podtide.io/agent=yes")
        wait_until(lambda: assigned(node), f"an agent on {node.name} that has adopted its pods' addresses")
        wait_until(lambda: node.is_ready, f"{node.name} Ready")


def sandbox_of(node: Node, pod: Pod) -> str:
    """The id of the pod's sandbox, as containerd has it."""
    kind, uid = 'labels."io.cri-containerd.kind"==sandbox', f'labels."io.kubernetes.pod.uid"=={pod.uid}'
    (sandbox,) = node.ctr("containers", "list", "--quiet", f"{kind},{uid}").split()
    return sandbox


def journal_of(node: Node) -> list[dict[str, Any]]:
    """The changes in the journal of the node's agent."""
    lines = node.machine.path("/var/lib/podtide/agent.journal").read_text().splitlines()
    return [json.loads(line.split(" ", 2)[2]) for line in lines[1:]]


def facts(pod: Pod) -> Facts:
    return Facts(pod.uid, tuple(pod.addresses), pod.restarts, pod.is_ready)


def given(node: str) -> list[str]:
    return [f"10.1.0.{number}" for number in GIVEN[node]]


def conflist(node: str) -> str:
    ips = given(node)
    ranges = [[{"subnet": CIDR, "rangeStart": ips[0], "rangeEnd": ips[-1], "gateway": GATEWAY}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    return json.dumps({"cniVersion": "1.0.0", "name": "azure", "plugins": [{"type": "ptp", "ipam": ipam}]})


def as_dnc_writes(node: Node) -> dict[str, Any]:
    """A NodeNetworkConfig in the shape of DNC."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.object["metadata"]["uid"]}
    ips = given(node.name)
    container = {
        "id": f"2b7d7d2e-6f1c-4f6e-9f0e-0000000000{ips[0][-2:]}",
        "assignmentMode": "dynamic",
        "type": "vnet",
        "primaryIP": f"10.1.0.{GIVEN[node.name][0] - 1}",
        "subnetName": "pods",
        "subnetAddressSpace": CIDR,
        "defaultGateway": GATEWAY,
        "nodeIP": node.machine.place.address,
        "subcriptionID": "3c0a1a52-2222-4d6e-8a11-000000000001",
        "resourceGroupID": "group",
        "vnetID": "vnet",
        "subnetID": "pods",
        "version": 3,
        "status": "NCUpdateSuccess",
        "ipAssignments": [{"name": f"e1f3a1f0-3333-4444-8555-0000000000{ip[-2:]}", "ip": ip} for ip in ips],
    }
    scaler = {
        "batchSize": 16,
        "requestThresholdPercent": 50,
        "releaseThresholdPercent": 150,
        "maxIPCount": 250,
    }
    return {
        "apiVersion": "acn.azure.com/v1alpha",
        "kind": "NodeNetworkConfig",
        "metadata": {
            "name": node.name,
            "namespace": "kube-system",
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"requestedIPCount": len(ips)},
        "status": {
            "assignedIPCount": len(ips),
            "scaler": scaler,
            "status": "Updated",
            "networkContainers": [container],
        },
    }


@pytest.fixture(scope="module")
def story(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Two nodes with pods of another program's, and podtide installed but for its agents."""
    with NodeBench(
        parts.binaries, parts.programs, init=parts.init, images=parts.images, nodes=list(GIVEN)
    ) as bench:
        values = {"agent.nodeSelector": {"podtide.io/agent": "yes"}, "agent.cnsStateFile": STATE_FILE}
        podtide = Installation(bench, parts.helm, tmp_path_factory.mktemp("operator"), values)
        story = Story(bench, podtide, Workloads(bench))
        podtide.kubectl("apply", "--server-side", "--filename=-", stdin=podtide.podtide("crds"))
        for node in bench.nodes:
            podtide.kubectl(
                "wait", "crd/nodenetworkconfigs.acn.azure.com", "--for=condition=Established", "--timeout=60s"
            )
            document = as_dnc_writes(node)
            podtide.kubectl("create", "--filename=-", stdin=json.dumps(document))
            podtide.kubectl(
                "apply",
                "--server-side",
                "--subresource=status",
                "--field-manager=dnc-rc",
                "--filename=-",
                stdin=json.dumps(
                    {key: document[key] for key in ("apiVersion", "kind", "metadata", "status")}
                ),
            )
            story.statuses[node.name] = story.config(node.name)["status"]
            assert story.statuses[node.name]["networkContainers"][0]["version"] == 3
            node.machine.write(CONFLIST, conflist(node.name))
        wait_until(lambda: all(node.is_ready for node in bench.nodes), "every node Ready")
        for app, node_name in (("old-a", "node-a"), ("old-b", "node-b")):
            story.workloads.deploy(app, 2, node=node_name)
        for app in ("old-a", "old-b"):
            story.workloads.wait_until_ready(app, 2)
        story.workloads.deploy("leaving", 1, node="node-a")
        story.workloads.wait_until_ready("leaving", 1)
        story.before = story.old_pods()
        podtide.install()
        podtide.wait_until_ready()
        yield story


def test_a_controller_that_comes_first_changes_nothing(story: Story) -> None:
    shown = [ip for pod in story.before.values() for ip in pod.addresses]
    assert sorted(shown) == [*given("node-a")[:2], *given("node-b")[:2]]
    selector = "--field-selector=reason=ServedByAnotherProgram"
    wait_until(
        lambda: len(story.podtide.kubectl("get", "events", selector, "--output=name").split()) == len(GIVEN),
        "an Event for each node",
    )
    assert {name: story.config(name)["status"] for name in GIVEN} == story.statuses
    with pytest.raises(AssertionError, match="podtide's controller acts for this cluster"):
        story.migrate("--reserve")


def test_pods_keep_running_with_their_addresses_while_node_after_node_is_handed_over(story: Story) -> None:
    story.run_controllers(0)
    assert "stop DNC's request controller" in story.migrate("--dry-run")
    with pytest.raises(AssertionError, match="is not reserved"):
        story.migrate("--hand-over", "--node", "node-a")
    wait_until(
        lambda: "reserved (2)" in _attempt(story, "--reserve"), "a reservation, once no controller acts"
    )
    assert "done before (2)" in story.migrate("--reserve"), "the same again changes nothing"
    story.run_controllers(2)
    node_a, node_b = story.bench.nodes
    story.write_state_file(node_a)
    story.hand_over(node_a)
    assert story.config("node-b")["status"] == story.statuses["node-b"], "another node is as it was"
    story.workloads.deploy("meanwhile", 1, node="node-b")
    (meanwhile,) = story.workloads.wait_until_ready("meanwhile", 1)
    assert meanwhile.addresses == [given("node-b")[2]], "the other program goes on there"
    story.hand_over(node_b)
    assert story.old_pods() == story.before
    agreed(story.podtide)


def test_pods_are_in_the_sandboxes_of_the_state_file_and_a_del_by_its_id_frees_an_address(
    story: Story,
) -> None:
    node, _other = story.bench.nodes
    pods = [pod for app in ("old-a", "leaving") for pod in story.workloads.pods(app)]
    sandboxes = {pod.addresses[0]: sandbox_of(node, pod) for pod in pods}
    adopted = {each["ip"]: each["owner"]["sandbox"] for each in journal_of(node) if each["did"] == "adopted"}
    assert adopted == sandboxes
    (leaving,) = story.workloads.pods("leaving")
    story.workloads.remove("deployment/leaving")
    freed = {"did": "freed", "sandbox": sandboxes[leaving.addresses[0]], "interface": "eth0"}
    wait_until(lambda: freed in journal_of(node), "the address free by the id of its sandbox")
    assert story.old_pods() == story.before
    agreed(story.podtide)


def test_new_pods_get_other_addresses_and_reach_those_from_before(story: Story) -> None:
    story.workloads.deploy("new-a", 4, node="node-a")
    new = story.workloads.wait_until_ready("new-a", 4)
    taken = {ip for pod in story.before.values() for ip in pod.addresses}
    assert not taken & {ip for pod in new for ip in pod.addresses}
    story.workloads.remove("deployment/meanwhile")  # its address is free by the DEL, which names the pod
    for name, pod in story.before.items():
        assert story.workloads.fetch(new[0], pod.addresses[0]) == name
    agreed(story.podtide)
    assert story.old_pods() == story.before


def test_nodes_go_back_when_no_pod_has_what_the_other_program_did_not_give(story: Story) -> None:
    story.run_controllers(0)
    for name in GIVEN:
        story.podtide.kubectl("label", "node", name, "podtide.io/agent-")
    agents = "--selector=app.kubernetes.io/component=agent"
    wait_until(lambda: not story.podtide.kubectl("get", "pods", agents, "--output=name"), "no agent")
    with pytest.raises(AssertionError, match=r"pod default/new-a-.* which the other program never gave"):
        story.migrate("--back")
    assert story.old_pods() == story.before
    story.workloads.remove("deployment/new-a")
    wait_until(lambda: "given back (2)" in _attempt(story, "--back"), "the way back, once no controller acts")
    for name, numbers in GIVEN.items():
        config = story.config(name)
        assert config["status"] == story.statuses[name]
        assert config["spec"] == {"requestedIPCount": len(numbers)}
        assert not config["metadata"].get("finalizers")
        assert not config["metadata"].get("annotations")
    for node in story.bench.nodes:
        node.machine.run("rm", "/etc/cni/net.d/10-podtide.conflist")
        node.machine.write(CONFLIST, conflist(node.name))
    wait_until(lambda: all(node.is_ready for node in story.bench.nodes), "every node Ready")
    story.workloads.deploy("later", 1, node="node-a")
    (later,) = story.workloads.wait_until_ready("later", 1)
    assert set(later.addresses) <= set(given("node-a")[2:])
    assert story.old_pods() == story.before


def _attempt(story: Story, step: str) -> str:
    """What a step says; "" while the last controller's term is not over."""
    try:
        return story.migrate(step)
    except AssertionError as error:
        if "acts for this cluster" not in str(error):
            raise
        return ""
