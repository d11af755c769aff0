"""The chart's schema: it has every value, and what is no value is refused by its name."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_readme import rows
from deploy.chart import Chart
from manifests import CHART
from podtide.runtime.settings import SETTINGS

Schema = dict[str, Any]
SCHEMA: Schema = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
OF_HELM = {"global"}
"""What Helm itself gives to every chart."""
OPTIONAL = ("settings",)
"""A map with keys that are there only if an operator adds them. It is one value."""


def resolved(schema: Schema) -> Schema:
    """The definition, if the schema only names one."""
    if "$ref" not in schema:
        return schema
    definition: Schema = SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    return definition


def groups(schema: Schema = SCHEMA, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """The maps whose keys are values, each with the keys that lead to it."""
    if "properties" in schema and path != OPTIONAL:
        yield path, schema
        for name, inner in schema["properties"].items():
            yield from groups(resolved(inner), (*path, name))


def names() -> Iterator[str]:
    """Every value of the schema by its full name."""
    for path, group in groups():
        for name, schema in group["properties"].items():
            full = (*path, name)
            if ("properties" not in resolved(schema) or full == OPTIONAL) and name not in OF_HELM:
                yield ".".join(full)


def schemas(place: object = SCHEMA) -> Iterator[Schema]:
    """The schema, and all within it."""
    if isinstance(place, dict):
        yield place
        place = list(place.values())
    if isinstance(place, list):
        for inner in place:
            yield from schemas(inner)


def test_the_schema_has_every_key_of_the_values_and_no_other() -> None:
    for path, group in groups():
        values = VALUES
        for name in path:
            values = values[name]
        assert values.keys() == group["properties"].keys() - OF_HELM, ".".join(path)


def test_the_readme_has_a_row_for_every_value_of_the_schema_and_no_other() -> None:
    described = [row.name for row in rows((CHART / "values.yaml").read_text())]
    assert sorted(described) == sorted(names())
    assert len(described) >= 100  # they are found


def test_the_schema_says_of_every_value_what_it_may_be() -> None:
    for _path, group in groups():
        for name, schema in group["properties"].items():
            assert resolved(schema).keys() & {"type", "enum"}, name


def test_where_the_schema_names_keys_there_are_no_others() -> None:
    naming = [schema for schema in schemas() if isinstance(schema.get("properties"), dict)]
    assert len(naming) > len(list(groups()))  # those within lists, too
    for schema in naming:
        assert schema["additionalProperties"] is False, schema


def test_in_every_group_a_misspelt_value_is_refused_by_its_name(chart: Chart) -> None:
    paths = [path for path, _ in groups()]
    misspelt = {path: f"misspelt{number}" for number, path in enumerate(paths)}
    words = chart.refusal(**{"__".join((*path, name)): 1 for path, name in misspelt.items()})
    assert [name for name in misspelt.values() if f"'{name}'" not in words] == []


def test_the_schema_knows_every_setting_and_no_other() -> None:
    assert list(SCHEMA["properties"]["settings"]["properties"]) == [each.name for each in SETTINGS]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"settings": {"bach": 8}}, "at '/settings': additional properties 'bach'"),
        ({"agent": {"tolerance": []}}, "tolerance"),
        ({"cni__type": "macvlan"}, "cni/type"),
        ({"cni__cniVersion": "0.4.0"}, "cni/cniVersion"),
        ({"cniBinHostPath": "opt/cni/bin"}, "cniBinHostPath"),
        ({"agent__cnsStateFile": "azure-endpoints.json"}, "agent/cnsStateFile"),
        ({"allocator__enabled": False}, "there is no allocator"),
        ({"allocator__tokensSecret": "hashes"}, "name both Secrets, or neither"),
        ({"subnets": [{"name": "pods"}]}, "subnets/0"),
        ({"subnets": [{"cidr": "10.1.0.0/16", "cidrs": ["10.2.0.0/16"]}]}, "subnets/0"),
        ({"subnets": [{"cidr": "10.1.0.0/16", "gatway": "10.1.0.9"}]}, "gatway"),
        ({"image__digest": "sha256:0a1b"}, "image/digest"),
        ({"nameOverride": "a/b"}, "nameOverride"),
        ({"imagePullSecrets": ["registry"]}, "imagePullSecrets/0"),
        (
            {"agent__podLabels": {"app.kubernetes.io/name": "other"}},
            "agent/podLabels/app.kubernetes.io~1name",
        ),
        ({"controller__podLabels": {"example.org/on": True}}, "controller/podLabels/example.org~1on"),
        ({"agent__extraArgs": [5]}, "agent/extraArgs/0"),
        ({"agent__extraEnv": [{"name": "NODENAME", "value": "b"}]}, "agent.extraEnv has NODENAME"),
        ({"allocator__extraEnv": [{"name": "WORKERS", "value": 5}]}, "allocator/extraEnv/0/value"),
        ({"allocator__extraEnv": [{"name": "WORKERS", "valeu": "5"}]}, "valeu"),
        ({"controller__extraVolumes": [{"emptyDir": {}}]}, "controller/extraVolumes/0"),
        ({"controller__extraVolumeMounts": [{"name": "extra"}]}, "controller/extraVolumeMounts/0"),
        ({"agent__topologySpreadConstraints": []}, "topologySpreadConstraints"),
    ],
)
def test_what_cannot_be_is_refused(chart: Chart, values: dict[str, Any], words: str) -> None:
    assert words in chart.refusal(**values)


def test_the_manuals_examples_are_values_that_there_are(chart: Chart, tmp_path: Path) -> None:
    page = (CHART.parent.parent / "docs" / "installing.md").read_text()
    examples = re.findall(r"^```yaml\n(.+?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(examples) >= 2
    for example in examples:
        (tmp_path / "values.yaml").write_text(example)
        verdict = chart.lint(f"--values={tmp_path / 'values.yaml'}")
        assert verdict.returncode == 0, verdict.stdout
