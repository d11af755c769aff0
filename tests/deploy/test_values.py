"""What each value that is there by convention does to the objects that a real API server would have."""

import json
from typing import Any

import pytest
from msgspec import structs

from control_plane.cluster import ControlPlane
from deploy.applied import applied
from deploy.chart import Chart, Document, one

KINDS = {"agent": "DaemonSet", "controller": "Deployment", "allocator": "StatefulSet"}
ON_POSTGRESQL = {"allocator__database__urlSecret": "database"}

NEAR_ITS_LIKE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "podtide"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}
IN_A_POD: dict[str, object] = {
    "nodeSelector": {"kubernetes.io/os": "linux", "example.org/pool": "system"},
    "affinity": NEAR_ITS_LIKE,
    "tolerations": [{"key": "example.org/taint", "operator": "Exists", "effect": "NoExecute"}],
    "priorityClassName": "example-priority",
}
"""Values that go into a pod's specification as they are."""
IN_A_CONTAINER: dict[str, object] = {
    "resources": {
        "requests": {"cpu": "30m", "memory": "48Mi", "ephemeral-storage": "1Gi"},
        "limits": {"memory": "2Gi"},
    }
}


def workload(objects: list[Document], program: str, kind: str = "") -> Document:
    return one(objects, kind or KINDS[program], f"podtide-{program}")


@pytest.mark.parametrize("program", KINDS)
def test_where_and_with_what_a_program_runs_is_as_the_values_say(
    chart: Chart, untouched: ControlPlane, program: str
) -> None:
    values = {f"{program}__{name}": value for name, value in {**IN_A_POD, **IN_A_CONTAINER}.items()}
    objects = applied(chart, untouched, **values)
    for each in KINDS:
        pod = workload(objects, each)["spec"]["template"]["spec"]
        [container] = pod["containers"]
        is_meant = each == program
        assert [(pod.get(name) == value) for name, value in IN_A_POD.items()] == [is_meant] * len(IN_A_POD)
        assert (container["resources"] == IN_A_CONTAINER["resources"]) is is_meant


def test_what_removes_the_network_runs_where_agents_ran(chart: Chart, untouched: ControlPlane) -> None:
    values = {f"agent__{name}": value for name, value in IN_A_POD.items()}
    objects = applied(chart, untouched, cni__remove=True, **values)
    pod = one(objects, "DaemonSet", "podtide-remover")["spec"]["template"]["spec"]
    assert {name: pod[name] for name in IN_A_POD} == IN_A_POD


@pytest.mark.parametrize(
    ("program", "field", "strategy"),
    [
        ("agent", "updateStrategy", {"type": "OnDelete", "rollingUpdate": None}),
        ("agent", "updateStrategy", {"rollingUpdate": {"maxUnavailable": 3, "maxSurge": 0}}),
        ("controller", "strategy", {"type": "Recreate", "rollingUpdate": None}),
        ("controller", "strategy", {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        ("allocator", "strategy", {"type": "Recreate", "rollingUpdate": None}),
    ],
    ids=json.dumps,
)
def test_updates_go_as_the_values_say(
    chart: Chart, untouched: ControlPlane, program: str, field: str, strategy: dict[str, Any]
) -> None:
    objects = applied(chart, untouched, **ON_POSTGRESQL, **{f"{program}__updateStrategy": strategy})
    found = workload(objects, program, "DaemonSet" if program == "agent" else "Deployment")["spec"][field]
    expected = {"type": "RollingUpdate"} | {name: value for name, value in strategy.items() if value}
    assert found == expected


@pytest.mark.parametrize("program", ["controller", "allocator"])
@pytest.mark.parametrize("most", [2, "34%"])
def test_a_budget_lets_so_many_be_disrupted_of_the_pods_that_are_meant(
    chart: Chart, untouched: ControlPlane, program: str, most: int | str
) -> None:
    values = {f"{program}__podDisruptionBudget__maxUnavailable": most}
    objects = applied(chart, untouched, **ON_POSTGRESQL, **values)
    spec = one(objects, "PodDisruptionBudget", f"podtide-{program}")["spec"]
    assert spec["maxUnavailable"] == most
    assert spec["selector"] == workload(objects, program, "Deployment")["spec"]["selector"]


@pytest.mark.parametrize("program", ["controller", "allocator"])
def test_a_budget_that_is_not_wanted_is_not_made(chart: Chart, untouched: ControlPlane, program: str) -> None:
    values = {f"{program}__podDisruptionBudget__enabled": False}
    objects = applied(chart, untouched, **ON_POSTGRESQL, **values)
    budgets = {each["metadata"]["name"] for each in objects if each["kind"] == "PodDisruptionBudget"}
    assert budgets == {"podtide-controller", "podtide-allocator"} - {f"podtide-{program}"}


def test_monitors_scrape_as_often_as_the_values_say_and_are_found_by_their_labels(
    chart: Chart, untouched: ControlPlane
) -> None:
    objects = applied(
        chart,
        untouched,
        serviceMonitor={"enabled": True, "interval": "1m30s", "labels": {"release": "prometheus"}},
    )
    monitors = [each for each in objects if each["kind"] == "ServiceMonitor"]
    assert {each["metadata"]["name"] for each in monitors} == {f"podtide-{program}" for program in KINDS}
    for monitor in monitors:
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["interval"] == "1m30s"
        assert "tlsConfig" not in endpoint


def test_an_allocator_with_a_certificate_is_scraped_by_tls(chart: Chart, untouched: ControlPlane) -> None:
    objects = applied(chart, untouched, serviceMonitor__enabled=True, allocator__tlsSecret="certificate")
    [endpoint] = one(objects, "ServiceMonitor", "podtide-allocator")["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", {"insecureSkipVerify": True})


def test_a_monitor_with_a_field_that_there_is_not_would_be_noticed(untouched: ControlPlane) -> None:
    """So the tests above say something of the operator's kind."""
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"selector": {}, "endpoints": [{"port": "metrics", "intervall": "30s"}]},
    }
    answer = untouched.kubectl(
        "create", "--dry-run=server", "--validate=strict", "--filename=-", stdin=json.dumps(monitor)
    )
    assert "intervall" in answer.stderr


def test_alerts_are_made_where_the_kind_is_known_and_found_by_their_labels(
    chart: Chart, untouched: ControlPlane
) -> None:
    known = structs.replace(chart, api_versions=("monitoring.coreos.com/v1/PrometheusRule",))
    objects = applied(known, untouched, prometheusRule__labels={"release": "prometheus"})
    rules = one(objects, "PrometheusRule", "podtide")
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    assert len(rules["spec"]["groups"]) == 3
    assert "PrometheusRule" not in {each["kind"] for each in applied(chart, untouched)}


def test_a_dashboard_is_made_if_wanted_and_found_by_its_labels(chart: Chart, untouched: ControlPlane) -> None:
    wanted = applied(
        chart, untouched, grafanaDashboard={"enabled": True, "labels": {"grafana_folder": "network"}}
    )
    dashboard = one(wanted, "ConfigMap", "podtide-dashboard")
    assert dashboard["metadata"]["labels"]["grafana_folder"] == "network"
    assert json.loads(dashboard["data"]["podtide.json"])["panels"]
    assert not [each for each in applied(chart, untouched) if each["kind"] == "ConfigMap"]
