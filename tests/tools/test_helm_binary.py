import re
from pathlib import Path

import pytest

from control_plane import go_toolchain
from control_plane.errors import CannotBuild
from helm_binary import HELM, helm

# Builds by writing what it was asked for where the program should be.
GO = """#!/bin/sh
case "$1 $2" in
    "env GOVERSION") echo go1.26.0 ;;
    build*) echo "$*" >> {calls}; while [ "$1" != -o ]; do shift; done; echo built > "$2" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty cache and a Go that leaves a line for each build."""
    commands, calls = tmp_path / "commands", tmp_path / "calls"
    commands.mkdir()
    calls.touch()
    (commands / "go").write_text(GO.format(calls=calls))
    (commands / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(go_toolchain, "USUAL_PLACE", tmp_path / "nowhere")
    return calls


def test_the_version_is_that_of_go_mod_and_helm_is_its_tool() -> None:
    assert re.fullmatch(r"4\.\d+\.\d+", HELM.pins.program)
    assert HELM.pins.go == "1.26.0"
    assert f"\ntool {HELM.package}\n" in (HELM.module / "go.mod").read_text()


def test_helm_is_built_once_outside_the_repository(calls: Path, tmp_path: Path) -> None:
    said: list[str] = []
    program = helm(said.append)
    assert program.is_relative_to(tmp_path / "cache")
    assert helm(said.append) == program
    assert len(calls.read_text().splitlines()) == 1
    version = HELM.pins.program
    assert f"internal/version.version=v{version}" in calls.read_text()
    assert said == [f"building Helm {version} into {program}, once"]


def test_without_go_it_says_what_to_install(calls: Path) -> None:
    (calls.parent / "commands" / "go").unlink()
    with pytest.raises(CannotBuild, match="install any Go"):
        helm()
