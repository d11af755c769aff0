"""What an API server makes of the chart's objects, without keeping them: the objects as they would be."""

import json

import yaml

from control_plane.cluster import ControlPlane
from deploy.chart import Chart, Document


def applied(chart: Chart, control_plane: ControlPlane, **values: object) -> list[Document]:
    """All objects, each one of which the server takes to the last field, and without a warning."""
    objects = chart.objects(**values)
    answer = control_plane.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict"),
        *("--filename=-", "--output=json"),
        stdin=yaml.safe_dump_all(objects),
    )
    assert answer.returncode == 0, answer.stderr
    assert "Warning" not in answer.stderr
    taken: list[Document] = json.loads(answer.stdout)["items"]
    assert len(taken) == len(objects)
    return taken
