"""`podtide wait` ends at once when it is told to, also as a container's first process, which the kernel shields from signals."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.processes import Program
from left_out import leave_out
from patience import PATIENCE_SECONDS

OWN_PIDS = ("unshare", "--pid", "--fork", "--kill-child")


def lacking() -> str:
    """What this machine lacks to start a process as the first of a container; empty if nothing."""
    try:
        done = subprocess.run([*OWN_PIDS, "true"], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "install unshare (Debian: apt-get install util-linux)"
    return done.stderr and f"run as root ({done.stderr.strip()})"


def child_of(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.mark.real_time
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_as_the_first_process_of_a_container_it_ends_at_the_first_signal(
    number: signal.Signals,
) -> None:
    if lack := lacking():
        leave_out("process namespaces", lack)
    outside = await asyncio.create_subprocess_exec(
        *(*OWN_PIDS, sys.executable, "-m", "podtide", "wait"), env={}, stderr=asyncio.subprocess.PIPE
    )
    try:
        program = Program(outside)
        await program.logged("waiting")
        os.kill(child_of(outside.pid), number)
        assert (await program.logged("stopping"))["signal"] == number.name
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await outside.wait() == 0
    finally:
        if outside.returncode is None:
            outside.kill()
        await outside.communicate()
