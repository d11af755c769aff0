"""Of a Node the controller changes what placement is by, and nothing else: on a real API server, by the controller's own token."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.chart import Chart, Document
from deploy.installed import NAMESPACE, connected, wait_until
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.cluster.port import Forbidden, Patch
from podtide.resources.node import Node

NODE = "placed-node"
PATH = f"/api/v1/nodes/{NODE}"
POLICY = "podtide-controller-placement"
THEIRS = {"key": "example.org/gpu", "value": "yes", "effect": "NoSchedule"}
OURS = {"key": "podtide.io/no-addresses", "effect": "NoSchedule"}
MACHINE = {"cpu": "4", "pods": "110"}
KUBELETS = {
    "capacity": MACHINE,
    "allocatable": MACHINE,
    "images": [{"names": ["web"], "sizeBytes": 3}],
    "nodeInfo": {"kubeletVersion": "v1.36.3"},
    "conditions": [{"type": "Ready", "status": "True"}],
}


def resources(**amounts: str | None) -> Document:
    """A change of capacity and allocatable; `net_blue` is podtide.io/net-blue."""
    named = {f"podtide.io/{name.replace('_', '-')}": amount for name, amount in amounts.items()}
    return {"status": {"capacity": named, "allocatable": named}}


STATUS_MAY: dict[str, list[Document]] = {
    "publish, change and remove addresses": [
        resources(ipv4="30"),
        resources(ipv4="31", ipv6="31"),
        resources(ipv4=None, ipv6=None),
    ],
    "publish, change and remove addresses of a network": [
        resources(net_blue="4"),
        resources(net_blue="0"),
        resources(net_blue=None),
    ],
}
STATUS_MAY_NOT: dict[str, Document] = {
    "change another resource": {"status": {"capacity": {"cpu": "8"}}},
    "change what another has for pods": {"status": {"allocatable": {"pods": "250"}}},
    "add another": {"status": {"capacity": {"example.org/gpu": "1"}}},
    "add one that is named nearly like its own": {
        "status": {"capacity": {"podtide.io.example.org/ipv4": "1"}}
    },
    "remove another": {"status": {"allocatable": {"cpu": None}}},
    "remove all": {"status": {"capacity": None}},
    "change another beside its own": {"status": {"capacity": {"podtide.io/ipv4": "30", "cpu": "8"}}},
    "say that the node is not ready": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "remove what the kubelet says": {"status": {"images": None}},
    "add what the kubelet did not say": {"status": {"phase": "Running"}},
}
METADATA_MAY_NOT: dict[str, Document] = {
    "add a label": {"metadata": {"labels": {"podtide.io/subnet": "another"}}},
    "change a label": {"metadata": {"labels": {"zone": "b"}}},
    "remove a label": {"metadata": {"labels": None}},
    "add an annotation": {"metadata": {"annotations": {"example.org/mine": "yes"}}},
    "add a finalizer": {"metadata": {"finalizers": ["example.org/mine"]}},
}
SPEC_MAY_NOT: dict[str, Document] = {
    "add another taint": {"key": "example.org/mine", "effect": "NoSchedule"},
    "add its own with an effect that evicts": OURS | {"effect": "NoExecute"},
    "add one that is named nearly like its own": OURS | {"key": "podtide.io/no-addresses-2"},
}


@pytest.fixture(scope="module")
def rights(chart: Chart, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """What the chart gives the controller for placement with taints, in force, and a Node as its kubelet keeps it."""
    objects = chart.objects(placement__enabled=True, placement__taint="always")
    wanted = [each for each in objects if each["metadata"]["name"] in {POLICY, "podtide-controller"}]
    of_kinds = [each for each in wanted if each["kind"] not in {"Deployment", "PodDisruptionBudget", "Lease"}]
    with ControlPlane(control_plane_binaries) as control_plane:
        answer = control_plane.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(of_kinds))
        assert answer.returncode == 0, answer.stderr
        control_plane.admin.request(
            "POST", "/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"zone": "a"}}, "status": KUBELETS}
        )
        by_admin(control_plane, {"spec": {"taints": [THEIRS]}})
        # kubectl reads what it is about to patch.
        reader = ("create", "clusterrole", "status-reader", "--verb=get", "--resource=nodes/status")
        bound = ("--clusterrole=status-reader", f"--serviceaccount={NAMESPACE}:podtide-controller")
        for command in (reader, ("create", "clusterrolebinding", "status-reader", *bound)):
            assert control_plane.kubectl(*command).returncode == 0
        probe = ("label", "node", NODE, "probe=yes", "--dry-run=server")
        controller = token(control_plane)
        wait_until(lambda: POLICY in control_plane.kubectl(*probe, kubeconfig=controller).stderr)
        yield control_plane


def token(control_plane: ControlPlane) -> Path:
    return control_plane.credentials.kubeconfig_for_service_account(NAMESPACE, "podtide-controller")


def by_admin(control_plane: ControlPlane, change: Document) -> None:
    answer = control_plane.kubectl("patch", "node", NODE, "--type=merge", f"--patch={json.dumps(change)}")
    assert answer.returncode == 0, answer.stderr


def written(control_plane: ControlPlane) -> Document:
    """The Node, without what every write changes."""
    node: Document = control_plane.admin.request("GET", PATH)
    for field in ("resourceVersion", "managedFields", "generation"):
        node["metadata"].pop(field, None)
    return node


@asynccontextmanager
async def controller(control_plane: ControlPlane) -> AsyncIterator[KubernetesCluster]:
    async with connected(token(control_plane)) as cluster:
        yield cluster


async def patch(control_plane: ControlPlane, change: Document, *, status: bool = False) -> None:
    async with controller(control_plane) as cluster:
        await cluster.patch(Patch(Node, NODE, changes=change, status=status), manager="podtide-controller")


@pytest.mark.parametrize("sentence", STATUS_MAY)
async def test_the_controller_may(rights: ControlPlane, sentence: str) -> None:
    before = written(rights)
    for change in STATUS_MAY[sentence]:
        await patch(rights, change, status=True)
        found: dict[str, Any] = written(rights)["status"]
        for field in ("capacity", "allocatable"):
            stated = {name: amount for name, amount in change["status"][field].items() if amount is not None}
            assert found[field] == MACHINE | stated
    assert written(rights) == before


async def test_the_controller_may_taint_a_node_and_untaint_it(rights: ControlPlane) -> None:
    before = written(rights)
    for taints in ([THEIRS, OURS], [THEIRS], [OURS, THEIRS], [THEIRS]):
        await patch(rights, {"spec": {"taints": taints}})
        assert written(rights)["spec"]["taints"] == taints
    assert written(rights) == before


@pytest.mark.parametrize("sentence", STATUS_MAY_NOT)
async def test_by_a_nodes_status_the_controller_may_not(rights: ControlPlane, sentence: str) -> None:
    before = written(rights)
    with pytest.raises(Forbidden, match=POLICY):
        await patch(rights, STATUS_MAY_NOT[sentence], status=True)
    assert written(rights) == before


@pytest.mark.parametrize("sentence", METADATA_MAY_NOT)
async def test_by_its_right_to_taint_the_controller_may_not(rights: ControlPlane, sentence: str) -> None:
    before = written(rights)
    with pytest.raises(Forbidden, match=POLICY):
        await patch(rights, METADATA_MAY_NOT[sentence])
    assert written(rights) == before


@pytest.mark.parametrize("sentence", METADATA_MAY_NOT)
def test_along_with_a_nodes_status_the_controller_may_not(rights: ControlPlane, sentence: str) -> None:
    """An API server lets labels be changed by a write of a Node's status. podtide's client refuses that itself."""
    before = written(rights)
    change = json.dumps(METADATA_MAY_NOT[sentence])
    answer = rights.kubectl(
        *("patch", "node", NODE, "--subresource=status", "--type=merge", f"--patch={change}"),
        kubeconfig=token(rights),
    )
    assert POLICY in answer.stderr
    assert written(rights) == before


@pytest.mark.parametrize("sentence", SPEC_MAY_NOT)
async def test_of_taints_the_controller_may_not(rights: ControlPlane, sentence: str) -> None:
    before = written(rights)
    with pytest.raises(Forbidden, match=r"adds and removes podtide\.io/no-addresses:NoSchedule"):
        await patch(rights, {"spec": {"taints": [THEIRS, SPEC_MAY_NOT[sentence]]}})
    assert written(rights) == before


@pytest.mark.parametrize("taints", [None, [], [OURS], [THEIRS | {"value": "no"}]], ids=str)
async def test_the_taints_of_others_stay(rights: ControlPlane, taints: list[Document] | None) -> None:
    before = written(rights)
    with pytest.raises(Forbidden, match=r"adds and removes podtide\.io/no-addresses:NoSchedule"):
        await patch(rights, {"spec": {"taints": taints}})
    assert written(rights) == before


async def test_the_controller_may_not_cordon_a_node(rights: ControlPlane) -> None:
    with pytest.raises(Forbidden, match="and nothing else"):
        await patch(rights, {"spec": {"unschedulable": True}})
