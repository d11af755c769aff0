"""What placement wrote on Nodes goes when placement is turned off or podtide is uninstalled: Helm itself, on a real API server.

No kubelet runs the Job of Helm's hook: the test does what its pod would, with a token of the Job's own account, and says that
it is done.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.chart import Chart
from deploy.installed import wait_until
from deploy.test_release import Release
from manifests import CHART, NAMESPACE

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
REMOVAL, TAINTS = "podtide-placement-removal", "podtide-taint-removal"
ON, OFF = "--set=placement.enabled=true", "--set=placement.enabled=false"
TAINTING, NOT_TAINTING = "--set=placement.taint=always", "--set=placement.taint=never"
MACHINE = {"cpu": "4", "pods": "110"}
PUBLISHED = {"podtide.io/ipv4": "30", "podtide.io/net-blue": "4"}
OURS = {"key": "podtide.io/no-addresses", "effect": "NoSchedule"}
THEIRS = {"key": "example.org/gpu", "effect": "NoSchedule"}


class PlacedRelease(Release):
    """podtide with placement, on a control plane whose one Node has what the controller writes there."""

    def __init__(self, chart: Chart, control_plane: ControlPlane) -> None:
        super().__init__(chart, control_plane)
        self.admin, self.kubectl = control_plane.admin, control_plane.kubectl
        self.credentials = control_plane.credentials
        self.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": "node-a"}})

    def publish(self) -> None:
        resources = MACHINE | PUBLISHED
        self._patch(
            "node", "node-a", {"status": {"capacity": resources, "allocatable": resources}}, status=True
        )
        self._patch("node", "node-a", {"spec": {"taints": [THEIRS, OURS]}})

    def on_node(self) -> tuple[dict[str, str], dict[str, str], list[Any]]:
        node = self.admin.request("GET", "/api/v1/nodes/node-a")
        return node["status"]["capacity"], node["status"]["allocatable"], node["spec"].get("taints", [])

    def job(self, name: str) -> dict[str, Any]:
        """The Job, or nothing of it."""
        jobs: list[dict[str, Any]] = self.admin.request("GET", JOBS)["items"]
        return next((each for each in jobs if each["metadata"]["name"] == name), {})

    def uid(self, job: str) -> str:
        uid: str = self.job(job).get("metadata", {}).get("uid", "")
        return uid

    def left(self) -> set[str]:
        """What of the hook, and of placement itself, is there."""
        names = [
            each["metadata"]["name"]
            for path in (JOBS, ACCOUNTS, ROLES)
            for each in self.admin.request("GET", path)["items"]
        ]
        return {name for name in names if "placement" in name or "taint-removal" in name}

    async def upgrade(self, *values: str, job: str) -> None:
        """Upgrade, and run the Job that is to come."""
        await self._with_job("upgrade", str(CHART), *values, job=job)

    async def uninstall(self) -> None:
        await self._with_job("uninstall", job=REMOVAL)

    async def _with_job(self, *command: str, job: str) -> None:
        former = self.uid(job)
        helm = asyncio.create_task(asyncio.to_thread(self.helm, *command))
        await asyncio.to_thread(wait_until, lambda: helm.done() or self.uid(job) not in {"", former})
        if not helm.done():
            await asyncio.to_thread(self._run_job, job)
        await helm

    def _run_job(self, name: str) -> None:
        pod = self.job(name)["spec"]["template"]["spec"]
        token = self.credentials.kubeconfig_for_service_account(NAMESPACE, pod["serviceAccountName"])
        command = [sys.executable, "-m", "podtide", *pod["containers"][0]["args"]]
        subprocess.run(command, check=True, env={"KUBECONFIG": str(token)})
        time = "2026-11-18T12:00:00Z"
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": time, "lastProbeTime": time}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": time, "completionTime": time, "succeeded": 1, "conditions": conditions}
        self._patch("job", name, {"status": status}, status=True)

    def _patch(self, kind: str, name: str, change: object, *, status: bool = False) -> None:
        options = ("--subresource=status",) if status else ()
        answer = self.kubectl(
            *("patch", kind, name, f"--namespace={NAMESPACE}", "--type=merge", *options),
            f"--patch={json.dumps(change)}",
        )
        assert answer.returncode == 0, answer.stderr


@pytest.fixture
def release(chart: Chart, control_plane_binaries: Binaries) -> Iterator[PlacedRelease]:
    with ControlPlane(control_plane_binaries) as control_plane:
        yield PlacedRelease(chart, control_plane)


async def test_turned_off_it_leaves_nothing_on_nodes_and_no_right_behind(release: PlacedRelease) -> None:
    release.helm("install", str(CHART), ON, TAINTING)
    release.publish()
    # The Job is not run, and Helm does not wait for ever: the next upgrade knows that it is not done.
    assert f"{REMOVAL} not ready" in release.refusal("upgrade", str(CHART), OFF, "--timeout=5s")
    assert release.on_node() == (MACHINE | PUBLISHED, MACHINE | PUBLISHED, [THEIRS, OURS])
    await release.upgrade(OFF, job=REMOVAL)
    assert release.on_node() == (MACHINE, MACHINE, [THEIRS])
    assert release.left() == set()
    assert not release.controller_may("patch", "nodes/status")
    release.helm("upgrade", str(CHART), OFF, "--timeout=5s")


async def test_when_nodes_are_no_longer_to_be_tainted_the_taints_go_and_the_resources_stay(
    release: PlacedRelease,
) -> None:
    release.helm("install", str(CHART), ON, TAINTING)
    assert release.controller_may("patch", "nodes")
    release.publish()
    await release.upgrade(ON, NOT_TAINTING, job=TAINTS)
    assert release.on_node() == (MACHINE | PUBLISHED, MACHINE | PUBLISHED, [THEIRS])
    assert release.left() == {"podtide-controller-placement"}
    assert not release.controller_may("patch", "nodes")
    release.helm("upgrade", str(CHART), ON, NOT_TAINTING, "--timeout=5s")


async def test_an_uninstall_takes_it_off_nodes_too(release: PlacedRelease) -> None:
    release.helm("install", str(CHART), ON)
    release.publish()
    await release.uninstall()
    assert release.on_node() == (MACHINE, MACHINE, [THEIRS])
    assert release.left() == set()


async def test_where_it_was_never_on_no_job_is_made(release: PlacedRelease) -> None:
    release.helm("install", str(CHART))
    release.helm("upgrade", str(CHART), "--set=settings.batch=8", "--timeout=5s")
    release.helm("uninstall", "--timeout=5s")
    assert release.left() == set()
