import asyncio
import io
import json

from podtide.runtime.clock import LoopClock
from podtide.runtime.log_rate import COMPLAINTS, Budget, LogRate
from podtide.runtime.logging import make_logger

BUDGET = Budget(burst=3, per_second=0.5)


def test_a_burst_is_written_whole_and_then_so_many_lines_a_second() -> None:
    rate = LogRate()
    assert [rate.spend("call", BUDGET, 0.0) for _ in range(5)] == [0, 0, 0, None, None]
    assert [rate.spend("call", BUDGET, 2.0) for _ in range(2)] == [2, None]
    assert [rate.spend("call", BUDGET, 1000.0) for _ in range(4)] == [1, 0, 0, None]


def test_what_floods_leaves_room_for_the_rest() -> None:
    rate = LogRate()
    for _ in range(100):
        rate.spend("flood", BUDGET, 0.0)
    assert rate.spend("other", BUDGET, 0.0) == 0


def test_events_without_end_share_a_budget() -> None:
    rate = LogRate()
    written = [rate.spend(f"event {number}", BUDGET, 0.0) for number in range(10_000)]
    assert len([line for line in written if line is not None]) < 600


async def test_a_program_writes_no_more_than_its_rate_allows_and_says_what_it_left_out() -> None:
    lines = io.StringIO()
    log = make_logger(lines, LoopClock(), rate=LogRate())
    for _ in range(10_000):
        log.warning("cannot")
    log.info("cannot")  # what is no complaint has a budget of its own
    await asyncio.sleep(10)
    log.warning("cannot")
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert len(written) == COMPLAINTS.burst + 2
    assert written[-1]["unlogged"] == 10_000 - COMPLAINTS.burst
