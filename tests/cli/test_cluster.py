"""`podtide cluster` as a person starts and stops it."""

import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from cli.conftest import Run
from patience import PATIENCE_SECONDS
from podtide.runtime.log_rate import COMPLAINTS

pytestmark = pytest.mark.slow

NAMESPACES = "/api/v1/namespaces"


class Server:
    """A running `podtide cluster`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.url = self.next_line().split()[5].rstrip(",")

    def next_line(self) -> str:
        """What it says next."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    @contextmanager
    def asked(self, method: str, path: str, body: object = None) -> Iterator[HTTPResponse]:
        """The answer to a request, to be read."""
        with closing(
            HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENCE_SECONDS)
        ) as connection:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                yield response

    def namespaces(self) -> list[str]:
        """The names of those there are."""
        with self.asked("GET", NAMESPACES) as response:
            return [item["metadata"]["name"] for item in json.load(response)["items"]]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to stop, and see that it does so in peace."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert (self.process.returncode, out, err) == (0, "", "")


@contextmanager
def running(*options: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "podtide", "cluster", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_for_what_and_stops_when_told(number: signal.Signals) -> None:
    with running("--listen", "127.0.0.1:0") as server:
        assert server.next_line() == "podtide: no authentication: for demos, tests and laptops\n"
        assert server.next_line() == f"podtide: try: kubectl --server {server.url} get namespaces\n"
        assert server.namespaces() == ["default", "kube-system"]
        server.stop(number)


def test_a_watch_ends_in_good_order_when_it_stops() -> None:
    with running() as server:
        with server.asked("GET", f"{NAMESPACES}?watch=true") as watch:
            assert json.loads(watch.readline())["type"] == "ADDED"
            server.process.send_signal(signal.SIGTERM)
            assert [json.loads(line)["type"] for line in watch] == ["ADDED"]
        assert server.process.wait(PATIENCE_SECONDS) == 0


def test_a_file_outlives_the_process(tmp_path: Path) -> None:
    options = ("--file", str(tmp_path / "state.db"))
    with running(*options) as server:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
        with server.asked("POST", NAMESPACES, body) as made:
            assert made.status == 201
    with running(*options) as server:
        assert server.namespaces() == ["default", "kube-system", "mine"]


def test_a_file_belongs_to_one_process_at_a_time(tmp_path: Path, podtide: Run) -> None:
    file = tmp_path / "state.db"
    with running("--file", str(file)):
        outcome = podtide("cluster", "--file", str(file))
    assert outcome.status == 1
    assert (
        outcome.err == f"podtide: {file} is in use by another process: stop that one, or name another file\n"
    )


def test_the_kubeconfig_it_writes_leads_to_it(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with running("--kubeconfig", str(path)) as server:
        server.next_line()
        tip = server.next_line()
        assert tip == f"podtide: try: kubectl --kubeconfig {path} get namespaces\n"
        assert server.url in path.read_text()
        if shutil.which("kubectl"):
            subprocess.run(["/bin/sh", "-c", tip.partition("try: ")[2]], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "0.0.0.0:8001"), "could be reached by others"),
        (("--listen", "8001"), "no address to listen on"),
        (("--listen", "[::1"), "no address to listen on"),
        (("--file", "/nowhere/state.db"), "cannot be opened"),
        (("--file", ""), "the path is empty"),
        (("--kubeconfig", ""), "the path is empty"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_status_2(
    podtide: Run, options: tuple[str, ...], words: str
) -> None:
    outcome = podtide("cluster", *options)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert words in outcome.err


def test_a_damaged_file_is_one_line_and_exit_status_2(podtide: Run, tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with running("--file", str(file)) as server:
        assert server.namespaces()
        server.process.kill()
        server.process.wait(PATIENCE_SECONDS)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM last")
    outcome = podtide("cluster", "--file", str(file))
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith(f"podtide: {file} is damaged: ")


def test_a_port_in_use_is_one_line(podtide: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = podtide("cluster", "--listen", f"127.0.0.1:{port}")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.startswith(f"podtide: cannot listen on 127.0.0.1:{port} (")


def test_a_kubeconfig_of_somebody_elses_is_left_alone(podtide: Run, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("mine")
    outcome = podtide("cluster", "--kubeconfig", str(path))
    assert (outcome.status, path.read_text()) == (2, "mine")


def test_what_is_no_http_costs_a_bounded_number_of_lines() -> None:
    with running() as server:
        for _ in range(2):
            server.next_line()
        place = server.url.removeprefix("http://").split(":")
        for _ in range(2 * COMPLAINTS.burst):
            with socket.create_connection((place[0], int(place[1])), timeout=PATIENCE_SECONDS) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\n: nameless\r\n\r\n")
                connection.recv(1)
        server.process.terminate()
        _, said = server.process.communicate(timeout=PATIENCE_SECONDS)
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line["level"] for line in lines} == {"warning"}
    assert COMPLAINTS.burst <= len(lines) < 2 * COMPLAINTS.burst
