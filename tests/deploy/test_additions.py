"""What operators add to the chart's objects, as a real API server would have it."""

import re
from pathlib import Path
from typing import Any

import pytest

from control_plane.cluster import ControlPlane
from deploy.applied import applied
from deploy.chart import Chart, Document, one
from deploy.installed import Installed
from deploy.test_chart import ADDITIONS, DIGEST, SUBNETS, WORKLOADS, containers
from podtide import __version__
from podtide.cli import podtide

PROGRAMS = {"agent": "DaemonSet", "controller": "Deployment", "allocator": "StatefulSet"}
NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
ZONES = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}


def additions(program: str) -> dict[str, Any]:
    return {f"{program}__{name}": value for name, value in ADDITIONS.items()}


def template(objects: list[Document], program: str) -> Document:
    found: Document = one(objects, PROGRAMS[program], f"podtide-{program}")["spec"]["template"]
    return found


def pods(objects: list[Document]) -> dict[str, Document]:
    """The pods that workloads make, each by its component."""
    templates = [each["spec"]["template"] for each in objects if each["kind"] in WORKLOADS]
    return {each["metadata"]["labels"][COMPONENT]: each for each in templates}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_has_what_is_added_to_it_behind_what_it_has_and_no_other_has_it(
    chart: Chart, untouched: ControlPlane, program: str
) -> None:
    before, after = (applied(chart, untouched, **values) for values in ({}, additions(program)))
    for each in PROGRAMS:
        was, now = (template(objects, each)["spec"] for objects in (before, after))
        more = ADDITIONS if each == program else {name: [] for name in ADDITIONS}
        assert now["volumes"] == was["volumes"] + more["extraVolumes"]
        [was], [now] = was["containers"], now["containers"]
        assert now["args"] == was["args"] + more["extraArgs"]
        assert now.get("env", []) == was.get("env", []) + more["extraEnv"]
        assert now["volumeMounts"] == was["volumeMounts"] + more["extraVolumeMounts"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_arguments_and_variables_that_are_added_win_over_those_of_the_chart(
    chart: Chart, untouched: ControlPlane, program: str
) -> None:
    objects = applied(chart, untouched, settings={"batch": 8, "poll": "3s"}, **additions(program))
    for container in containers(objects):
        name, *arguments = container["args"]
        is_meant = name == program
        variables = [(each["name"], each.get("value")) for each in container["env"]]
        assert ("PODTIDE_POLL", "3s") in variables
        batches = [value for variable, value in variables if variable == "PODTIDE_BATCH"]
        assert batches == (["24"] if is_meant else ["8"])
        assert log_level(name, arguments) == ("debug" if is_meant else "info")


def log_level(name: str, arguments: list[str]) -> str:
    """The level of the log of a program that is started so."""
    command = podtide.get_command(podtide.make_context("podtide", [name]), name)
    assert command is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NODENAME", "a")
        patch.setenv("PODTIDE_DATABASE", "sqlite:////subnets.db")
        patch.setattr(Path, "exists", lambda _path: True)  # a pod's volumes are not mounted here
        level: str = command.make_context(name, arguments).params["log_level"]
    return level


@pytest.mark.parametrize(
    ("program", "components"),
    [
        ("agent", {"agent", "remover"}),
        ("controller", {"controller", "subnets", "test"}),
        ("allocator", {"allocator"}),
    ],
)
def test_labels_and_annotations_are_on_all_pods_that_belong_to_a_program(
    chart: Chart, untouched: ControlPlane, program: str, components: set[str]
) -> None:
    values: dict[str, Any] = {
        f"{program}__podLabels": {"example.org/team": "network", "example.org/tier": "1"},
        f"{program}__podAnnotations": {"example.org/contact": "a@example.org"},
        "subnets": SUBNETS,
    }
    found = {
        **pods(applied(chart, untouched, **values)),
        **pods(applied(chart, untouched, cni__remove=True, **values)),
    }
    tests = chart.test_pods(**values)
    assert len(tests) == 2
    marked = set()
    for component, pod in [*found.items(), *(("test", each) for each in tests)]:
        metadata = pod["metadata"]
        assert metadata["labels"][COMPONENT] == component
        is_marked = (
            metadata["labels"].get("example.org/team") == "network",
            metadata["labels"].get("example.org/tier") == "1",
            metadata.get("annotations", {}).get("example.org/contact") == "a@example.org",
        )
        assert is_marked == (component in components,) * 3
        marked |= {component} if all(is_marked) else set()
    assert marked == components


@pytest.mark.parametrize("program", ["controller", "allocator"])
def test_pods_of_a_program_are_spread_and_are_what_is_counted_unless_the_values_say_what(
    chart: Chart, untouched: ControlPlane, program: str
) -> None:
    others = {"labelSelector": {"matchLabels": {"example.org/team": "network"}}}
    constraints = [ZONES, {**ZONES, "topologyKey": "example.org/rack", **others}]
    objects = applied(
        chart, untouched, subnets=SUBNETS, **{f"{program}__topologySpreadConstraints": constraints}
    )
    selector = one(objects, PROGRAMS[program], f"podtide-{program}")["spec"]["selector"]
    for component, pod in pods(objects).items():
        expected = [{**ZONES, "labelSelector": selector}, constraints[1]] if component == program else None
        assert pod["spec"].get("topologySpreadConstraints") == expected


def test_the_test_of_an_installation_is_not_spread(chart: Chart) -> None:
    for pod in chart.test_pods(controller__topologySpreadConstraints=[ZONES]):
        assert "topologySpreadConstraints" not in pod["spec"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, f"podtide:{__version__}"),
        ({"tag": "next"}, "podtide:next"),
        ({"digest": DIGEST}, f"podtide@{DIGEST}"),
        ({"digest": DIGEST, "tag": "next"}, f"podtide:next@{DIGEST}"),
    ],
)
def test_every_container_runs_the_image_that_the_values_name(
    chart: Chart, untouched: ControlPlane, image: dict[str, str], expected: str
) -> None:
    values = {f"image__{name}": value for name, value in image.items()}
    for more in ({"subnets": SUBNETS}, {"cni__remove": True}):
        started = list(containers(applied(chart, untouched, **values, **more)))
        assert len(started) >= 4
        assert {each["image"] for each in started} == {expected}
    assert {each["spec"]["containers"][0]["image"] for each in chart.test_pods(**values)} == {expected}


