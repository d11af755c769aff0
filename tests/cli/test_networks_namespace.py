"""Where the pools of secondary networks are when no option says it: in the namespace of the kubeconfig's context."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Run
from cli.drawn_cluster import served
from cli.test_check import draw_networks
from podtide.cli.connections.cluster import ClusterConnection
from podtide.cluster.kubernetes.finding import in_cluster_access
from podtide.cluster.served.kubeconfig import write_kubeconfig

CONTROLLER = (
    *("controller", "--cluster-name", "east", "--network", "blue", "--subnet", "pods"),
    *("--allocator", "http://127.0.0.1:1"),
)


class Enough(Exception):
    """The program has been put together, which is all that is to be seen here."""


def name_namespace(kubeconfig: Path, namespace: str) -> None:
    content = yaml.safe_load(kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(content))


@pytest.fixture
def made_with(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The namespaces that programs were put together with."""
    namespaces: list[str] = []

    def note_agents(*_: Any, options: Any, **__: Any) -> None:
        namespaces.append(options.networks_namespace)
        raise Enough

    def note_controllers(_cluster: object, _allocator: object, options: Any, **_: Any) -> None:
        namespaces.append(options.networks.namespace)
        raise Enough

    monkeypatch.setattr("podtide.cli.programs.agent.NodeAgent", note_agents)
    monkeypatch.setattr("podtide.cli.programs.controller.Controller", note_controllers)
    return namespaces


@pytest.mark.parametrize(
    "program", [("agent", "--node-name", "node-1"), CONTROLLER], ids=["agent", "controller"]
)
@pytest.mark.parametrize(
    ("contexts", "options", "expected"),
    [
        ("", (), "kube-system"),
        ("nets", (), "nets"),
        ("nets", ("--networks-namespace", "elsewhere"), "elsewhere"),
    ],
)
def test_a_program_keeps_pools_in_the_named_namespace_else_the_contexts_else_kube_system(  # noqa: PLR0917
    podtide: Run,
    tmp_path: Path,
    made_with: list[str],
    program: tuple[str, ...],
    contexts: str,
    options: tuple[str, ...],
    expected: str,
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1")
    name_namespace(kubeconfig, contexts)
    where = ("--state-directory", str(tmp_path / "state")) if program[0] == "agent" else ()
    podtide(*program, "--kubeconfig", str(kubeconfig), *where, *options)
    assert made_with == [expected]


def test_check_and_migrate_look_where_the_programs_do(podtide: Run, tmp_path: Path) -> None:
    with served(draw_networks, tmp_path) as kubeconfig:
        name_namespace(kubeconfig, "nets")
        checked = podtide("check", "--kubeconfig", str(kubeconfig))
        migrated = podtide("migrate", "whereabouts", "--dry-run", "--kubeconfig", str(kubeconfig))
    assert "2 secondary networks with 2 addresses in use" in checked.out
    assert migrated.err.startswith(
        "podtide: reading definitions and pods, and reservations and pools in namespace nets\n"
    )


def test_a_pods_own_namespace_says_where_podtide_runs_and_not_where_pools_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("token", "t-1"), ("namespace", "podtide-system")):
        (tmp_path / name).write_text(content)
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster_access(environment, tmp_path)
    monkeypatch.setattr("podtide.cluster.kubernetes.find_access", lambda **_: access)
    there = ClusterConnection(kubeconfig=None, context="")
    assert there.namespace() == "podtide-system"
    assert there.networks_namespace() == "kube-system"
