"""`podtide top`: the worst comes first, and what is not known is not made up."""

import asyncio
import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, addresses, served
from patience import PATIENCE_SECONDS
from podtide.cli.top.command import look_once
from podtide.cli.top.drawing import drawing_of
from podtide.cli.top.sources import WatchedCluster
from podtide.cli.top.tables import cidr_tables
from podtide.resources.cluster_subnet import SubnetCidr
from podtide.resources.pod import PodPhase


async def draw(drawn: DrawnCluster) -> None:
    """A subnet that is starved and one at ease; a node that is owed, one that waits, one that is fine."""
    await drawn.subnet("tight", capacity=10, reserved=10, batch=1, buffer=0.0, exhausted=True, starved=True)
    await drawn.subnet("wide", capacity=253, reserved=16)
    await drawn.config("owed", requested=5, granted=addresses(2), subnet="tight", short=True)
    await drawn.config("waits", requested=3, granted=addresses(4, 20), named=addresses(1, 20), subnet="tight")
    await drawn.config("fine", requested=15, granted=addresses(15, 40), subnet="wide")
    await drawn.node("bare")
    for number, ip in enumerate(addresses(2)):
        await drawn.pod(f"owed-{number}", "owed", ip)
    await drawn.pod("waits-1", "waits")
    await drawn.pod("waits-2", "waits", "10.1.0.21")
    await drawn.pod("done", "waits", "10.1.0.22", phase=PodPhase.FAILED)
    await drawn.pod("fine-1", "fine", "10.1.0.40")


async def test_the_worst_comes_first() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    overview = await look_once(drawn.cluster)
    assert [line.name for line in overview.subnets] == ["tight", "wide"]
    assert [line.name for line in overview.nodes] == ["owed", "waits", "fine"]


async def test_what_a_node_gives_back_is_not_free_and_what_has_ended_needs_nothing() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    waits = (await look_once(drawn.cluster)).nodes[1]
    assert (waits.held, waits.free, waits.pods_with_address, waits.pods_without_address) == (4, 2, 1, 1)
    assert waits.owed == 0


async def test_a_subnet_without_a_cluster_subnet_has_no_numbers_but_may_be_exhausted() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.subnet_state(exhausted=True)
    (line,) = (await look_once(drawn.cluster)).subnets
    assert (line.capacity, line.batch, line.exhausted, line.nodes) == (None, None, True, 1)


def test_it_prints_tables_once_where_there_is_no_terminal(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        text = podtide("top", "--kubeconfig", str(kubeconfig))
        document = podtide("top", "--kubeconfig", str(kubeconfig), "-o", "json")
    assert text.out.splitlines() == [
        "SUBNET  CIDR         CAPACITY  RESERVED  FREE  USED  BATCH  BUFFER  STATE    NODES  OWED",
        "tight   10.1.0.0/24  10        10        0     100%  1      0       starved  2      3",
        "wide    10.1.0.0/24  253       16        237   6%    16     0.5     ok       1      0",
        "",
        "NODE   SUBNET  REQUESTED  HELD  FREE  PODS  WAITING  OWED",
        "owed   tight   5          2     0     2     0        3",
        "waits  tight   3          4     2     1     1        0",
        "fine   wide    15         15    14    1     0        0",
    ]
    assert json.loads(document.out)["nodes"][0]["owed"] == 3


async def test_the_ranges_of_a_subnet_that_has_several_are_shown_with_their_gateways() -> None:
    drawn = DrawnCluster()
    cidrs = [
        SubnetCidr(cidr="10.1.0.0/24", gateway="10.1.0.1", draining=True),
        SubnetCidr(cidr="10.9.0.0/28"),
    ]
    await drawn.subnet("grown", cidrs=cidrs)
    await drawn.subnet("small", cidrs=cidrs[:1])
    overview = await look_once(drawn.cluster)
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(drawing_of(overview, ""))
    shown = [
        "SUBNET  CIDR         GATEWAY   STATE",
        "grown   10.1.0.0/24  10.1.0.1  draining",
        "grown   10.9.0.0/28  -         ok",
    ]
    assert [line.rstrip() for line in console.export_text().splitlines()][4:7] == shown
    (table,) = cidr_tables(overview)
    assert [line.rstrip() for line in table.lines()] == shown


def test_a_cluster_nobody_named_is_one_line(podtide: Run, tmp_path: Path) -> None:
    outcome = podtide("top", "--kubeconfig", str(tmp_path / "none"))
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)


async def test_what_is_followed_is_what_is_there_now() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    followed = WatchedCluster(drawn.cluster)
    assert followed.overview() is None
    following = asyncio.create_task(followed.run())
    await asyncio.sleep(1)
    assert followed.overview() == await look_once(drawn.cluster)
    await drawn.pod("late", "fine")
    await asyncio.sleep(1)
    assert followed.overview() == await look_once(drawn.cluster)
    assert followed.complaint() == ""
    following.cancel()


async def test_the_drawing_shows_both_tables_and_what_went_wrong() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(drawing_of(await look_once(drawn.cluster), "no answer", console.width))
    lines = console.export_text().splitlines()
    assert lines[0] == "no answer"
    assert lines[2].split()[:3] == ["tight", "10.1.0.0/24", "10"]
    assert lines[6].split()[0] == "owed"


def test_on_a_terminal_it_draws_until_it_is_stopped(tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig, terminal() as (ours, theirs):
        command = [sys.executable, "-m", "podtide", "top", "--kubeconfig", str(kubeconfig), "-n", "50ms"]
        # The terminal's width is its own: what says otherwise is about the one that the tests run on.
        environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
        with subprocess.Popen(
            command, stdout=theirs, stdin=theirs, env={**environment, "TERM": "xterm"}
        ) as process:
            try:
                seen = b""
                while b"starved" not in seen:
                    seen += os.read(ours, 4096)
                process.send_signal(signal.SIGINT)
                threading.Thread(target=read_all, args=(ours,), daemon=True).start()
                assert process.wait(PATIENCE_SECONDS) == 0
            finally:
                process.kill()


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal, wide enough for the tables: what is read from the first is what the second was told."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(theirs)
        os.close(ours)


def read_all(descriptor: int) -> None:
    with suppress(OSError):
        while os.read(descriptor, 4096):
            pass
