"""The soak keeps the seeds that fail, and its exit status says that there were any."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from mutants.breaking import PACKAGE, break_copy
from mutants.catalogue import MUTANTS

SOAK = Path(__file__).parents[2] / "tools" / "soak.py"
A_SECOND = "0.0167"


def soak(package_in: Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Begin with a seed whose run is small: two nodes, half a minute, no secondary networks."""
    return subprocess.run(
        [sys.executable, SOAK, "--minutes", A_SECOND, "--first", "0", "--workers", "1"],
        env={**os.environ, "PYTHONPATH": str(package_in)},
        cwd=cwd,
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )


def test_a_seed_that_fails_is_kept_in_the_file_with_what_broke(tmp_path: Path) -> None:
    [mutant] = [each for each in MUTANTS if each.name == "grant-outside-the-subnet"]
    break_copy(mutant, PACKAGE, tmp_path)
    answer = soak(tmp_path, tmp_path)
    assert answer.returncode == 1
    first, *_ = (tmp_path / ".cache" / "soak-failures.txt").read_text().splitlines()
    assert first.startswith("podtide simulate --seed 0 --nodes 2 --minutes 0.5  # invariant 2: ")
    assert "seed 0: invariant 2: " in answer.stdout
    assert re.search(r"\d+ batch moves, \d+\.\d per simulated hour", answer.stdout)
    assert "failing seeds are kept in .cache/soak-failures.txt" in answer.stdout


@pytest.mark.slow
def test_an_exception_in_a_run_is_kept_with_its_seed_as_well(tmp_path: Path) -> None:
    churn = copytree(PACKAGE, tmp_path / PACKAGE.name) / "simulation" / "run" / "churn.py"
    churn.write_text(f"{churn.read_text()}\n\nChurn.__init__ = lambda *_rest, **_named: {{}}['pods']\n")
    answer = soak(tmp_path, tmp_path)
    assert answer.returncode == 1
    first, *_ = (tmp_path / ".cache" / "soak-failures.txt").read_text().splitlines()
    assert first.startswith("podtide simulate --seed 0 --nodes 2 --minutes 0.5  # ended by KeyError in ")


@pytest.mark.slow
def test_seeds_that_hold_leave_no_file_and_end_well(tmp_path: Path) -> None:
    answer = soak(PACKAGE.parent, tmp_path)
    assert answer.returncode == 0
    assert " 0 violations" in answer.stdout
    assert not (tmp_path / ".cache").exists()
