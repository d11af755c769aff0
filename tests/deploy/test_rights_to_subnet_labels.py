"""Which subnet a node has is said by its labels, and not by its kubelet: on a real API server, by a kubelet's own credential."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from control_plane.cluster import ControlPlane
from deploy.installed import Installed
from patience import PATIENCE_SECONDS

NODE = "labelled-node"
LABELS = ("podtide.io/subnet", "podtide.io/subnet-v6")
REFUSED = "a kubelet does not choose the subnet of its node"


def kubelet(control_plane: ControlPlane) -> Path:
    return control_plane.credentials.kubeconfig_for_user(f"system:node:{NODE}", groups=["system:nodes"])


def node(**labels: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}})


def patched(installed: Installed, labels: Mapping[str, str | None], who: Path | None) -> str:
    """What the API server says to such a change of labels; empty if it takes it."""
    answer = installed.control_plane.kubectl(
        *("patch", "node", NODE, "--type=merge", f"--patch={json.dumps({'metadata': {'labels': labels}})}"),
        kubeconfig=who or installed.control_plane.kubeconfig,
    )
    return answer.stderr


def labels_of(installed: Installed) -> dict[str, str]:
    answer: dict[str, Any] = installed.control_plane.admin.request("GET", f"/api/v1/nodes/{NODE}")
    labels: dict[str, str] = answer["metadata"].get("labels", {})
    return {name: value for name, value in labels.items() if name in LABELS}


@pytest.fixture
def labelled(installed: Installed) -> Iterator[Installed]:
    """A node that an administrator has put into the subnet blue, once the policy is in force."""
    control_plane = installed.control_plane
    made = control_plane.kubectl("create", "--filename=-", stdin=node(**{LABELS[0]: "blue"}))
    assert made.returncode == 0, made.stderr
    deadline = time.monotonic() + PATIENCE_SECONDS
    while REFUSED not in patched(installed, {LABELS[0]: "probe"}, kubelet(control_plane)):
        assert time.monotonic() < deadline
        patched(installed, {LABELS[0]: "blue"}, None)
        time.sleep(0.2)
    yield installed
    control_plane.kubectl("delete", "node", NODE)


@pytest.mark.parametrize(
    "change",
    [
        {LABELS[0]: "red"},
        {LABELS[0]: None},
        {LABELS[1]: "red"},
        {LABELS[0]: "red", "example.org/mine": "yes"},
    ],
    ids=["changed", "taken off", "added", "among others"],
)
def test_a_kubelet_cannot_change_which_subnet_its_node_has(
    labelled: Installed, change: dict[str, str | None]
) -> None:
    assert REFUSED in patched(labelled, change, kubelet(labelled.control_plane))
    assert labels_of(labelled) == {LABELS[0]: "blue"}


def test_a_kubelet_cannot_change_it_along_with_its_status(labelled: Installed) -> None:
    path = f"/api/v1/nodes/{NODE}"
    there: dict[str, Any] = labelled.control_plane.admin.request("GET", path)
    there["metadata"]["labels"][LABELS[0]] = "red"
    answer = labelled.control_plane.kubectl(
        *("replace", f"--raw={path}/status", "--filename=-"),
        stdin=json.dumps(there),
        kubeconfig=kubelet(labelled.control_plane),
    )
    assert REFUSED in answer.stderr
    assert labels_of(labelled) == {LABELS[0]: "blue"}


def test_a_kubelet_goes_on_with_labels_of_its_own(labelled: Installed) -> None:
    assert patched(labelled, {"example.org/mine": "yes"}, kubelet(labelled.control_plane)) == ""


def test_an_administrator_can(labelled: Installed) -> None:
    changes: tuple[tuple[dict[str, str | None], dict[str, str]], ...] = (
        ({LABELS[0]: "red"}, {LABELS[0]: "red"}),
        ({LABELS[1]: "six"}, {LABELS[0]: "red", LABELS[1]: "six"}),
        ({LABELS[0]: None, LABELS[1]: None}, {}),
    )
    for change, expected in changes:
        assert patched(labelled, change, None) == ""
        assert labels_of(labelled) == expected


def test_a_kubelet_that_registers_brings_no_subnet_along(labelled: Installed) -> None:
    control_plane = labelled.control_plane
    control_plane.kubectl("delete", "node", NODE)
    who = kubelet(control_plane)
    refused = control_plane.kubectl(
        "create", "--filename=-", stdin=node(**{LABELS[0]: "red"}), kubeconfig=who
    )
    assert REFUSED in refused.stderr
    taken = control_plane.kubectl("create", "--filename=-", stdin=node(), kubeconfig=who)
    assert taken.returncode == 0, taken.stderr
