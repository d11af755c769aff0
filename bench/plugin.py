"""How long the CNI plugin takes from its start to its end, beside host-local, which nobody calls slow.

Ours ask a real agent, with its journal on the disk, in a process of its own; the plugin in Rust also asks somebody who
answers without a thought, to tell what it takes itself. All contenders are spawned alike, with the same environment,
taking turns in each round, so that whatever else the machine does happens to all of them.
"""

import json
import os
import socket
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from msgspec import Struct

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from node_with_agent import NodeWithAgent

PART = "plugin"
ROUNDS = 400
WARM_UP_ROUNDS = 10
ADDRESSES = 32

PLUGIN = Path(__file__).parent.parent / "plugin"
RUST = PLUGIN / "target" / "release" / "podtide"
SCRIPT = PLUGIN / "podtide.py"
HOST_LOCAL = Path("/usr/lib/cni/host-local")
ENVIRONMENT = {
    "CNI_NETNS": "/var/run/netns/bench",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/opt/cni/bin",
    "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-1;K8S_POD_UID=uid-1",
}


class Contender(Struct, frozen=True):
    """An IPAM plugin, the file that it gets as its stdin, and whom it asks."""

    name: str
    executable: Path
    configuration: Path
    socket: Path


def measure() -> Iterator[tuple[str, str]]:
    """ADD and DEL of each plugin that is there, and how ours compare with host-local."""
    with NodeWithAgent(addresses=ADDRESSES) as node, _answering_at_once(node.directory) as at_once:
        contenders = _contenders(node, at_once)
        for absent in contenders:
            if not absent.executable.exists():
                yield absent.name, "not measured: not there"
        taken = _milliseconds([each for each in contenders if each.executable.exists()])
    percentiles = {name: quantiles(times, n=100) for name, times in taken.items()}
    for name, each in percentiles.items():
        yield f"{name}: ADD + DEL, p50 / p99", f"{each[49]:.2f} / {each[98]:.2f} ms"
    theirs = percentiles.pop("host-local", None)
    for name, each in percentiles.items():
        if theirs:
            yield f"{name} : host-local", f"{each[49] / theirs[49]:.2f}"


def _contenders(node: NodeWithAgent, at_once: Path) -> list[Contender]:
    ours = _configuration(node.directory / "podtide.json", {"type": "podtide"})
    theirs = _configuration(
        node.directory / "host-local.json",
        {
            "type": "host-local",
            "dataDir": str(node.directory / "host-local"),
            "ranges": [[{"subnet": "10.2.0.0/24"}]],
        },
    )
    return [
        Contender("Rust", RUST, ours, node.socket),
        Contender("Rust, answered at once", RUST, ours, at_once),
        Contender("script", SCRIPT, ours, node.socket),
        Contender("host-local", HOST_LOCAL, theirs, node.socket),
    ]


def _configuration(file: Path, ipam: Mapping[str, object]) -> Path:
    network = {"cniVersion": "1.0.0", "name": "pods", "type": "ptp", "ipam": ipam}
    file.write_text(json.dumps(network))
    return file


@contextmanager
def _answering_at_once(directory: Path) -> Iterator[Path]:
    """A socket on which another process answers everybody alike."""
    path = directory / "at-once.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        answering = get_context("fork").Process(target=_answer, args=(listening,), daemon=True)
        answering.start()
        try:
            yield path
        finally:
            answering.kill()
            answering.join()


def _answer(listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n0 2\n{}")


def _milliseconds(contenders: list[Contender]) -> dict[str, list[float]]:
    """What an ADD and a DEL took together, round by round."""
    taken: dict[str, list[float]] = {each.name: [] for each in contenders}
    turns = deque(contenders)
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        for contender in turns:
            begin = perf_counter()
            _run(contender, "ADD", f"sandbox-{number}")
            _run(contender, "DEL", f"sandbox-{number}")
            if number >= WARM_UP_ROUNDS:
                taken[contender.name].append((perf_counter() - begin) * 1e3)
        turns.rotate()
    return taken


def _run(contender: Contender, verb: str, sandbox: str) -> None:
    process = os.posix_spawn(
        contender.executable,
        [str(contender.executable)],
        ENVIRONMENT
        | {"CNI_COMMAND": verb, "CNI_CONTAINERID": sandbox, "PODTIDE_SOCKET": str(contender.socket)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, str(contender.configuration), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ],
    )
    _, status = os.waitpid(process, 0)
    assert status == 0, f"{contender.name} failed at {verb}"
