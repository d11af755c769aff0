"""Tests are dealt out by groups: pytest is run on a small suite that has some."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SUITE = """
import os
import pytest

@pytest.mark.parametrize("number", range(12))
def test_alone(number):
    print("alone ran")

@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("group", ["red", "blue"])
def test_grouped(group, number):
    print(f"{group} on {os.environ['PYTEST_XDIST_WORKER']}")
"""
GROUPS = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if "group" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group(item.callspec.params["group"]))
"""


@pytest.mark.slow
def test_a_group_stays_on_one_worker_and_every_test_is_run_once(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(GROUPS)
    options = "-p dealing_out -n auto --dist loadgroup -rP"
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split()],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "28 passed" in ran.stdout, ran.stdout
    assert f"{len(os.sched_getaffinity(0)) + 1} workers" in ran.stdout, ran.stdout
    assert ran.stdout.count("alone ran") == 12
    workers = defaultdict(list)
    for group, worker in re.findall(r"^(red|blue) on (\w+)$", ran.stdout, flags=re.MULTILINE):
        workers[group].append(worker)
    assert {group: (len(names), len(set(names))) for group, names in workers.items()} == {
        "red": (8, 1),
        "blue": (8, 1),
    }
