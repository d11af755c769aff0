"""Where there is no real Kubernetes to test on, nobody can overlook it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
A_TEST = "tests/real/test_control_plane.py::test_every_crd_of_podtide_is_established"


def run_without_kubernetes(directory: Path, *arguments: str, ci: str) -> subprocess.CompletedProcess[str]:
    """Run a test on a machine whose set of programs is an empty directory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, A_TEST],
        cwd=ROOT,
        env=environment | {"KUBEBUILDER_ASSETS": str(directory), "CI": ci},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("arguments", [(), ("-n1", "--dist=loadgroup")], ids=["alone", "in a worker"])
def test_a_skip_is_the_last_word_of_the_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    run = run_without_kubernetes(tmp_path, *arguments, ci="")
    assert run.returncode == 0
    headline, sentence = run.stdout.splitlines()[-3:-1]
    assert headline.strip("= ") == "NOT RUN on real Kubernetes"
    assert sentence.startswith(
        f"Skipped: 1. There is no real Kubernetes to run on: KUBEBUILDER_ASSETS is {tmp_path}, which lacks etcd"
    )


def test_in_ci_it_is_a_failure(tmp_path: Path) -> None:
    run = run_without_kubernetes(tmp_path, ci="true")
    assert run.returncode == 1
    assert f"no real Kubernetes to run on: KUBEBUILDER_ASSETS is {tmp_path}" in run.stdout
