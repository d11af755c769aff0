"""Who we are to a real API server: by certificate, by token, and by what a plugin prints."""

from pathlib import Path

import pytest
import yaml

from control_plane.cluster import ControlPlane
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.kubernetes.answers import Unauthorized
from podtide.cluster.port import Forbidden, NotFound
from podtide.resources.node import Node
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

NAMESPACE = "default"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def connected(kubeconfig: Path) -> KubernetesCluster:
    access = find_access(kubeconfig=kubeconfig, environment={}, home=Path("/nowhere"))
    return KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness())


async def test_a_certificate_without_rights_is_known_and_refused_by_verb_kind_and_name(
    control_plane: ControlPlane,
) -> None:
    async with connected(control_plane.credentials.kubeconfig_for_user("nobody")) as cluster:
        with pytest.raises(Forbidden, match=r'cannot get Node a: .*User "nobody" cannot get'):
            await cluster.get(Node, "a")


async def test_a_service_account_may_do_what_it_was_granted(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.credentials.kubeconfig_for_service_account(NAMESPACE, "reader")
    binding = {
        "metadata": {"name": "reader-of-nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node"},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "reader"}],
    }
    control_plane.admin.request("POST", BINDINGS, binding)
    async with connected(kubeconfig) as cluster:
        with pytest.raises(NotFound):
            await cluster.get(Node, "a")


async def test_a_plugin_is_run_again_when_the_server_does_not_know_its_token(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(control_plane.credentials.token(NAMESPACE, "plugged"))
    version = "client.authentication.k8s.io/v1"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        f"test -e {tmp_path}/run && TOKEN=$(cat {tmp_path}/token) || TOKEN=unknown\n"
        f"touch {tmp_path}/run\n"
        f'echo "{{\\"apiVersion\\":\\"{version}\\",\\"kind\\":\\"ExecCredential\\",'
        '\\"status\\":{\\"token\\":\\"$TOKEN\\"}}"\n'
    )
    plugin.chmod(0o755)
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    config["users"][0]["user"] = {
        "exec": {"apiVersion": version, "command": "./plugin", "interactiveMode": "Never"}
    }
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(yaml.safe_dump(config))
    async with connected(kubeconfig) as cluster:
        with pytest.raises(Forbidden, match="system:serviceaccount:default:plugged") as caught:
            await cluster.get(Node, "a")
        assert not isinstance(caught.value, Unauthorized)
