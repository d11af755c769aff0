"""Which pods request addresses by themselves, and how many: on a real API server, by the policies that the chart makes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.chart import Chart, Document
from deploy.installed import wait_until
from deploy.placing import NETWORKS, OPTED_IN, Placing, placing
from real_kubernetes import NEEDS_MUTATING_POLICY

pytestmark = NEEDS_MUTATING_POLICY

CONTROLLERS = ("deployment-controller", "replicaset-controller", "resourcequota-controller")
V4, V6, BLUE, RED = "podtide.io/ipv4", "podtide.io/ipv6", "podtide.io/net-blue", "podtide.io/net-red"
ONE_EACH = {V4: "1", V6: "1"}
ATTACHED = "k8s.v1.cni.cncf.io/networks"


def container(name: str = "main", **requested: str) -> Document:
    """A container that requests so much of each resource, by its short name."""
    amounts = {{"v4": V4, "v6": V6, "blue": BLUE}[short]: amount for short, amount in requested.items()}
    return {"name": name, "image": "none", "resources": {"limits": amounts} if amounts else {}}


def pod(*containers: Document, **more: Any) -> Document:
    return {"containers": [*(containers or (container(),))], **more}


@pytest.fixture(scope="module")
def plane(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane of its own, so that pods of other tests stay as they are."""
    with ControlPlane(control_plane_binaries, controllers=CONTROLLERS) as control_plane:
        control_plane.start_controllers()
        for name, labels in ((OPTED_IN, {"podtide.io/placement": "enabled"}), ("other", {}), ("quota", {})):
            body = {"metadata": {"name": name, "labels": labels}}
            control_plane.admin.request("POST", "/api/v1/namespaces", body)
        yield control_plane


@pytest.fixture(scope="module")
def dual_stack(chart: Chart, plane: ControlPlane) -> Iterator[Placing]:
    with placing(chart, plane, subnetV6="pods-v6", placement__networks=NETWORKS) as it:
        yield it


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (pod(), {"main": ONE_EACH}),
        (pod(container("a"), container("b")), {"a": ONE_EACH, "b": {}}),
        (pod(container("a"), container("b", v4="1")), {"a": {V6: "1"}, "b": {V4: "1"}}),
        (pod(container("a", v4="3", v6="1")), {"a": {V4: "3", V6: "1"}}),
        (
            pod(initContainers=[container("init", v4="1", v6="1")]),
            {"init": ONE_EACH, "main": {}},
        ),
        (
            pod(initContainers=[{**container("sidecar", v4="1"), "restartPolicy": "Always"}]),
            {"sidecar": {V4: "1"}, "main": {V6: "1"}},
        ),
        (pod(container("a", v4="0"), container("b", v4="0")), {"a": ONE_EACH, "b": {V4: "0"}}),
        (pod(hostNetwork=True), {"main": {}}),
        (pod(hostNetwork=False), {"main": ONE_EACH}),
    ],
    ids=[
        "it says nothing",
        "the first container requests for all",
        "another container does already",
        "by hand more than it uses",
        "an init container does",
        "a sidecar does",
        "a request of zero is none",
        "on its node's network it uses none",
        "said outright that it is not",
    ],
)
def test_a_pod_requests_an_address_of_each_family_unless_it_does_already_or_uses_none(
    dual_stack: Placing, spec: Document, expected: Document
) -> None:
    assert dual_stack.requested(spec) == expected


