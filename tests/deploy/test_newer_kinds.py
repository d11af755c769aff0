"""The kinds that Helm once installed, and leaves as they are, are brought up to date by the command of docs/upgrading.md."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.chart import Chart
from manifests import CHART, NAMESPACE
from repository_files import ROOT

KIND = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustersubnets.acn.azure.com"
COMMAND = re.compile(r"^ *kubectl (apply .*)-f (deploy/manifests/crds\.yaml)$", re.MULTILINE)


@pytest.fixture
def without_kinds(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane that does not know podtide's kinds."""
    with ControlPlane(control_plane_binaries) as control_plane:
        deleted = control_plane.kubectl("delete", "crd", "--all")
        assert deleted.returncode == 0, deleted.stderr
        yield control_plane


def test_kinds_that_helm_installed_are_changed_by_the_documented_command(
    chart: Chart, without_kinds: ControlPlane, tmp_path: Path
) -> None:
    install = [str(chart.program), "install", "podtide", str(CHART), f"--namespace={NAMESPACE}"]
    subprocess.run([*install, f"--kubeconfig={without_kinds.kubeconfig}"], check=True, capture_output=True)
    [(command, file)] = COMMAND.findall((ROOT / "docs" / "upgrading.md").read_text())
    newer = tmp_path / "crds.yaml"
    newer.write_text(_with_a_further_column((ROOT / file).read_text()))

    applied = without_kinds.kubectl(*command.split(), f"--filename={newer}")
    assert applied.returncode == 0, applied.stderr
    [version] = without_kinds.admin.request("GET", KIND)["spec"]["versions"]
    assert version["additionalPrinterColumns"][-1]["name"] == "Newer"


def _with_a_further_column(manifests: str) -> str:
    kinds = list(yaml.safe_load_all(manifests))
    column = {"name": "Newer", "type": "string", "jsonPath": ".metadata.name"}
    for kind in kinds:
        for version in kind["spec"]["versions"]:
            version.setdefault("additionalPrinterColumns", []).append(column)
    return yaml.safe_dump_all(kinds)
