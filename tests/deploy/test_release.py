"""Installed, upgraded and uninstalled by Helm itself, on a control plane of its own: a release owns what it made."""

import subprocess
from collections.abc import Iterator

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.chart import Chart
from manifests import CHART, NAMESPACE

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/podtide-controller"


@pytest.fixture
def fresh(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    with ControlPlane(control_plane_binaries) as control_plane:
        yield control_plane


def test_an_upgrade_and_a_new_installation_leave_the_leader_its_lease(
    chart: Chart, fresh: ControlPlane
) -> None:
    def helm(verb: str, *options: str) -> None:
        where = (f"--kubeconfig={fresh.kubeconfig}", f"--namespace={NAMESPACE}")
        command = [str(chart.program), verb, "podtide", *options, *where]
        answer = subprocess.run(command, check=False, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr

    def daemon_sets() -> list[str]:
        found = fresh.admin.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets")
        return [each["metadata"]["name"] for each in found["items"]]

    helm("install", str(CHART))
    lease = fresh.admin.request("GET", LEASE)
    assert lease["spec"] == {"leaseDurationSeconds": 1}, "free to be taken at once"
    held = {"holderIdentity": "leader", "leaseDurationSeconds": 15, "leaseTransitions": 1}
    fresh.admin.request("PUT", LEASE, lease | {"spec": held})

    helm("upgrade", str(CHART), "--set=settings.batch=8")
    assert fresh.admin.request("GET", LEASE)["spec"] == held
    assert daemon_sets() == ["podtide-agent"]

    helm("upgrade", str(CHART), "--reuse-values", "--set=cni.remove=true")
    assert daemon_sets() == ["podtide-remover"], "agents would put back what is removed"

    helm("uninstall")
    assert daemon_sets() == []
    helm("install", str(CHART))
    assert fresh.admin.request("GET", LEASE)["spec"] == held
