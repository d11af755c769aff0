"""Placement in the chart: what each value of it renders, where the API server can add requests to pods and where it cannot."""

import json
import re
from itertools import product
from typing import Any

import pytest
from msgspec import structs

from deploy.chart import Chart, Document, one
from podtide.resources.installed_kinds import CHART_KINDS

MUTATING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
NETWORKS = [
    {"attachment": "default/blue", "network": "blue"},
    {"attachment": "other/blue", "network": "blue"},
    {"attachment": "other/red", "network": "red"},
]
RIGHTS = "podtide-controller-placement"


def on(chart: Chart, *, mutating: bool = True) -> Chart:
    """The chart on an API server that can add requests to pods, or on an older one."""
    return structs.replace(chart, api_versions=(MUTATING,) if mutating else ())


def named(objects: list[Document], *kinds: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in objects if each["kind"] in kinds)


def controller_flags(objects: list[Document]) -> set[str]:
    pod = one(objects, "Deployment", "podtide-controller")["spec"]["template"]["spec"]
    return {flag for flag in pod["containers"][0]["args"] if flag.startswith("--placement")}


def rules(objects: list[Document]) -> dict[str, list[str]]:
    """What the controller may do by placement's own role."""
    role = one(objects, "ClusterRole", RIGHTS)
    return {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}


