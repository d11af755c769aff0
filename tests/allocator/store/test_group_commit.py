"""Calls that wait at the same moment are committed together; each gets its own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from podtide.allocator.store.drivers.group_commit import GroupCommit


class Recorder:
    """Answers each item with its square, takes a second for each group, and refuses 13."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    async def __call__(self, items: Sequence[int]) -> list[object]:
        self.groups.append(list(items))
        await asyncio.sleep(1)
        if 0 in items:
            raise OSError("the disk is gone")
        return [ValueError("13 brings bad luck") if item == 13 else item**2 for item in items]


async def test_those_who_come_while_a_group_is_committed_form_the_next() -> None:
    recorder = Recorder()
    calls = GroupCommit(recorder, largest=10)
    first = asyncio.create_task(calls.submit(1))
    await asyncio.sleep(0.5)
    answers = await asyncio.gather(first, *(calls.submit(item) for item in (2, 3, 4)))
    assert answers == [1, 4, 9, 16]
    assert recorder.groups == [[1], [2, 3, 4]]
    assert calls.is_idle


async def test_a_group_is_never_larger_than_allowed() -> None:
    recorder = Recorder()
    calls = GroupCommit(recorder, largest=3)
    await asyncio.gather(*(calls.submit(item) for item in range(1, 9)))
    assert recorder.groups == [[1, 2, 3], [4, 5, 6], [7, 8]]


async def test_a_refusal_is_for_the_one_and_a_failure_for_all() -> None:
    calls = GroupCommit(Recorder(), largest=3)
    answers = await asyncio.gather(*(calls.submit(item) for item in (2, 13, 4, 0, 5)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, ValueError, int, OSError, OSError]


async def test_whoever_gives_up_the_wait_disturbs_nobody() -> None:
    calls = GroupCommit(Recorder(), largest=3)
    impatient, patient = asyncio.create_task(calls.submit(2)), asyncio.create_task(calls.submit(3))
    await asyncio.sleep(0.1)
    impatient.cancel()
    assert await patient == 9
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_finishing_waits_for_all_that_was_submitted() -> None:
    recorder = Recorder()
    calls = GroupCommit(recorder, largest=1)
    tasks = [asyncio.create_task(calls.submit(item)) for item in (2, 3)]
    await asyncio.sleep(0.1)
    await calls.finish()
    assert [await task for task in tasks] == [4, 9]
    await calls.finish()
