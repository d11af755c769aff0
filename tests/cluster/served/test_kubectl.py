"""The real kubectl against `podtide cluster`: the commands people use, and what they see."""

import json
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.served.http_client import config, pod
from control_plane.binaries import Binaries
from patience import PATIENCE_SECONDS
from podtide.resources.crds import crds
from podtide.resources.kinds import PODTIDE_KINDS

NETWORK_CONTAINER = {
    "id": "nc-1",
    "subnetName": "podnet",
    "subnetAddressSpace": "10.0.0.0/24",
    "assignmentMode": "dynamic",
    "type": "vnet",
    "version": 3,
}
SUBNET: dict[str, Any] = {
    "apiVersion": "acn.azure.com/v1alpha1",
    "kind": "ClusterSubnet",
    "metadata": {"name": "podnet"},
    "spec": {"scaler": {"batch": 8}},
}
SUBNET_STATUS = {
    "cidr": "10.0.0.0/24",
    "ranges": "10.0.0.0/24",
    "capacity": 251,
    "reserved": 33,
    "exhausted": False,
    "runsOut": "2027-01-05",
    "scaler": {"batch": 8, "buffer": 0.5},
}
SLICES: dict[str, Any] = {
    "apiVersion": "whereabouts.cni.cncf.io/v1alpha1",
    "kind": "NodeSlicePool",
    "metadata": {"name": "storage"},
    "spec": {"range": "10.1.0.0/16", "sliceSize": "/24"},
    "status": {"allocations": [], "assigned": 2, "total": 256},
}


class Kubectl:
    """Runs kubectl in a namespace of the served cluster."""

    def __init__(self, binary: Path, kubeconfig: Path, home: Path) -> None:
        self._command = [str(binary), f"--kubeconfig={kubeconfig}"]
        self._environment = {"HOME": str(home)}

    def run(self, *arguments: str, stdin: object = "") -> subprocess.CompletedProcess[str]:
        """Whatever comes of it; what is not text is handed in as JSON."""
        return subprocess.run(
            [*self._command, *arguments],
            input=stdin if isinstance(stdin, str) else json.dumps(stdin),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
            env=self._environment,
        )

    def __call__(self, *arguments: str, stdin: object = "") -> str:
        """What it prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Begin, and let it run."""
        return subprocess.Popen(
            [*self._command, *arguments], stdout=subprocess.PIPE, text=True, env=self._environment
        )

    def table(self, *arguments: str) -> list[list[str]]:
        """The cells it prints, row by row; none of them may be empty."""
        return [re.split(r" {2,}", line.strip()) for line in self(*arguments).splitlines()]


