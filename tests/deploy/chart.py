"""The chart as Helm sees it."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from manifests import CHART, NAMESPACE, render

Document = dict[str, Any]


class Chart(Struct, frozen=True):
    """The chart in deploy/, and the Helm to render it."""

    program: Path
    api_versions: tuple[str, ...] = ()
    """Kinds beside Kubernetes' own that the cluster knows, each as `group/version/Kind`."""

    def lint(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), "lint", str(CHART), "--strict", *options]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def rendered(self, **values: object) -> str:
        """What is applied to a cluster, as text. A value `agent__listen` is `agent.listen`."""
        return render(
            self.program, *_options(values), *(f"--api-versions={each}" for each in self.api_versions)
        )

    def notes(self, *options: str, **values: object) -> str:
        """What Helm tells a person after it has installed the chart; nothing is installed."""
        command = [str(self.program), "install", "podtide", str(CHART), f"--namespace={NAMESPACE}"]
        answer = subprocess.run(
            [*command, *_options(values), *options], check=True, capture_output=True, text=True
        )
        return answer.stdout.partition("NOTES:")[2]

    def crds(self) -> str:
        """What is applied before all else."""
        return (CHART.parent / "manifests" / "crds.yaml").read_text()

    def refusal(self, **values: object) -> str:
        """What Helm says to values that it refuses."""
        try:
            self.rendered(**values)
        except subprocess.CalledProcessError as refused:
            words: str = refused.stderr
            return words
        raise AssertionError("it is not refused")

    def objects(self, **values: object) -> list[Document]:
        return _documents(self.rendered(**values))

    def test_pods(self, **values: object) -> list[Document]:
        """The pods that `helm test` starts."""
        with_tests = render(self.program, *_options(values), "--skip-tests=false")
        return [each for each in _documents(with_tests) if each["kind"] == "Pod"]


def _options(values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        yield f"--set-json={name.replace('__', '.')}={json.dumps(value)}"


def _documents(text: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(text) if document]


def one(objects: list[Document], kind: str, name: str) -> Document:
    """The only object of that kind and name."""
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found
