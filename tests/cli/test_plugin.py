"""`kubectl podtide` is the same program under kubectl's name, and shells complete both."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, addresses, served
from cli.drawn_networks import draw_definition
from patience import PATIENCE_SECONDS
from podtide.cli import main
from podtide.cli.output.suggested_commands import own_command
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cli.shell.known_names import complete_networks, complete_nodes, complete_subnets
from repository_files import ROOT

KREW = ROOT / "deploy" / "krew"


def test_the_wheel_installs_both_names() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-podtide"] == scripts["podtide"]


def test_called_by_kubectl_usage_and_advice_name_kubectl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-podtide", "subnet", "list", "--nonsense"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitStatus.BAD_INPUT
    assert "See `kubectl podtide subnet list --help`." in capsys.readouterr().err
    assert own_command() == "kubectl podtide"


def test_krews_script_runs_the_same_program() -> None:
    environment = {**os.environ, "PODTIDE_PYTHON": sys.executable}
    run = subprocess.run(
        [KREW / "kubectl-podtide", "subnet", "-h"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith("Usage: kubectl podtide subnet ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(podtide: Run, shell: str) -> None:
    answer = podtide("completion", shell)
    assert answer.status == ExitStatus.DONE
    assert "_PODTIDE_COMPLETE" in answer.out
    assert "kubectl" not in answer.out


def test_an_unknown_shell_names_those_there_are(podtide: Run) -> None:
    answer = podtide("completion", "powershell")
    assert answer.status == ExitStatus.BAD_INPUT
    assert "'bash', 'zsh', 'fish'" in answer.err


def test_commands_are_completed_without_importing_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PODTIDE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "podtide su")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setattr(sys, "argv", ["podtide"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.splitlines() == ["plain,subnet", "plain,support-bundle"]


async def draw(drawn: DrawnCluster) -> None:
    await drawn.subnet("pods")
    await drawn.config("node-1", requested=1, granted=addresses(1))
    await drawn.node("other")
    await draw_definition(drawn, "cut", "10.7.0.0/24", network_name="storage")


def test_names_are_the_clusters_and_nothing_is_said_where_it_does_not_answer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtide.cli.shell.known_names._SECONDS", PATIENCE_SECONDS)  # the machine may be busy
    command = click.Command("x")
    with served(draw, tmp_path) as kubeconfig:
        context = click.Context(command)
        context.params = {"kubeconfig": kubeconfig, "context": ""}
        option = click.Option(["--node"])
        assert complete_nodes(context, option, "") == ["node-1", "other"]
        assert complete_nodes(context, option, "n") == ["node-1"]
        assert complete_subnets(context, option, "") == ["pods"]
        assert complete_networks(context, option, "s") == ["storage"]
    assert complete_nodes(context, option, "") == []
    assert capfd.readouterr() == ("", "")