@pytest.fixture(scope="module")
def kubectl(control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    kubeconfig = home / "config"
    command = [sys.executable, "-m", "podtide", "cluster", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if "try: kubectl" in line:
                break
        yield Kubectl(control_plane_binaries.kubectl, kubeconfig, home)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_SECONDS) == 0


@pytest.fixture
def namespace(kubectl: Kubectl) -> str:
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    return name


def test_the_kinds_can_be_listed(kubectl: Kubectl) -> None:
    names = kubectl("api-resources", "-o", "name").split()
    assert {f"{kind.api.plural}.{kind.api.group}" for kind in PODTIDE_KINDS} < set(names)
    assert {"pods", "nodes", "namespaces", "events"} < set(names)
    assert "+podtide" in kubectl("version")


def test_columns_are_those_of_a_real_cluster(kubectl: Kubectl, namespace: str) -> None:
    for document in (config(), SUBNET, SLICES):
        kubectl("create", "-n", namespace, "-f", "-", stdin=document)
    granted = {
        "type": "Granted",
        "status": "True",
        "reason": "Complete",
        "message": "all of it",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    held = {"assignedIPCount": 16, "networkContainers": [NETWORK_CONTAINER], "conditions": [granted]}
    nnc_status = {"status": held}
    for what, status in (("nnc/node-a", nnc_status), ("clustersubnet/podnet", {"status": SUBNET_STATUS})):
        patch = ("--type=merge", "--subresource=status", "-p", json.dumps(status))
        kubectl("patch", "-n", namespace, what, *patch)
    assert kubectl.table("get", "nnc", "-n", namespace) == [
        ["NAME", "ALLOCATED IPS", "NC MODE", "NC VERSION", "REQUESTED", "REASON"],
        ["node-a", "16", "dynamic", "3", "16", "Complete"],
    ]
    (header, row) = kubectl.table("get", "nnc", "-n", namespace, "-o", "wide")
    assert header[:6] == ["NAME", "REQUESTED IPS", "ALLOCATED IPS", "SUBNET", "SUBNET CIDR", "NC ID"]
    assert header[6:] == ["NC MODE", "NC TYPE", "NC VERSION", "REQUESTED", "REASON"]
    assert row[:6] == ["node-a", "16", "16", "podnet", "10.0.0.0/24", "nc-1"]
    assert row[6:] == ["dynamic", "vnet", "3", "16", "Complete"]
    (header, row) = kubectl.table("get", "csn", "-n", namespace)
    assert header == [
        "NAME",
        "CIDRS",
        "CAPACITY",
        "RESERVED",
        "BATCH",
        "BUFFER",
        "EXHAUSTED",
        "RUNS-OUT",
        "AGE",
    ]
    assert row[:-1] == ["podnet", "10.0.0.0/24", "251", "33", "8", "0.5", "false", "2027-01-05"]
    (header, row) = kubectl.table("get", "nsp", "-n", namespace)
    assert header == ["NAME", "RANGE", "SLICE SIZE", "ASSIGNED", "TOTAL", "AGE"]
    assert row[:-1] == ["storage", "10.1.0.0/16", "/24", "2", "256"]
    everywhere = kubectl("get", "nnc,clustersubnets,nodeslicepools", "-A")
    assert [line.split()[:2] for line in everywhere.splitlines() if line.startswith(namespace)] == [
        [namespace, "nodenetworkconfig.acn.azure.com/node-a"],
        [namespace, "clustersubnet.acn.azure.com/podnet"],
        [namespace, "nodeslicepool.whereabouts.cni.cncf.io/storage"],
    ]


def test_a_pods_full_document_survives(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-n", namespace, "-f", "-", stdin=pod())
    for read, form in ((json.loads, "json"), (yaml.safe_load, "yaml")):
        document = read(kubectl("get", "pod", "web", "-n", namespace, "-o", form))
        assert document["spec"] == pod()["spec"]
        assert document["metadata"]["labels"] == {"app": "web"}


def test_objects_are_selected_by_label_and_field(kubectl: Kubectl, namespace: str) -> None:
    other = pod("other")
    other["spec"]["nodeName"] = "node-b"
    for document in (pod(), other):
        kubectl("create", "-n", namespace, "-f", "-", stdin=document)
    for selector in (("-l", "app=other"), ("--field-selector", "spec.nodeName=node-b")):
        assert kubectl("get", "pods", "-n", namespace, "-o", "name", *selector) == "pod/other\n"


def test_a_watch_shows_changes_as_they_come(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-n", namespace, "-f", "-", stdin=config("a"))
    with kubectl.start("get", "nnc", "-n", namespace, "-w", "--no-headers") as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[0] == "a"  # from now on it watches
        kubectl("create", "-n", namespace, "-f", "-", stdin=config("b"))
        assert watch.stdout.readline().split()[0] == "b"
        kubectl("delete", "nnc", "b", "-n", namespace)
        assert watch.stdout.readline().split()[0] == "b"
        watch.terminate()


@pytest.mark.parametrize("way", [(), ("--server-side",)], ids=["client-side", "server-side"])
@pytest.mark.parametrize("document", [config(), pod()], ids=["custom", "built-in"])
def test_apply_creates_changes_and_leaves_alone(
    kubectl: Kubectl, namespace: str, way: tuple[str, ...], document: dict[str, Any]
) -> None:
    words = ("created", "unchanged", "configured") if not way else ("serverside-applied",) * 3
    changed = json.loads(json.dumps(document))
    changed["metadata"]["labels"] = {"new": "yes"}
    for wanted, word in zip((document, document, changed), words, strict=True):
        assert kubectl("apply", "-n", namespace, *way, "-f", "-", stdin=wanted).split()[-1] == word
    what = f"{document['kind']}/{document['metadata']['name']}"
    left = json.loads(kubectl("get", what, "-n", namespace, "-o", "json"))
    assert left["metadata"]["labels"] == {"new": "yes"}
    assert left["spec"] == document["spec"]


def test_what_was_applied_from_the_clients_side_can_be_taken_over_by_the_server(
    kubectl: Kubectl, namespace: str
) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", stdin=config())
    kubectl("apply", "-n", namespace, "--server-side", "-f", "-", stdin=config())
    changed = config(spec={"requestedIPCount": 32})
    kubectl("apply", "-n", namespace, "--server-side", "-f", "-", stdin=changed)
    path = ("-o", "jsonpath={.spec.requestedIPCount}")
    assert kubectl("get", "nnc/node-a", "-n", namespace, *path) == "32"
    stolen = kubectl.run(
        "apply", "-n", namespace, "--server-side", "--field-manager=other", "-f", "-", stdin=config()
    )
    assert stolen.returncode != 0
    assert "spec.requestedIPCount of 'kubectl' (Apply)" in stolen.stderr


def test_delete_waits_until_the_object_is_gone(kubectl: Kubectl, namespace: str) -> None:
    held = config(metadata={"name": "held", "finalizers": ["podtide.example/held"]})
    kubectl("create", "-n", namespace, "-f", "-", stdin=held)
    with kubectl.start("delete", "nnc/held", "-n", namespace) as deleting:
        assert deleting.stdout is not None
        assert "deleted" in deleting.stdout.readline()
        kubectl(
            "patch",
            "nnc/held",
            "-n",
            namespace,
            "--type=json",
            "-p",
            '[{"op":"remove","path":"/metadata/finalizers"}]',
        )
        assert deleting.wait(PATIENCE_SECONDS) == 0
    assert "NotFound" in kubectl.run("get", "nnc/held", "-n", namespace).stderr
    kubectl("create", "-n", namespace, "-f", "-", stdin=pod())
    kubectl("delete", "pod/web", "-n", namespace, "--force", "--grace-period=0")


def test_a_namespace_is_made_and_deleted_with_what_is_in_it(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-n", namespace, "-f", "-", stdin=config())
    assert kubectl.table("get", "namespace", namespace)[1][:2] == [namespace, "Active"]
    kubectl("delete", "namespace", namespace)
    assert kubectl("get", "nnc", "-n", namespace, "-o", "name") == ""


def test_podtides_definitions_are_accepted_and_established(kubectl: Kubectl) -> None:
    definitions = yaml.safe_dump_all(crds(with_network_attachments=True))
    assert kubectl("apply", "-f", "-", stdin=definitions).count("created") == 7
    assert kubectl("apply", "-f", "-", stdin=definitions).count("unchanged") == 7
    waited = ("--for=condition=established", "crd/ippools.whereabouts.cni.cncf.io", "--timeout=10s")
    assert "condition met" in kubectl("wait", *waited)


def test_explain_shows_what_fields_mean(kubectl: Kubectl) -> None:
    assert "How many secondary addresses the node wants" in kubectl("explain", "nnc.spec.requestedIPCount")


def test_refusals_say_what_is_wrong(kubectl: Kubectl, namespace: str) -> None:
    def refused(document: object) -> str:
        done = kubectl.run("create", "-n", namespace, "-f", "-", stdin=document)
        assert done.returncode != 0
        return done.stderr

    assert 'unknown field "spec.requestdIPCount"' in refused(config(spec={"requestdIPCount": 1}))
    wrong = SUBNET | {"spec": {"scaler": {"batch": 0}}}
    assert "spec.scaler.batch" in refused(wrong)
    kubectl("create", "-n", namespace, "-f", "-", stdin=config())
    assert "AlreadyExists" in refused(config())
