"""Of a NodeNetworkConfig an agent changes the spec of its own: what is written on it is the controller's and people's."""

import json
from typing import Any

import pytest

from deploy.installed import NAMESPACE, Installed
from deploy.two_nodes import HERE, THERE
from podtide.resources.metadata_keys import (
    STATEMENT_ANNOTATION,
    UNREQUESTED_ANNOTATION,
    WAITING_PODS_ANNOTATION,
)

METADATA: dict[str, dict[str, Any]] = {
    "a label is added": {"labels": {"example.org/mine": "yes"}},
    "a label is changed": {"labels": {"example.org/team": "another"}},
    "labels are taken off": {"labels": None},
    "an annotation is added": {"annotations": {"example.org/mine": "yes"}},
    "an annotation is changed": {"annotations": {"example.org/note": "another"}},
    "annotations are taken off": {"annotations": None},
    "an annotation is added beside its own": {
        "annotations": {STATEMENT_ANNOTATION: "{}", "example.org/mine": "yes"}
    },
    "an annotation like its own is added": {"annotations": {f"{STATEMENT_ANNOTATION}-2": "{}"}},
    "a finalizer is added": {"finalizers": ["podtide.io/network-container", "example.org/mine"]},
    "finalizers are taken off": {"finalizers": None},
    "its owner is another": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-c", "uid": "another"}]
    },
    "owners are taken off": {"ownerReferences": None},
}


def refusal(installed: Installed, node: str, change: dict[str, Any]) -> str:
    """What the API server says to the agent of node-a that changes a NodeNetworkConfig so; empty if it takes that."""
    answer = installed.control_plane.kubectl(
        *("patch", "nodenetworkconfig", node, f"--namespace={NAMESPACE}", "--type=merge"),
        f"--patch={json.dumps(change)}",
        kubeconfig=installed.agent(HERE),
    )
    return answer.stderr


def written(installed: Installed, node: str) -> dict[str, Any]:
    """What is on it, without what every write changes."""
    path = f"/apis/acn.azure.com/v1alpha/namespaces/{NAMESPACE}/nodenetworkconfigs/{node}"
    metadata: dict[str, Any] = installed.control_plane.admin.request("GET", path)["metadata"]
    return {key: value for key, value in metadata.items() if key not in {"managedFields", "resourceVersion"}}


@pytest.mark.parametrize("sentence", METADATA)
def test_on_its_own_it_is_refused_that(two_nodes: Installed, sentence: str) -> None:
    before = written(two_nodes, HERE)
    words = refusal(two_nodes, HERE, {"metadata": METADATA[sentence]})
    assert "podtide-agent-nodenetworkconfigs" in words
    assert (
        "of a NodeNetworkConfig's annotations" if "annotation" in sentence else "and not whose it is"
    ) in words
    assert written(two_nodes, HERE) == before


@pytest.mark.parametrize("sentence", METADATA)
def test_on_another_nodes_it_is_refused_that(two_nodes: Installed, sentence: str) -> None:
    before = written(two_nodes, THERE)
    words = refusal(two_nodes, THERE, {"metadata": METADATA[sentence]})
    assert "changed by the agent of its own node, and this agent is on node-a" in words
    assert written(two_nodes, THERE) == before


@pytest.mark.parametrize(
    "annotation", [WAITING_PODS_ANNOTATION, STATEMENT_ANNOTATION, UNREQUESTED_ANNOTATION]
)
def test_its_own_annotations_are_added_changed_and_taken_off(two_nodes: Installed, annotation: str) -> None:
    for value in ("1", "2", None):
        change = {"metadata": {"annotations": {annotation: value}}}
        assert "of its own node" in refusal(two_nodes, THERE, change)
        assert refusal(two_nodes, HERE, change) == ""
        assert written(two_nodes, HERE)["annotations"].get(annotation) == value


def test_the_same_patch_of_its_own_spec_is_taken(two_nodes: Installed) -> None:
    assert refusal(two_nodes, HERE, {"spec": {"requestedIPCount": 24}}) == ""
    assert "of its own node" in refusal(two_nodes, THERE, {"spec": {"requestedIPCount": 24}})


def test_nobody_makes_one_by_an_apply(two_nodes: Installed) -> None:
    wish = {
        "apiVersion": "acn.azure.com/v1alpha",
        "kind": "NodeNetworkConfig",
        "metadata": {"name": "node-c", "namespace": NAMESPACE},
        "spec": {"requestedIPCount": 8},
    }
    answer = two_nodes.control_plane.kubectl(
        "apply", "--server-side", "--filename=-", stdin=json.dumps(wish), kubeconfig=two_nodes.agent(HERE)
    )
    assert "forbidden" in answer.stderr.lower()