def test_other_resources_of_the_container_and_its_class_of_service_stay(dual_stack: Placing) -> None:
    sized = container()
    sized["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    made = dual_stack.made(pod(sized))
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", **ONE_EACH}
    assert made["status"]["qosClass"] == "Guaranteed"
    assert dual_stack.made(pod())["status"]["qosClass"] == "BestEffort"


def test_a_static_pods_copy_stays_as_its_kubelet_has_it(dual_stack: Placing) -> None:
    copy = {"kubernetes.io/config.mirror": "8d5f2c"}
    assert dual_stack.requested(pod(nodeName="node-a"), annotations=copy) == {"main": {}}


@pytest.mark.parametrize(
    ("namespace", "name", "is_own"),
    [("kube-system", "podtide", True), ("kube-system", "coredns", False), ("default", "podtide", False)],
)
def test_podtides_own_pods_do_not_wait_for_what_podtide_has_yet_to_publish(
    dual_stack: Placing, namespace: str, name: str, is_own: bool
) -> None:
    labels = {"app.kubernetes.io/name": name}
    expected = {} if is_own else ONE_EACH
    assert dual_stack.requested(pod(), namespace=namespace, labels=labels) == {"main": expected}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        (pod(container("a"), container("a")), 'spec.containers[1].name: Duplicate value: "a"'),
        (pod(container("a", v4="500m")), 'Invalid value: "500m": must be an integer'),
    ],
)
def test_a_pod_that_cannot_be_is_refused_in_the_api_servers_own_words(
    dual_stack: Placing, spec: Document, words: str
) -> None:
    assert words in dual_stack.refusal(spec)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("blue", {BLUE: "1"}),
        ("other/blue@net1", {BLUE: "1"}),
        ("blue, blue@net2 ,other/blue,other/red", {BLUE: "3", RED: "1"}),
        (" other / red @ net1 ", {RED: "1"}),
        ("elsewhere/blue,green", {}),
        ("red", {}),
        ("", {}),
        ([{"name": "blue"}], {BLUE: "1"}),
        ([{"name": "blue", "namespace": ""}, {"Name": "red", "Namespace": "other"}], {BLUE: "1", RED: "1"}),
        ([{"namespace": "other", "ips": ["10.0.0.5/24"], "name": "red"}], {RED: "1"}),
        ([{"name": "blue", "namespace": "elsewhere"}], {}),
        ([{"name": "green", "cni-args": {"name": "blue", "deep": [{"name": "blue"}]}}], {}),
        (
            [{"cni-args": {"rules": [{"match": {"names": ["}", "]", '"']}}]}, "mac": None, "name": "blue"}],
            {BLUE: "1"},
        ),
        ([{"name": "green", "interface": 'x", "name": "blue'}], {}),
        ([], {}),
        ("[{", {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_pod_requests_as_much_of_a_network_as_its_annotation_attaches(
    dual_stack: Placing, annotation: str | list[Document], expected: Document, indent: int | None
) -> None:
    text = annotation if isinstance(annotation, str) else json.dumps(annotation, indent=indent)
    requested = dual_stack.requested(pod(), annotations={ATTACHED: text})
    assert requested == {"main": ONE_EACH | expected}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (pod(container("a", blue="3")), {"a": "3"}),
        (pod(container("a", blue="5"), container("b")), {"a": "5"}),
        (pod(container("a"), container("b", blue="1")), {"a": "2", "b": "1"}),
        (pod(container("a", blue="1"), container("b", blue="1")), {"a": "2", "b": "1"}),
        (pod(container("a", blue="1"), initContainers=[container("i", blue="3")]), {"i": "3", "a": "1"}),
        (pod(container("a", blue="1"), initContainers=[container("i", blue="1")]), {"i": "1", "a": "3"}),
    ],
)
def test_what_containers_request_of_a_network_is_filled_up(
    dual_stack: Placing, spec: Document, expected: Document
) -> None:
    requested = dual_stack.requested(spec, annotations={ATTACHED: "blue,blue,blue"})
    assert {name: asked[BLUE] for name, asked in requested.items() if BLUE in asked} == expected


def test_an_attachment_without_namespace_is_of_the_pods_own(dual_stack: Placing) -> None:
    where = {"namespace": "other", "annotations": {ATTACHED: "red"}}
    assert dual_stack.requested(pod(), **where) == {"main": ONE_EACH | {RED: "1"}}


