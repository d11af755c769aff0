import asyncio
import io
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from podtide.cluster.port import Conflict, NotFound, Throttled, Unavailable
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.core.errors import InvalidConfig, RetryError, StopError
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.virtual_time import Deadlock


class Bench:
    """Workers on a queue, whose keys do as told: an error is raised, anything else is answered."""

    def __init__(self, *, seed: int = 1) -> None:
        self.queue = WorkQueue[str]()
        self.lines = io.StringIO()
        clock = LoopClock()
        log = make_logger(self.lines, clock, level="debug")
        self.workers = Workers(
            self.queue, runtime=Runtime(clock=clock, randomness=seeded_randomness(seed), log=log)
        )
        self.outcomes: dict[str, list[Any]] = {}
        self.attempts: list[tuple[float, str]] = []

    async def reconcile(self, key: str) -> float | None:
        self.attempts.append((asyncio.get_running_loop().time(), key))
        planned = self.outcomes.get(key, [])
        outcome = planned.pop(0) if planned else None
        if isinstance(outcome, BaseException):
            raise outcome
        again_in_seconds: float | None = outcome
        return again_in_seconds

    async def run_for(self, seconds: float, *, count: int = 1) -> None:
        running = asyncio.create_task(self.workers.run(self.reconcile, count=count))
        await asyncio.sleep(seconds)
        await end(running)

    def times(self, key: str) -> list[float]:
        return [at for at, name in self.attempts if name == key]

    def log(self, level: str) -> list[dict[str, Any]]:
        records = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [record for record in records if record["level"] == level]


async def end(running: "asyncio.Task[None]") -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_key_is_looked_at_again_when_it_asks_to_be() -> None:
    bench = Bench()
    bench.outcomes["a"] = [10, 20]
    bench.queue.add("a")
    await bench.run_for(100)
    assert bench.times("a") == pytest.approx([0, 10, 30])
    assert bench.workers.retries == 0


async def test_a_transient_failure_is_retried_ever_more_seldom_up_to_a_minute() -> None:
    bench = Bench()
    bench.outcomes["a"] = [RetryError("not now")] * 1000
    bench.queue.add("a")
    await bench.run_for(3600)
    gaps = [later - sooner for sooner, later in zip(bench.times("a"), bench.times("a")[1:], strict=False)]
    assert all(0.5 <= gap <= min(60, 0.5 * 2 ** (number + 1)) + 1e-6 for number, gap in enumerate(gaps))
    assert max(gaps) > 40
    assert bench.workers.retries == len(bench.times("a"))


async def test_success_forgets_the_failures() -> None:
    bench = Bench()
    bench.outcomes["a"] = [RetryError("not now")] * 12 + [1000.0, RetryError("not now")]
    bench.queue.add("a")
    await bench.run_for(3000)
    assert 0.5 <= bench.times("a")[-1] - bench.times("a")[-2] <= 1.0


async def test_after_a_conflict_a_key_is_looked_at_soon_and_quietly() -> None:
    bench = Bench()
    bench.outcomes["a"] = [Conflict("somebody was quicker")] * 3
    bench.queue.add("a")
    await bench.run_for(100)
    assert len(bench.times("a")) == 4
    assert bench.times("a")[-1] < 0.5
    assert bench.log("warning") == []


async def test_two_writers_who_keep_conflicting_slow_down() -> None:
    bench = Bench()
    bench.outcomes["a"] = [Conflict("somebody was quicker")] * 10_000
    bench.queue.add("a")
    await bench.run_for(600)
    assert len(bench.times("a")) < 600


async def test_what_somebody_must_fix_is_said_once_and_looked_at_seldom() -> None:
    bench = Bench()
    bench.outcomes["a"] = [InvalidConfig("slice is larger than its range")] * 1000
    bench.queue.add("a")
    await bench.run_for(3600)
    assert 6 <= len(bench.times("a")) <= 30
    assert [record["error"] for record in bench.log("warning")] == ["slice is larger than its range"]


async def test_what_was_fixed_is_looked_at_at_once() -> None:
    bench = Bench()
    bench.outcomes["a"] = [InvalidConfig("slice is larger than its range")]
    bench.queue.add("a")
    asyncio.get_running_loop().call_later(5, bench.queue.add, "a")
    await bench.run_for(10)
    assert bench.times("a") == pytest.approx([0, 5])


async def test_another_complaint_about_the_same_key_is_said_too() -> None:
    bench = Bench()
    bench.outcomes["a"] = [InvalidConfig("no range"), InvalidConfig("no range"), NotFound("no such pool")]
    bench.queue.add("a")
    await bench.run_for(3600)
    assert [record["error"] for record in bench.log("warning")] == ["no range", "no such pool"]


async def test_a_mistake_of_ours_is_logged_with_its_traceback_and_retried() -> None:
    bench = Bench()
    bench.outcomes["a"] = [ZeroDivisionError("oh")]
    bench.queue.add("a")
    await bench.run_for(10)
    assert len(bench.times("a")) == 2
    [record] = bench.log("error")
    assert record["key"] == "a"
    assert "Traceback" in record["exception"]
    assert record["exception"].endswith("ZeroDivisionError: oh")


