"""A real API server takes what the chart renders, whatever values it is rendered with."""

from typing import Any

import pytest
import yaml

from control_plane.cluster import ControlPlane
from deploy.chart import Chart
from deploy.test_chart import VARIANTS


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_api_server_takes_every_object_without_a_warning(
    chart: Chart, control_plane: ControlPlane, values: dict[str, Any]
) -> None:
    objects = [
        each for each in chart.objects(**values) if each["kind"] != "ServiceMonitor"
    ]  # its operator's kind
    answer = control_plane.kubectl(
        *(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--validate=strict",
            "--filename=-",
        ),
        stdin=yaml.safe_dump_all(objects),
    )
    assert answer.returncode == 0, answer.stderr
    assert "Warning" not in answer.stderr
    assert len(answer.stdout.splitlines()) == len(objects)


def test_the_crds_in_the_manifests_are_taken(chart: Chart, control_plane: ControlPlane) -> None:
    definitions = chart.crds()
    answer = control_plane.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-"),
        stdin=definitions,
    )
    assert answer.returncode == 0, answer.stderr
