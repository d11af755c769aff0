"""The design papers' burst of 35 pods on virtual time, podtide beside the reactive pool: what it costs, and how long it takes."""

import sys
from collections.abc import Iterator

from burst_story import PODTIDE, REACTIVE, Contestant, Outcome, before_the_burst, burst
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger

PART = "burst"


def measure() -> Iterator[tuple[str, str]]:
    """For each, the requests written, the ADDs that failed and the virtual seconds until every pod had its address."""
    for contestant in (PODTIDE, REACTIVE):
        outcome = virtual_time.run(_play(contestant))
        requests = ", ".join(map(str, outcome.requests))
        yield f"{contestant.name}: requests written", f"{len(outcome.requests)} ({requests})"
        yield f"{contestant.name}: ADDs that failed", str(outcome.failed_adds)
        yield f"{contestant.name}: until all 36 pods have addresses", f"{outcome.ready_seconds:.1f} virtual s"


async def _play(contestant: Contestant) -> Outcome:
    clock = LoopClock()
    log = make_logger(sys.stderr, clock, level="error")
    async with before_the_burst(contestant, clock=clock, log=log) as world:
        return await burst(world)
