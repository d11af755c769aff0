"""`--watch` prints an answer again when it has changed, and ends by a signal."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from allocator.store.databases import HandClock
from cli.drawn_cluster import DrawnCluster, addresses
from patience import PATIENCE_SECONDS
from podtide.allocator.store import InlineExecutor, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import TermClaim
from podtide.cli.output.watching import Watching, print_answer
from podtide.cluster.served import serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.core.errors import RetryError
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import ListenAddress


def watch(answers: list[str | Exception], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What is printed while the answers come one by one; at the last the watch is interrupted."""
    left = list(answers)

    async def produce() -> str:
        await asyncio.sleep(0)
        answer = left.pop(0)
        if not left:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        if isinstance(answer, Exception):
            raise answer
        return answer

    print_answer(produce, Watching(0.001))
    out, err = capsys.readouterr()
    return out, err


def test_only_what_has_changed_is_printed_to_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert watch(["1\n", "1\n", "2\n", "2\n", "1\n"], capsys) == ("1\n2\n1\n", "")


def test_a_terminal_is_redrawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert watch(["1\n", "2\n"], capsys)[0] == "\x1b[H\x1b[2J1\n\x1b[H\x1b[2J2\n"


def test_what_fails_for_a_moment_is_a_warning_and_the_watch_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, err = watch(["1\n", RetryError("no answer"), "2\n"], capsys)
    assert (out, err) == ("1\n2\n", "podtide: warning: as of before: no answer\n")


def test_what_fails_at_first_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RetryError, match="no answer"):
        watch([RetryError("no answer"), "2\n"], capsys)


async def watched(command: str, *, first: str, second: str, change: Callable[[], Awaitable[object]]) -> None:
    """The command, watching in a process of its own, prints the first words, and after the change the second."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podtide", *command.split(), "--watch", "--interval", "50ms"),
        stdout=PIPE,
        stderr=PIPE,
    )
    assert process.stdout
    assert process.stderr

    async def printed(words: str) -> None:
        seen = ""
        while words not in seen:
            line = await process.stdout.readline()  # type: ignore[union-attr]  # it has one
            assert line, f"ended after {seen!r}: {(await process.stderr.read()).decode()}"  # type: ignore[union-attr]  # it has one
            seen += line.decode()
            assert second not in seen or words == second

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await printed(first)
            await change()
            await printed(second)
            process.send_signal(signal.SIGINT)
            await process.stdout.read()
            assert (await process.wait(), await process.stderr.read()) == (0, b"")
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        ("allocator cluster list", "east", "west"),
        ("forecast", "blue/pods", "blue/more"),
        ("subnet history blue pods --since 1h --step 5s -o csv", ",253,", ",506,"),
        ("subnet list", "253", "506"),
        ("subnet show blue pods", "253", "506"),
    ],
)
async def test_what_an_allocator_tells_is_printed_again_when_it_has_changed(
    command: str, first: str, second: str, tmp_path: Path
) -> None:
    clock = HandClock()
    clock.now = SystemClock().wall() - 600
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    async with await open_allocator(url, clock=clock, executor=InlineExecutor(), migrate=True) as allocator:

        async def grow() -> None:
            clock.now += 60
            await allocator.grow_subnet("blue", "pods", ("10.2.0.0/24",), ())
            await allocator.add_subnet(SubnetSpec(network="blue", name="more", cidrs=("10.3.0.0/24",)))
            await allocator.open_term(TermClaim(cluster="west", cluster_uid="uid-west", holder="y"))
            await allocator.sample()

        await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        await allocator.open_term(TermClaim(cluster="east", cluster_uid="uid-east", holder="x"))
        await allocator.sample()
        await watched(f"{command} --database {url}", first=first, second=second, change=grow)


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        ("check", "0 pods with one", "1 pod with one"),
        ("ip 10.1.0.10", "held idle", "default/web"),
        ("node node-a", "0 pods have an address", "1 pod has an address"),
        ("top -o json", '"free": 8', '"free": 7'),
        ("why waiting", "8 free", "7 free"),
    ],
)
async def test_what_a_cluster_tells_is_printed_again_when_it_has_changed(
    command: str, first: str, second: str, tmp_path: Path
) -> None:
    drawn, kubeconfig = DrawnCluster(), tmp_path / "kubeconfig"
    await drawn.subnet()
    await drawn.config("node-a", requested=8, granted=addresses(8))
    await drawn.pod("waiting", "node-a")
    async with serving(drawn.cluster.server, ListenAddress("127.0.0.1", 0)) as url:
        write_kubeconfig(kubeconfig, url)
        await watched(
            f"{command} --kubeconfig {kubeconfig}",
            first=first,
            second=second,
            change=lambda: drawn.pod("web", "node-a", "10.1.0.10"),
        )
    drawn.cluster.close()
