"""Helm at the version that tools/helm pins, for tests of the chart and for the manifests that are made with it."""

import sys
from pathlib import Path

from control_plane.errors import CannotBuild
from control_plane.go_toolchain import FindGo, Say, find_go, find_or_install_go
from go_program import GoProgram, executable

HELM = GoProgram(
    name="Helm",
    file="helm",
    module=Path(__file__).parent / "helm",
    source="helm.sh/helm/v4",
    package="helm.sh/helm/v4/cmd/helm",
    version_variable="helm.sh/helm/v4/internal/version.version",
)


def say_on_stderr(line: str) -> None:
    """Tell a person; a log gets the same lines."""
    print(f"helm: {line}", file=sys.stderr, flush=True)


def helm(say: Say = say_on_stderr, find: FindGo = find_go) -> Path:
    """The executable, built first if it is not there, which takes minutes. CannotBuild says what that lacks."""
    return executable(HELM, say, find)


if __name__ == "__main__":
    try:
        helm(find=find_or_install_go)
    except CannotBuild as lack:
        say_on_stderr(str(lack))
        sys.exit(1)
