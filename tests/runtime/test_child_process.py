"""Child processes are ended, whether or not they have ended by themselves, and nothing is said of it."""

import asyncio
import signal

import pytest

from podtide.runtime.child_process import kill

pytestmark = pytest.mark.real_time
CHILDREN = 50


async def test_a_process_that_runs_is_killed() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "300")
    await kill(process)
    assert process.returncode == -signal.SIGKILL


async def test_a_process_that_has_ended_is_left_alone() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    await kill(process)
    assert process.returncode == 0


async def test_of_processes_that_end_at_that_moment_none_loses_its_exit_status(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def one() -> int | None:
        process = await asyncio.create_subprocess_exec("true")
        await asyncio.sleep(0)
        await kill(process)
        return process.returncode

    ends = await asyncio.gather(*(one() for _ in range(CHILDREN)))
    assert set(ends) <= {0, -signal.SIGKILL}
    assert caplog.records == []
