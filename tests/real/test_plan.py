"""`podtide plan --from-cluster` on a real API server: it counts what needs an address there, and writes nothing."""

import json
from typing import Any

from click.testing import CliRunner

from control_plane.cluster import ControlPlane
from podtide.cli import podtide


class PlannedNodes:
    """Two nodes of a test's own among what the control plane has."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self._admin = control_plane.admin
        self._kubeconfig = str(control_plane.kubeconfig)
        self._namespace = namespace
        self.names = [f"{namespace}-n{number}" for number in (1, 2)]

    def make(self) -> None:
        for name in self.names:
            self._admin.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})

    def remove(self) -> None:
        for name in self.names:
            self._admin.request("DELETE", f"/api/v1/nodes/{name}")
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        for pod in self._admin.request("GET", pods)["items"]:
            self._admin.request("DELETE", f"{pods}/{pod['metadata']['name']}?gracePeriodSeconds=0")

    def start_pod(self, name: str, *, phase: str = "Running", **spec: object) -> None:
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        containers = [{"name": "main", "image": "registry.invalid/nothing"}]
        made = {
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"containers": containers, **spec},
        }
        self._admin.request("POST", pods, made)
        stored = self._admin.request("GET", f"{pods}/{name}")
        self._admin.request("PUT", f"{pods}/{name}/status", stored | {"status": {"phase": phase}})

    def plan(self, *arguments: str) -> Any:
        answer = CliRunner().invoke(
            podtide, ["plan", *arguments, "--from-cluster", "--kubeconfig", self._kubeconfig, "-o", "json"]
        )
        assert answer.exit_code == 0, answer.output
        return json.loads(answer.output)

    def versions(self) -> list[str]:
        """Of every node and pod, when it was last written."""
        return [
            each["metadata"]["resourceVersion"]
            for kind in ("nodes", "pods")
            for each in self._admin.request("GET", f"/api/v1/{kind}")["items"]
        ]


def test_a_plan_counts_pods_that_need_an_address_and_writes_nothing(
    control_plane: ControlPlane, namespace: str
) -> None:
    nodes = PlannedNodes(control_plane, namespace)
    nodes.make()
    try:
        before = nodes.plan()["rest"]
        for number in range(3):
            nodes.start_pod(f"web-{number}", nodeName=nodes.names[0])
        nodes.start_pod("on-the-host", nodeName=nodes.names[0], hostNetwork=True)
        nodes.start_pod("done", nodeName=nodes.names[1], phase="Succeeded")
        nodes.start_pod("failed", nodeName=nodes.names[1], phase="Failed")
        nodes.start_pod("unbound", phase="Pending")
        versions = nodes.versions()
        after = nodes.plan()["rest"]
        assert (after["nodes"] - before["nodes"], after["pods"] - before["pods"]) == (0, 3)
        assert nodes.plan("fit", "--pods", "1", "--capacity", "5000")["new_pods"] == 1
        assert nodes.versions() == versions
    finally:
        nodes.remove()
