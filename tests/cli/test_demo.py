"""`podtide demo` as a person starts it: a real process, real sockets, the real plugin, and others who look on."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cli.conftest import Run
from patience import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "plugin" / "podtide.py"


class Show:
    """A running demonstration."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []

    def until(self, words: str) -> str:
        """The next line that has these words in it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if words in line:
                return line
        raise AssertionError(f"it ended without {words!r}: {self.lines}")

    def rest(self) -> list[str]:
        """What it still says until its end."""
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert err == ""
        return out.splitlines()


@contextmanager
def running(*options: str, **environment: str) -> Iterator[Show]:
    command = [sys.executable, "-u", "-m", "podtide", "demo", *options]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            yield Show(process)
        finally:
            process.kill()


@pytest.mark.slow
def test_it_tells_its_story_to_the_end_and_is_clean() -> None:
    with running("--story", "burst", "--nodes", "3", "--speed", "10") as show:
        lines = show.rest()
        assert show.process.returncode == 0
    assert [line for line in lines if "1 request: 47" in line]
    assert lines[lines.index("The end.") + 1].startswith("  41 pods got an address and ")
    assert lines[-1].startswith("  audit: clean, ")


@pytest.mark.slow
def test_others_can_look_at_it_while_it_runs_and_ctrl_c_ends_it_with_a_summary(podtide: Run) -> None:
    with running("--nodes", "3", "--speed", "0.2", PODTIDE_PLUGIN=str(SCRIPT)) as show:
        where = show.until("podtide check").partition(" check ")[2].split()
        kubeconfig = where[:2]
        show.until("each of node-1, node-2 and node-3 asks for 15 after 0")
        node = podtide("why", "node/node-3", *kubeconfig, "-o", "json")
        overview = podtide("top", *kubeconfig, "-o", "json")
        check = podtide("check", *where)
        show.process.send_signal(signal.SIGINT)
        lines = show.rest()
        assert show.process.returncode == 0
    numbers = json.loads(node.out)["numbers"]
    assert (numbers["demand"], numbers["requested"]) == (2, 15)
    assert sorted(line["name"] for line in json.loads(overview.out)["nodes"]) == [
        "node-1",
        "node-2",
        "node-3",
    ]
    assert (check.status, check.out.partition(":")[0]) == (0, "clean")
    assert any("The plugin is the portable script" in line for line in show.lines)
    assert "Stopped early. So far:" in lines
    assert lines[-1].startswith("  audit: clean, ")


@pytest.mark.slow
def test_the_commands_that_it_prints_work_as_printed() -> None:
    with running("--story", "exact-fit", "--nodes", "2", "--speed", "0.1") as show:
        show.until("Look at it from another terminal")
        printed = [show.until("--kubeconfig").strip() for _ in range(4)]
        show.until("none is left")
        outcomes = {command: as_printed(command) for command in printed if is_installed(command)}
        show.until("One more")
        why = show.until("--kubeconfig").strip()
        outcomes[why] = as_printed(why)
        show.process.send_signal(signal.SIGINT)
        show.rest()
    assert [command for command, outcome in outcomes.items() if outcome.returncode] == []
    top, of_node, check, *kubectl, of_pod = (outcome.stdout for outcome in outcomes.values())
    assert top.startswith("SUBNET")
    assert of_node.startswith("node node-1, where ")
    assert check.startswith("clean: ")
    assert not kubectl or "node-1" in kubectl[0]
    assert of_pod.startswith("pod default/pod-")
    # The demo serves no allocator: what to do is said for the database that the printed command names.
    (database,) = {words for command in outcomes for words in command.split() if words.startswith("sqlite:")}
    assert f"CIDR --database {database}`" in of_pod.splitlines()[0]


@pytest.mark.slow
def test_every_command_that_the_story_of_slices_prints_works_as_printed() -> None:
    """All ten nodes: the network is cut, there is a burst, and a node is replaced."""
    outcomes: list[subprocess.CompletedProcess[str]] = []
    with running("--story", "slices", "--speed", "0.5") as show:
        for _ in range(6):
            printed = show.until("--kubeconfig").strip()
            if is_installed(printed):
                outcomes.append(as_printed(printed))
        show.process.send_signal(signal.SIGINT)
        show.rest()
    assert any("10 of 16 slices have an owner" in line for line in show.lines)
    assert any("=> 35 pods have their addresses by" in line for line in show.lines)
    assert [outcome for outcome in outcomes if outcome.returncode] == []
    assert outcomes[0].stdout.startswith("SUBNET")
    assert all("storage-node-01" in outcome.stdout for outcome in outcomes[4:])


@pytest.mark.slow
def test_the_story_of_slices_ends_clean() -> None:
    with running("--story", "slices", "--nodes", "3", "--speed", "10") as show:
        show.until("slices have an owner")
        lines = show.rest()
        assert show.process.returncode == 0
    assert [line for line in lines if "rests: no other node gets it before its quarantine is over" in line]
    assert lines[-1].startswith("  audit: clean, ")


@pytest.mark.slow
def test_prometheus_finds_the_metrics_of_every_program_by_a_list_of_targets() -> None:
    with running("--nodes", "2", "--speed", "0.2", "--metrics-listen", "127.0.0.1:0") as show:
        targets = show.until("http_sd_configs").partition("'")[2].partition("'")[0]
        show.until("asks for 15 after 0")
        listed = json.loads(fetched(targets))
        told = {
            (each["labels"]["job"], each["labels"].get("node")): fetched(
                f"http://{each['targets'][0]}{each['labels']['__metrics_path__']}"
            )
            for each in listed
        }
        with pytest.raises(HTTPError) as nowhere:
            fetched(targets.replace("targets", "agents/node-9/metrics"))
        show.process.send_signal(signal.SIGINT)
        show.rest()
    assert told.keys() == {
        ("podtide-allocator", None),
        ("podtide-controller", None),
        ("podtide-agent", "node-1"),
        ("podtide-agent", "node-2"),
    }
    assert 'podtide_allocator_capacity{network="blue",subnet="pods"} ' in told["podtide-allocator", None]
    assert "podtide_controller_allocator_reachable 1.0" in told["podtide-controller", None]
    assert "podtide_agent_demand 2.0" in told["podtide-agent", "node-2"]
    assert nowhere.value.code == 404
    assert nowhere.value.read() == b"no agent runs on a node 'node-9': /targets lists those that do"


def fetched(url: str) -> str:
    """What a server on this machine answers."""
    with urlopen(url, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - a URL that the demo printed
        text: str = answer.read().decode()
        return text


def as_printed(command: str) -> "subprocess.CompletedProcess[str]":
    """What a person's shell makes of it."""
    return subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )


def is_installed(command: str) -> bool:
    """Kubectl need not be."""
    return shutil.which(command.split(maxsplit=1)[0]) is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--subnet", "10.0.0.0/28"), "needs 460: give a larger one, such as 10.240.0.0/23"),
        (("--subnet", "10.0.0.0"), "10.0.0.0"),
        (("--story", "none"), "'none' is not one of"),
        (("--nodes", "1"), "--nodes"),
        (("--metrics-listen", "9399"), "--metrics-listen '9399' is not an address to listen on"),
        (
            ("--metrics-listen", "0.0.0.0:9399"),
            "could be reached by others, and the demo serves metrics to every caller",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line(podtide: Run, options: tuple[str, ...], words: str) -> None:
    outcome = podtide("demo", *options)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert words in outcome.err
