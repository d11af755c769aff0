"""The live page in the chart: off unless wanted, never without a token, and with one right more, to read."""

from pathlib import Path

import pytest

from deploy.chart import Chart, one
from podtide.cli import podtide

WANTED = {"dashboard__enabled": True, "serviceMonitor__enabled": True}


def test_it_is_off_unless_wanted(chart: Chart) -> None:
    text = chart.rendered()
    assert "--dashboard" not in text
    assert "podtide-dashboard" not in text


def test_its_service_finds_the_port_of_the_controllers_and_no_monitor_takes_it_for_theirs(
    chart: Chart,
) -> None:
    objects = chart.objects(**WANTED, dashboard__port=9999)
    service = one(objects, "Service", "podtide-dashboard")
    pod = one(objects, "Deployment", "podtide-controller")["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    ports = {each["name"]: each["containerPort"] for each in pod["spec"]["containers"][0]["ports"]}
    assert (port["port"], ports[port["targetPort"]]) == (9999, 9999)
    monitor = one(objects, "ServiceMonitor", "podtide-controller")
    assert not monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_the_controller_understands_how_it_is_started_with_a_token_that_is_mounted(chart: Chart) -> None:
    pod = one(chart.objects(**WANTED), "Deployment", "podtide-controller")["spec"]["template"]["spec"]
    name, *arguments = pod["containers"][0]["args"]
    command = podtide.get_command(podtide.make_context("podtide", [name]), name)
    assert command is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "exists", lambda _path: True)  # a pod's volumes are not mounted here
        options = command.make_context(name, arguments).params
    mounts = {each["mountPath"]: each["name"] for each in pod["containers"][0]["volumeMounts"]}
    volumes = {each["name"]: each.get("secret", {}).get("secretName") for each in pod["volumes"]}
    assert volumes[mounts[str(options["dashboard_token_file"].parent)]] == "podtide-dashboard-token"


def test_a_token_is_made_and_kept_unless_one_is_named(chart: Chart) -> None:
    secret = one(chart.objects(**WANTED), "Secret", "podtide-dashboard-token")
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert len(secret["data"]["token"]) > 64
    objects = chart.objects(**WANTED, dashboard__tokenSecret="ours")
    assert "podtide-dashboard-token" not in {each["metadata"]["name"] for each in objects}
    pod = one(objects, "Deployment", "podtide-controller")["spec"]["template"]["spec"]
    assert {"name": "dashboard-token", "secret": {"secretName": "ours"}} in pod["volumes"]


def test_it_adds_the_right_to_follow_one_lease_and_no_other(chart: Chart) -> None:
    def rules(**values: object) -> list[object]:
        return [
            (each["metadata"]["name"], rule)
            for each in chart.objects(**values)
            if each["kind"] in {"Role", "ClusterRole"}
            for rule in each["rules"]
        ]

    before = rules(serviceMonitor__enabled=True)
    assert [each for each in rules(**WANTED) if each not in before] == [
        (
            "podtide-controller-dashboard",
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": ["podtide-controller"],
                "verbs": ["list", "watch"],
            },
        )
    ]


def test_a_person_is_told_how_to_open_it(chart: Chart) -> None:
    notes = chart.notes("--dry-run=client", dashboard__enabled=True)
    assert "port-forward service/podtide-dashboard 9394" in notes
    assert "get secret podtide-dashboard-token" in notes
