"""Installed, upgraded and uninstalled by Helm itself, on a control plane of its own: a release owns what it made."""

import asyncio
import hashlib
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.processes import running
from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from deploy.chart import Chart
from deploy.installed import Installed, wait_until
from manifests import CHART, NAMESPACE

ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/podtide-controller"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
TOKEN, TOKENS, ADMIN = "podtide-allocator-token", "podtide-allocator-tokens", "podtide-admin-token"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/podtide-controller"


@pytest.fixture
def fresh(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    with ControlPlane(control_plane_binaries) as control_plane:
        yield control_plane


class Release:
    """The chart, installed by Helm on a control plane."""

    def __init__(self, chart: Chart, control_plane: ControlPlane) -> None:
        self._program = chart.program
        self._control_plane = control_plane

    def helm(self, verb: str, *options: str) -> None:
        answer = self._run(verb, *options)
        assert answer.returncode == 0, answer.stderr

    def refusal(self, verb: str, *options: str) -> str:
        answer = self._run(verb, *options)
        assert answer.returncode, answer.stdout
        return answer.stderr

    def _run(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        where = (f"--kubeconfig={self._control_plane.kubeconfig}", f"--namespace={NAMESPACE}")
        command = [str(self._program), verb, "podtide", *options, *where]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def tokens(self) -> dict[str, str]:
        """What is in each of the Secrets for the allocator that is there."""
        secrets = self._control_plane.admin.request("GET", SECRETS)["items"]
        return {
            each["metadata"]["name"]: b64decode(text).decode()
            for each in secrets
            if each["metadata"]["name"] in {TOKEN, TOKENS, ADMIN}
            for text in each["data"].values()
        }

    def delete(self, *secrets: str) -> None:
        for name in secrets:
            self._control_plane.admin.request("DELETE", f"{SECRETS}/{name}")

    def make(self, name: str, **data: str) -> None:
        body = {"metadata": {"name": name}, "stringData": data}
        self._control_plane.admin.request("POST", SECRETS, body)

    def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = self._control_plane.admin.request("GET", LEASE)["spec"]
        return spec

    def controller_may(self, verb: str, kind: str) -> bool:
        account = f"--as=system:serviceaccount:{NAMESPACE}:podtide-controller"
        return self._control_plane.kubectl("auth", "can-i", verb, kind, account).stdout.strip() == "yes"


def test_an_upgrade_and_a_new_installation_leave_the_leader_its_lease(
    chart: Chart, fresh: ControlPlane
) -> None:
    helm = Release(chart, fresh).helm

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


async def test_a_leader_whose_other_rights_went_with_the_release_gives_its_lease_up_and_the_next_one_leads_at_once(
    chart: Chart, fresh: ControlPlane, tmp_path: Path
) -> None:
    """Helm removes rights at once, and the leader's pod ends seconds later. Its successor would wait an hour, and the test not."""
    release, pods = Release(chart, fresh), Installed(fresh, "", tmp_path)
    command = (
        *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
        *("--database", f"sqlite:///{tmp_path}/subnets.db"),
    )
    await asyncio.to_thread(release.helm, "install", str(CHART))
    async with running(*command, KUBECONFIG=str(pods.controller())) as leader:
        await leader.logged("leading")
        await asyncio.to_thread(release.helm, "uninstall")
        await asyncio.to_thread(wait_until, lambda: not release.controller_may("list", "nodes"))
        assert fresh.admin.request("GET", ACCOUNT), "an API server refuses its tokens 10 s after it is gone"
        assert release.lease()["holderIdentity"]
        await leader.stop()
    assert not release.lease().get("holderIdentity"), [each for each in leader.lines if "error" in each]

    await asyncio.to_thread(release.helm, "install", str(CHART))
    async with running(*command, KUBECONFIG=str(pods.controller()), PODTIDE_LEADER_LEASE="1h") as successor:
        await successor.logged("leading")
        await successor.stop()


def file_of(token: str, admin: str, cluster: str = "default") -> str:
    """The file by which an allocator knows these two."""
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in (token, admin)]
    return f"{digests[0]}  cluster {cluster}\n{digests[1]}  administration\n"


def test_tokens_are_made_once_and_outlive_upgrades_and_the_release(chart: Chart, fresh: ControlPlane) -> None:
    release = Release(chart, fresh)
    subnets = "--set=subnets[0].cidr=10.1.0.0/16"
    release.helm("install", str(CHART), subnets)
    made = release.tokens()
    assert made.keys() == {TOKEN, TOKENS, ADMIN}
    for batch in (8, 4):
        release.helm("upgrade", str(CHART), subnets, f"--set=settings.batch={batch}")
        assert release.tokens() == made
    release.helm("uninstall")
    assert release.tokens() == made
    release.helm("install", str(CHART), subnets)
    assert release.tokens() == made

    release.delete(ADMIN, TOKENS)
    release.helm("upgrade", str(CHART), subnets)
    renewed = release.tokens()
    assert renewed[TOKEN] == made[TOKEN], "the controller's stays"
    assert renewed[ADMIN] != made[ADMIN]
    assert renewed[TOKENS] == file_of(renewed[TOKEN], renewed[ADMIN])

    another_name = (str(CHART), subnets, "--set=clusterName=east")
    assert f"{TOKENS} has no token of the cluster east" in release.refusal("upgrade", *another_name)
    release.delete(TOKENS)
    release.helm("upgrade", *another_name)
    assert release.tokens() == renewed | {TOKENS: file_of(renewed[TOKEN], renewed[ADMIN], "east")}

    release.delete(TOKEN)
    assert f"{TOKENS} is there, and {TOKEN}" in release.refusal("upgrade", *another_name)


def test_who_made_secrets_by_these_names_keeps_them(chart: Chart, fresh: ControlPlane) -> None:
    release = Release(chart, fresh)
    own = {TOKEN: "mine", TOKENS: file_of("mine", "my admin's")}
    release.make(TOKEN, token=own[TOKEN])
    release.make(TOKENS, tokens=own[TOKENS])
    release.helm("install", str(CHART))
    assert release.tokens() == own
    subnets = "--set=subnets[0].cidr=10.1.0.0/16"
    assert f"there is no Secret {ADMIN}" in release.refusal("upgrade", str(CHART), subnets)
    own[ADMIN] = "my admin's"
    release.make(ADMIN, token=own[ADMIN])
    release.helm("upgrade", str(CHART), subnets)
    assert release.tokens() == own
