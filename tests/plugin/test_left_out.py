"""Where there is no Rust, half of these tests cannot run, and nobody can overlook it."""

import os
import subprocess
import sys

import pytest

from plugin.executables import ROOT

pytestmark = pytest.mark.slow

A_TEST = "tests/plugin/test_executables.py::test_the_plugin_in_rust_needs_no_library_of_the_node"


def run_without_rust(*, ci: str) -> subprocess.CompletedProcess[str]:
    """Run a test on a machine that has no programs at all."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", A_TEST],
        cwd=ROOT,
        env=environment | {"PATH": "/nonexistent", "CI": ci},
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_skip_is_the_last_word_of_the_run() -> None:
    run = run_without_rust(ci="")
    assert run.returncode == 0
    headline, sentence = run.stdout.splitlines()[-3:-1]
    assert headline.strip("= ") == "NOT RUN on plugin in Rust"
    assert sentence.startswith("Skipped: 1. There is no plugin in Rust to run on: cargo is not installed")


def test_in_ci_it_is_a_failure() -> None:
    run = run_without_rust(ci="true")
    assert run.returncode == 1
    assert "no plugin in Rust to run on: cargo is not installed" in run.stdout