def test_what_another_policy_attaches_after_ours_is_requested_too(dual_stack: Placing) -> None:
    """As webhooks do that inject a network."""
    plane = dual_stack.control_plane
    injector = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
            ]
        },
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": f"Object{{metadata: Object.metadata{{annotations: {{'{ATTACHED}': 'blue'}}}}}}"
                },
            }
        ],
    }
    policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    plane.admin.request("POST", policies, {"metadata": {"name": "z-injector"}, "spec": injector})
    binding = {"metadata": {"name": "z-injector"}, "spec": {"policyName": "z-injector"}}
    plane.admin.request("POST", policies.replace("policies", "policybindings"), binding)
    wait_until(lambda: ATTACHED in dual_stack.made(pod())["metadata"].get("annotations", {}))
    requested = dual_stack.requested(pod())
    for path in (policies.replace("policies", "policybindings"), policies):
        plane.admin.request("DELETE", f"{path}/z-injector")
    wait_until(lambda: ATTACHED not in dual_stack.made(pod())["metadata"].get("annotations", {}))
    assert requested == {"main": ONE_EACH | {BLUE: "1"}}


def test_pods_of_a_deployment_request_and_its_template_stays(dual_stack: Placing) -> None:
    admin, labels = dual_stack.control_plane.admin, {"app": "web"}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    spec = {"replicas": 3, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": pod()}
    made = admin.request(
        "POST", deployments, {"metadata": {"name": "web"}, "spec": {**spec, "template": template}}
    )

    def pods() -> list[Document]:
        there: list[Document] = admin.request(
            "GET", "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb"
        )["items"]
        return there

    wait_until(lambda: len(pods()) == 3)
    assert [each["spec"]["containers"][0]["resources"]["requests"] for each in pods()] == [ONE_EACH] * 3
    found = admin.request("GET", f"{deployments}/web")
    assert found["spec"] == made["spec"]
    admin.request("DELETE", f"{deployments}/web")


def test_a_quota_refuses_the_pod_over_it_whatever_the_pod_says_itself(dual_stack: Placing) -> None:
    admin = dual_stack.control_plane.admin
    pods, quotas = "/api/v1/namespaces/quota/pods", "/api/v1/namespaces/quota/resourcequotas"
    hard = {f"requests.{V4}": "2"}
    admin.request("POST", quotas, {"metadata": {"name": "addresses"}, "spec": {"hard": hard}})

    def used() -> str:
        status = admin.request("GET", f"{quotas}/addresses").get("status", {})
        amount: str = status.get("used", {}).get(f"requests.{V4}", "")
        return amount

    def attempt(name: str, spec: Document) -> str:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "quota"},
            "spec": spec,
        }
        answer = dual_stack.control_plane.kubectl("create", "--filename=-", stdin=json.dumps(body))
        return answer.stderr

    wait_until(lambda: used() == "0")
    assert [attempt("a", pod()), attempt("b", pod())] == ["", ""]
    for spec in (pod(), pod(container(v4="0"))):
        assert f"exceeded quota: addresses, requested: requests.{V4}=1, used: requests.{V4}=2" in attempt(
            "c", spec
        )
    assert attempt("host", pod(hostNetwork=True)) == "", "it uses none"
    assert used() == "2"
    admin.request("DELETE", f"{pods}/a?gracePeriodSeconds=0")
    wait_until(lambda: used() == "1")
    assert attempt("c", pod()) == ""


def test_with_opting_in_only_pods_of_labelled_namespaces_request(
    chart: Chart, control_plane_binaries: Binaries
) -> None:
    with ControlPlane(control_plane_binaries) as plane:
        for name, labels in (
            (OPTED_IN, {"podtide.io/placement": "enabled"}),
            ("out", {"podtide.io/placement": "no"}),
        ):
            plane.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        with placing(chart, plane, placement__pods="labelled", placement__networks=NETWORKS) as it:
            attached = {"annotations": {ATTACHED: "default/blue"}}
            assert it.requested(pod(), namespace=OPTED_IN, **attached) == {"main": {V4: "1", BLUE: "1"}}
            for namespace in ("out", "default", "kube-system"):
                assert it.requested(pod(), namespace=namespace, **attached) == {"main": {}}


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ("all", "New pods request an address"),
        ("labelled", "New pods in namespaces with the label podtide.io/placement=enabled request an address"),
    ],
)
def test_who_installs_it_is_told_which_pods_request(
    chart: Chart, untouched: ControlPlane, pods: str, words: str
) -> None:
    server = ("--dry-run=server", f"--kubeconfig={untouched.kubeconfig}")
    assert words in chart.notes(*server, placement__enabled=True, placement__pods=pods)