def test_as_it_comes_there_is_nothing_of_it(chart: Chart) -> None:
    objects = on(chart).objects(placement__networks=NETWORKS)
    assert not [each["metadata"]["name"] for each in objects if "placement" in each["metadata"]["name"]]
    assert not named(objects, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    assert not controller_flags(objects)
    assert not [
        rule
        for each in objects
        if each["kind"] in {"Role", "ClusterRole"}
        for rule in each["rules"]
        if {"nodes", "nodes/status"} & set(rule["resources"]) and "patch" in rule["verbs"]
    ]


@pytest.mark.parametrize(
    ("mutating", "taint"), list(product((True, False), ("auto", "always", "never"))), ids=str
)
def test_nodes_are_tainted_if_wanted_or_if_pods_request_nothing_and_only_then_the_controller_may(
    chart: Chart, mutating: bool, taint: str
) -> None:
    objects = on(chart, mutating=mutating).objects(placement__enabled=True, placement__taint=taint)
    taints = taint == "always" or (taint == "auto" and not mutating)
    assert controller_flags(objects) == {"--placement"} | ({"--placement-taint"} if taints else set())
    assert rules(objects) == {"nodes/status": ["patch"]} | ({"nodes": ["patch"]} if taints else {})
    bound = one(objects, "ClusterRoleBinding", RIGHTS)["subjects"]
    assert bound == [{"kind": "ServiceAccount", "name": "podtide-controller", "namespace": "kube-system"}]
    held = one(objects, "ValidatingAdmissionPolicy", RIGHTS)["spec"]["matchConstraints"]["resourceRules"]
    assert held[0]["resources"] == ["nodes", "nodes/status"]
    assert one(objects, "ValidatingAdmissionPolicyBinding", RIGHTS)["spec"]["validationActions"] == ["Deny"]
    assert named(objects, "MutatingAdmissionPolicy") == (["podtide-placement"] if mutating else [])


@pytest.mark.parametrize(
    ("values", "policies"),
    [
        ({}, ["podtide-placement"]),
        ({"placement__networks": NETWORKS}, ["podtide-placement", "podtide-placement-networks"]),
        ({"agent__nodePool": False}, []),
        ({"agent__nodePool": False, "placement__networks": NETWORKS}, ["podtide-placement-networks"]),
    ],
)
def test_a_policy_for_each_network_that_is_podtides_is_made_and_bound(
    chart: Chart, values: dict[str, Any], policies: list[str]
) -> None:
    objects = on(chart).objects(placement__enabled=True, **values)
    assert named(objects, "MutatingAdmissionPolicy") == policies
    assert named(objects, "MutatingAdmissionPolicyBinding") == policies
    for policy in policies:
        bound = one(objects, "MutatingAdmissionPolicyBinding", policy)["spec"]
        assert bound == {"policyName": policy}
        spec = one(objects, "MutatingAdmissionPolicy", policy)["spec"]
        assert (spec["failurePolicy"], spec["reinvocationPolicy"]) == ("Fail", "IfNeeded")
        assert spec["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE"]


@pytest.mark.parametrize(
    ("pods", "selector"),
    [("all", None), ("labelled", {"matchLabels": {"podtide.io/placement": "enabled"}})],
)
def test_pods_of_all_namespaces_are_meant_or_of_those_that_opt_in(
    chart: Chart, pods: str, selector: Document | None
) -> None:
    objects = on(chart).objects(placement__enabled=True, placement__pods=pods, placement__networks=NETWORKS)
    for policy in ("podtide-placement", "podtide-placement-networks"):
        constraints = one(objects, "MutatingAdmissionPolicy", policy)["spec"]["matchConstraints"]
        assert constraints.get("namespaceSelector") == selector


@pytest.mark.parametrize(
    ("values", "resources"),
    [
        ({}, {"podtide.io/ipv4"}),
        ({"subnetV6": "pods-v6"}, {"podtide.io/ipv4", "podtide.io/ipv6"}),
    ],
)
def test_pods_of_a_dual_stack_request_both_addresses(
    chart: Chart, values: dict[str, Any], resources: set[str]
) -> None:
    policy = one(
        on(chart).objects(placement__enabled=True, **values), "MutatingAdmissionPolicy", "podtide-placement"
    )
    assert set(re.findall(r"podtide\.io/[-\w]+", json.dumps(policy["spec"]))) == resources


def test_attachments_of_one_network_are_counted_together(chart: Chart) -> None:
    objects = on(chart).objects(placement__enabled=True, placement__networks=NETWORKS)
    policy = one(objects, "MutatingAdmissionPolicy", "podtide-placement-networks")
    (attached,) = [each["expression"] for each in policy["spec"]["variables"] if each["name"] == "attached"]
    assert re.findall(r"'(podtide\.io/net-\w+)'.+? in (\[.+?\])", attached) == [
        ("podtide.io/net-blue", "['default/blue','other/blue']"),
        ("podtide.io/net-red", "['other/red']"),
    ]


def test_podtides_own_pods_are_known_by_the_name_that_they_bear(chart: Chart) -> None:
    policy = one(
        on(chart).objects(placement__enabled=True, nameOverride="ipam"),
        "MutatingAdmissionPolicy",
        "podtide-placement",
    )
    (condition,) = [
        each["expression"] for each in policy["spec"]["matchConditions"] if each["name"] == "not-podtides-own"
    ]
    assert "'kube-system'" in condition
    assert "'ipam'" in condition


def test_what_is_on_nodes_is_removed_after_an_uninstall_by_rights_that_go_with_the_job(chart: Chart) -> None:
    objects = on(chart).objects(placement__enabled=True)
    hooks = [each for each in objects if "helm.sh/hook" in each["metadata"].get("annotations", {})]
    assert {(each["kind"], each["metadata"]["name"]) for each in hooks} == {
        (kind, "podtide-placement-removal")
        for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job")
    }
    for each in hooks:
        annotations = each["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "post-delete"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        is_job = each["kind"] == "Job"
        assert annotations.get("helm.sh/hook-weight") == (None if is_job else "-1"), "rights are there first"
    pod = one(hooks, "Job", "podtide-placement-removal")["spec"]["template"]["spec"]
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["containers"][0]["args"] == ["placement", "remove"]


def test_podtide_uninstall_knows_every_kind_that_is_made(chart: Chart) -> None:
    objects = on(chart).objects(placement__enabled=True, placement__networks=NETWORKS)
    assert {each["kind"] for each in objects} <= {kind.api.kind for kind in CHART_KINDS}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"placement__pods": "some"}, "placement/pods"),
        ({"placement__taint": True}, "placement/taint"),
        (
            {"placement__networks": [{"attachment": "blue", "network": "blue"}]},
            "placement/networks/0/attachment",
        ),
        ({"placement__networks": [{"attachment": "default/blue"}]}, "placement/networks/0"),
        (
            {"placement__networks": [{"attachment": "default/blue", "network": "n" * 60}]},
            "placement/networks/0/network",
        ),
        (
            {"placement__networks": NETWORKS, "secondaryNetworks__enabled": False},
            "secondaryNetworks.enabled is false",
        ),
    ],
)
def test_what_cannot_be_placed_is_refused(chart: Chart, values: dict[str, Any], words: str) -> None:
    assert words in chart.refusal(**values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"placement__enabled": True}, "are tainted podtide.io/no-addresses:NoSchedule instead"),
        ({"placement__enabled": True, "placement__taint": "never"}, "Nor are nodes tainted"),
    ],
)
def test_who_installs_it_on_an_older_server_is_told_what_is_done_instead(
    chart: Chart, values: dict[str, Any], words: str
) -> None:
    told = chart.notes("--dry-run=client", **values)
    assert "has no MutatingAdmissionPolicy" in told
    assert words in told
    assert "MutatingAdmissionPolicy" not in chart.notes("--dry-run=client")