@pytest.mark.parametrize("name", ["ipam", "123"])
def test_another_name_is_a_label_in_all_objects_and_selectors_and_changes_nothing_else(
    chart: Chart, untouched: ControlPlane, name: str
) -> None:
    def shape(objects: list[Document], label: str) -> list[tuple[str, str, object]]:
        described = []
        for each in objects:
            assert each["metadata"]["labels"][NAME] == label, each["metadata"]["name"]
            spec = each.get("spec", {})
            selector = spec.get("selector", {})
            described.append((each["kind"], each["metadata"]["name"], spec.get("template", {}).get("spec")))
            selected = selector.get("matchLabels", selector)
            assert selected.get(NAME, label) == label
        return described

    values = {"serviceMonitor__enabled": True, "grafanaDashboard__enabled": True}
    usual = applied(chart, untouched, **values)
    renamed = applied(chart, untouched, **values, nameOverride=name)
    assert shape(renamed, name) == shape(usual, "podtide")
    for program, kind in PROGRAMS.items():
        workload = one(renamed, kind, f"podtide-{program}")
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"] == {NAME: name, COMPONENT: program}
        assert labels[NAME] == name


def test_another_name_is_for_a_new_installation(chart: Chart, installed: Installed) -> None:
    """As the manual says: the selector of a workload cannot change."""
    answer = installed.control_plane.kubectl(
        "apply", "--dry-run=server", "--filename=-", stdin=chart.rendered(nameOverride="ipam")
    )
    refused = dict(re.findall(r'"podtide-(\w+)" is invalid: (.+)', answer.stderr))
    assert refused.keys() == PROGRAMS.keys()
    assert "field is immutable" in refused["agent"]
    assert "field is immutable" in refused["controller"]
