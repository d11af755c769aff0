"""A real API server takes what the chart renders, whatever values it is rendered with, and has no doubts about it."""

from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.applied import applied
from deploy.chart import Chart
from deploy.installed import wait_until
from deploy.test_chart import VARIANTS

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_api_server_takes_every_object_without_a_warning(
    chart: Chart, untouched: ControlPlane, values: dict[str, Any]
) -> None:
    assert applied(chart, untouched, **values)


def test_the_crds_in_the_manifests_are_taken(chart: Chart, untouched: ControlPlane) -> None:
    definitions = chart.crds()
    answer = untouched.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-"),
        stdin=definitions,
    )
    assert answer.returncode == 0, answer.stderr


@pytest.fixture
def checking(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane that checks what policies say against the kinds they are for."""
    checks = ["validatingadmissionpolicy-status-controller"]
    with ControlPlane(control_plane_binaries, controllers=checks) as control_plane:
        control_plane.start_controllers()
        yield control_plane


def test_no_policy_names_a_field_that_its_kind_does_not_have(chart: Chart, checking: ControlPlane) -> None:
    """An expression that cannot be evaluated refuses everything; most are only evaluated when it matters."""
    answer = checking.kubectl("apply", "--filename=-", stdin=chart.rendered(placement__enabled=True))
    assert answer.returncode == 0, answer.stderr
    verdicts: dict[str, dict[str, Any]] = {}

    def are_all_there() -> bool:
        policies = checking.admin.request("GET", POLICIES)["items"]
        verdicts.update((each["metadata"]["name"], each.get("status", {})) for each in policies)
        return all("typeChecking" in verdict for verdict in verdicts.values())

    wait_until(are_all_there)
    assert len(verdicts) == 9
    assert not [name for name, verdict in verdicts.items() if verdict["typeChecking"]], verdicts