async def test_awaiting_something_that_was_cancelled_does_not_cost_a_worker() -> None:
    bench = Bench()
    bench.outcomes["a"] = [asyncio.CancelledError()]
    bench.queue.add("a")
    await bench.run_for(10)
    assert len(bench.times("a")) == 2


async def test_a_broken_invariant_stops_every_worker_and_reaches_the_caller() -> None:
    bench = Bench()
    bench.outcomes["a"] = [StopError("one address, two pods")]
    bench.queue.add("a")
    with pytest.raises(StopError, match="one address, two pods"):
        await bench.workers.run(bench.reconcile, count=3)
    bench.queue.add("b")
    await asyncio.sleep(10)
    assert bench.times("b") == []


async def test_cancelled_workers_wait_until_the_work_in_hand_has_ended() -> None:
    bench = Bench()
    ended = []

    async def reconcile(_key: str) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(3)
            ended.append(asyncio.get_running_loop().time())

    bench.queue.add("a")
    running = asyncio.create_task(bench.workers.run(reconcile))
    await asyncio.sleep(5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [pytest.approx(8)]


@pytest.mark.parametrize("error", [Unavailable("no answer"), Throttled("too many", retry_after_seconds=5)])
async def test_a_server_that_is_down_is_not_asked_by_every_key(error: Exception) -> None:
    bench = Bench()
    for number in range(500):
        bench.outcomes[f"node-{number}"] = [error] * 1000
        bench.queue.add(f"node-{number}")
    await bench.run_for(1800, count=4)
    after_the_first_round = [at for at, _ in bench.attempts if at > 60]
    assert len(after_the_first_round) / 29 < 25
    per_minute = Counter(int(at // 60) for at in after_the_first_round)
    assert max(per_minute.values()) < 60


async def test_when_the_server_is_back_every_key_is_done_within_twelve_seconds() -> None:
    bench = Bench()
    back_at = 900

    async def reconcile(key: str) -> None:
        await bench.reconcile(key)
        if asyncio.get_running_loop().time() < back_at:
            raise Unavailable("no answer")

    for number in range(500):
        bench.queue.add(f"node-{number}")
    running = asyncio.create_task(bench.workers.run(reconcile, count=4))
    await asyncio.sleep(back_at + 12)
    await end(running)
    assert len({key for at, key in bench.attempts if at >= back_at}) == 500


async def test_a_short_hiccup_of_the_server_costs_two_seconds_however_many_workers_saw_it() -> None:
    bench = Bench()
    for key in "abcdefgh":
        bench.outcomes[key] = [Unavailable("reset")]
        bench.queue.add(key)
    await bench.run_for(10, count=8)
    assert all(len(bench.times(key)) == 2 and bench.times(key)[1] <= 2.1 for key in "abcdefgh")


async def test_a_key_that_did_not_fail_is_not_held_up_by_those_that_did() -> None:
    bench = Bench()
    bench.outcomes["a"] = [Unavailable("no answer")] * 1000
    bench.queue.add("a")
    loop = asyncio.get_running_loop()
    for moment in range(100, 200):
        loop.call_later(moment, bench.queue.add, f"key-{moment}")
    await bench.run_for(300)
    assert all(bench.times(f"key-{moment}") == [pytest.approx(moment)] for moment in range(100, 200))


def test_idle_workers_set_no_timer() -> None:
    bench = Bench()

    async def wait_for_work() -> None:
        bench.outcomes["a"] = [RetryError("not now"), 5.0]
        bench.queue.add("a")
        await bench.workers.run(bench.reconcile, count=3)

    with pytest.raises(Deadlock):
        virtual_time.run(wait_for_work())
    assert len(bench.times("a")) == 3


failures = st.sampled_from(
    [None, 1.0, RetryError("r"), Conflict("c"), Unavailable("u"), InvalidConfig("f"), RuntimeError("x")]
)
plans = st.dictionaries(st.sampled_from("abcd"), st.lists(failures, max_size=5), min_size=1)


@examples(60)
@given(
    plans, st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abcd")), max_size=20), st.integers(1, 4)
)
def test_whatever_fails_every_key_ends_in_a_success_after_its_last_change(
    plan: dict[str, list[Any]], changes: list[tuple[int, str]], count: int
) -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.outcomes = plan
        at_work: set[str] = set()
        succeeded: dict[str, float] = {}

        async def reconcile(key: str) -> float | None:
            assert key not in at_work
            at_work.add(key)
            began = asyncio.get_running_loop().time()
            try:
                await asyncio.sleep(0.7)
                again = await bench.reconcile(key)
            finally:
                at_work.remove(key)
            succeeded[key] = began
            return again

        loop = asyncio.get_running_loop()
        for moment, key in changes:
            loop.call_later(moment, bench.queue.add, key)
        running = asyncio.create_task(bench.workers.run(reconcile, count=count))
        await asyncio.sleep(10_000)
        await end(running)
        for moment, key in changes:
            assert succeeded[key] >= moment - 1e-9

    virtual_time.run(scenario())
