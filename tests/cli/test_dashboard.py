"""`podtide dashboard`, and the page of the controller and the demo: where it is served, and what is refused."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, addresses, served
from patience import PATIENCE_SECONDS


async def draw(drawn: DrawnCluster) -> None:
    await drawn.subnet("pods")
    await drawn.config("fine", requested=5, granted=addresses(5))


def test_it_prints_the_pages_address_and_serves_it_until_it_is_stopped(tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        command = [sys.executable, "-m", "podtide", "dashboard", "--kubeconfig", str(kubeconfig)]
        with subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                url = process.stdout.readline().split()[0]
                with urlopen(f"{url}api/waiting", timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own
                    assert json.load(answer) == {"pods": [], "truncated": False}
            finally:
                process.send_signal(signal.SIGINT)
        assert process.returncode == 0


@pytest.mark.parametrize("command", ["dashboard", "controller"])
def test_an_address_that_others_reach_needs_a_token(podtide: Run, command: str, tmp_path: Path) -> None:
    flag = {"dashboard": "--listen", "controller": "--dashboard"}[command]
    more = [
        "--cluster-name=c",
        "--network=n",
        "--subnet=s",
        "--database=sqlite:///x",
        "--networks-namespace=kube-system",
    ]
    outcome = podtide(command, flag, "0.0.0.0:8321", *(more if command == "controller" else []))
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert f"{flag} '0.0.0.0:8321' could be reached by others" in outcome.err
    short = tmp_path / "token"
    short.write_text("secret\n")
    token_flag = {"dashboard": "--page-token-file", "controller": "--dashboard-token-file"}[command]
    outcome = podtide(
        command, flag, "0.0.0.0:8321", token_flag, str(short), *(more if command == "controller" else [])
    )
    assert outcome.status == 2
    assert "has no usable token: write 16 or more letters and digits in one line" in outcome.err
    assert "secret" not in outcome.err


def test_a_cluster_that_is_not_there_is_one_line(podtide: Run, tmp_path: Path) -> None:
    outcome = podtide("dashboard", "--kubeconfig", str(tmp_path / "none"))
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)


@pytest.mark.slow
def test_the_demo_prints_its_pages_address_also_where_the_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "podtide", "demo", "--plain", "--nodes", "2", "--story", "burst"]
        with subprocess.Popen(
            [*command, "--dashboard", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        ) as process:
            try:
                assert process.stdout is not None
                lines = [process.stdout.readline().strip() for _ in range(6)]
                url = next(line for line in lines if line.startswith("http://127.0.0.1:"))
                assert f":{port}/" not in url
                with urlopen(f"{url}api/networks", timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own
                    assert json.load(answer) == {"networks": []}
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate()
