"""A process killed in the middle of a load, at any instant, has lost nothing that it answered, and broken nothing."""

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from allocator.store import load, minutes
from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import spec, wish
from podtide.allocator.errors import NoSuchContainer, StaleWish, SubnetFull
from podtide.allocator.store import DatabaseAllocator, StoreRules, open_allocator
from podtide.allocator.store.drivers.postgresql import connect
from podtide.resources.timestamps import to_time

ROUNDS = 50
LIVES = 20
RULES = StoreRules(cooldown_seconds=0.02, quarantine_seconds=0.05)


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_kill_9_at_fifty_instants_loses_no_answer_and_breaks_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = (
        f"sqlite:///{tmp_path}/allocator.db"
        if kind == "sqlite"
        else request.getfixturevalue("postgresql_url")
    )
    database = DatabaseUnderTest(url)
    async with database.allocator(RULES) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/20"))
    randomness = Random(7)
    for round_ in range(ROUNDS):
        answered = killed_in_the_middle(url, round_, randomness.uniform(0, 0.03))
        database.clock.now = time.time()
        async with database.replica(RULES) as allocator:
            assert await allocator.audit() == ()
            await nothing_answered_is_lost(allocator, answered)
            await retries_end_in_the_right_state(allocator, max(answered))
            assert await allocator.audit() == ()


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_kill_9_loses_no_minute_of_the_history_and_none_counts_twice(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = (
        f"sqlite:///{tmp_path}/allocator.db"
        if kind == "sqlite"
        else request.getfixturevalue("postgresql_url")
    )
    database = DatabaseUnderTest(url)
    database.clock.now = minutes.MIDNIGHT
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/20"))
    randomness, last = Random(7), -1
    for _life in range(LIVES):
        # Of the minute after the last answer it is not known whether it was written: it is lived again.
        last = max(killed(minutes.run, (url, last + 1), randomness.uniform(0, 0.03)))
    last += 1
    database.clock.now = minutes.MIDNIGHT + 60 * last
    async with database.replica() as allocator:
        await minutes.live(allocator, last)
        lived = await allocator.usage_history("blue", "pods", since=0, until=9e9, step="1m")
        (day,) = await allocator.usage_history("blue", "pods", since=0, until=9e9, step="1d")
    assert [row.timestamp for row in lived] == [
        to_time(minutes.MIDNIGHT + 60 * minute) for minute in range(last + 1)
    ]
    assert [(row.observed_seconds, row.reserved_mean, row.demand) for row in lived[:-1]] == [
        (60, 1 + minute, minute) for minute in range(last)
    ]
    assert day.observed_seconds == 60 * last
    assert day.reserved_mean == sum(1 + minute for minute in range(last)) / last
    # Each reading counts for the minute before it: the first one, of no pods, for none.
    assert day.demand_mean == sum(range(1, last + 1)) / last


def killed_in_the_middle(url: str, round_: int, seconds: float) -> dict[str, int | None]:
    """The last answers that a load got: versions by id, None for a DELETE."""
    return dict(killed(load.run, (url, round_), seconds))


def killed(target: Callable[..., None], arguments: tuple[object, ...], seconds: float) -> list[Any]:
    """All that a program told before it was killed, so long after it had told the first."""
    context = multiprocessing.get_context("forkserver")
    # What is heavy is imported once: children of the fork server begin with it.
    context.set_forkserver_preload(["pytest", open_allocator.__module__, connect.__module__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, theirs))
    process.start()
    theirs.close()
    told = [ours.recv()]  # it has begun
    time.sleep(seconds)
    process.kill()
    process.join()
    try:
        while True:
            told.append(ours.recv())
    except (EOFError, OSError):  # it was killed while it told
        ours.close()
    return told


async def nothing_answered_is_lost(allocator: DatabaseAllocator, answered: dict[str, int | None]) -> None:
    for id_, version in answered.items():
        try:
            container = await allocator.get_container(id_, cluster="east")
        except NoSuchContainer:
            # It was deleted, and the answer to that may have been on its way.
            with pytest.raises(StaleWish):
                await allocator.put_container(wish(id_, 1, 99))
            continue
        assert version is not None
        assert container.version >= version


async def retries_end_in_the_right_state(allocator: DatabaseAllocator, id_: str) -> None:
    """Whatever became of its last call, the client asks again, and has what it asked for."""
    try:
        container = await allocator.put_container(wish(id_, 30, 99))
    except (StaleWish, SubnetFull):
        return
    assert len(container.addresses) + container.owed == max(30, len(container.addresses))
    assert await allocator.put_container(wish(id_, 30, 99)) == container
