"""podtide as the chart installs it on a real API server: its objects, its roles, and a credential for each program.

Nothing runs the pods: there is no kubelet. A test that wants a program starts it itself, with the token that its pod
would be given.
"""

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from control_plane.cluster import ControlPlane
from control_plane.errors import RequestFailed
from control_plane.kubeconfig import kubeconfig
from patience import PATIENCE_SECONDS
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

NAMESPACE = "kube-system"
POLL_SECONDS = 0.1

_IN_FORCE = "names no node"
"""What the policies say to a token without a node. They are not asked until some time after they were made."""


class _Probe(Struct, frozen=True):
    """A write of one kind, by a verb that an agent has for it."""

    command: tuple[str, ...]
    api_version: str
    kind: str
    spec: str

    def text(self, *, changed: bool) -> str:
        """The object; changed, it is worth a write."""
        return (
            f"apiVersion: {self.api_version}\nkind: {self.kind}\nspec: {self.spec}\n"
            f'metadata: {{name: policy-probe, namespace: {NAMESPACE}, labels: {{changed: "{changed}"}}}}\n'
        )


_PROBES = (
    _Probe(("apply", "--server-side"), "acn.azure.com/v1alpha", "NodeNetworkConfig", "{}"),
    _Probe(
        ("replace",), "whereabouts.cni.cncf.io/v1alpha1", "IPPool", "{range: 10.0.0.0/24, allocations: {}}"
    ),
    _Probe(("replace",), "coordination.k8s.io/v1", "Lease", "{}"),
    _Probe(
        ("replace",),
        "whereabouts.cni.cncf.io/v1alpha1",
        "OverlappingRangeIPReservation",
        "{podref: default/web}",
    ),
)


class Installed:
    """What was rendered, applied to a control plane until the context ends."""

    def __init__(self, control_plane: ControlPlane, manifests: str, directory: Path) -> None:
        self.control_plane = control_plane
        self._manifests = manifests
        self._directory = directory
        self._pods: set[str] = set()

    def __enter__(self) -> Self:
        answer = self.control_plane.kubectl("apply", "--filename=-", stdin=self._manifests)
        assert answer.returncode == 0, answer.stderr
        assert "Warning" not in answer.stderr, answer.stderr
        for probe in _PROBES:
            self._until_in_force(probe)
        self._until_leases_are_kept()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kubectl = self.control_plane.kubectl
        kubectl("delete", "--filename=-", "--ignore-not-found", stdin=self._manifests)
        if self._pods:
            kubectl("delete", "pods", *self._pods, f"--namespace={NAMESPACE}", "--force", "--grace-period=0")

    def agent(self, node: str) -> Path:
        """A kubeconfig with the token of the agent's pod on this node, which must be there."""
        return self._kubeconfig("podtide-agent", node)

    def controller(self) -> Path:
        """A kubeconfig with the token of a controller's pod."""
        return self._kubeconfig("podtide-controller", "")

    def allocator(self) -> Path:
        """A kubeconfig with a token of the allocator's account, which its pod is not even given."""
        return self._kubeconfig("podtide-allocator", "")

    def unbound_agent(self) -> Path:
        """A kubeconfig with a token of the agents' account that was not made for a pod."""
        return self.control_plane.credentials.kubeconfig_for_service_account(NAMESPACE, "podtide-agent")

    def mounted(self, account: str, node: str = "") -> Path:
        """What a kubelet puts into the pod of this account, on this node: a directory with token, authority and namespace."""
        pod = self._pod(account, node)
        directory = self._directory / f"{pod['name']}.serviceaccount"
        directory.mkdir(exist_ok=True)
        (directory / "token").write_text(self._token(account, pod))
        (directory / "ca.crt").write_text(self.control_plane.certificate_authority.read_text())
        (directory / "namespace").write_text(NAMESPACE)
        return directory

    def _kubeconfig(self, account: str, node: str) -> Path:
        pod, there = self._pod(account, node), self.control_plane
        text = kubeconfig(
            there.url, there.certificate_authority.read_text(), pod["name"], self._token(account, pod)
        )
        file = self._directory / f"{pod['name']}.kubeconfig"
        file.write_text(text)
        return file

    def _token(self, account: str, pod: dict[str, Any]) -> str:
        """A token of the account that is bound to its pod."""
        reference = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
        answer = self.control_plane.admin.request("POST", path, {"spec": {"boundObjectRef": reference}})
        token: str = answer["status"]["token"]
        return token

    def _pod(self, account: str, node: str) -> dict[str, Any]:
        """The pod for which a kubelet would ask for the token."""
        name = f"{account}-{node}" if node else account
        self._pods.add(name)
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        spec = {
            "serviceAccountName": account,
            "containers": [{"name": "main", "image": "podtide"}],
            "hostNetwork": True,
            **({"nodeName": node} if node else {}),
        }
        try:
            pod = self.control_plane.admin.request("POST", pods, {"metadata": {"name": name}, "spec": spec})
        except RequestFailed:
            pod = self.control_plane.admin.request("GET", f"{pods}/{name}")
        metadata: dict[str, Any] = pod["metadata"]
        return metadata

    def _until_in_force(self, probe: _Probe) -> None:
        """Wait until such a write is put to the policies."""
        kubectl, unbound = self.control_plane.kubectl, self.unbound_agent()
        made = kubectl("apply", "--filename=-", stdin=probe.text(changed=False))
        assert made.returncode == 0, made.stderr
        attempt = (*probe.command, "--filename=-", "--dry-run=server")
        wait_until(
            lambda: _IN_FORCE in kubectl(*attempt, stdin=probe.text(changed=True), kubeconfig=unbound).stderr
        )
        kubectl("delete", "--filename=-", stdin=probe.text(changed=False))

    def _until_leases_are_kept(self) -> None:
        """Wait until the controller's deletes are put to its policy."""
        kubectl, credentials = self.control_plane.kubectl, self.control_plane.credentials
        controller = credentials.kubeconfig_for_service_account(NAMESPACE, "podtide-controller")
        attempt = ("delete", "lease", "podtide-controller", f"--namespace={NAMESPACE}", "--dry-run=server")
        wait_until(lambda: "is not one" in kubectl(*attempt, kubeconfig=controller).stderr)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)


def connected(kubeconfig_file: Path) -> KubernetesCluster:
    """The API server, asked as whoever the kubeconfig says."""
    access = find_access(kubeconfig=kubeconfig_file, environment={}, home=Path("/nowhere"))
    return KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness())
