"""How long nobody is answered when a replica of the allocator is killed, and when its database fails over.

Two replicas on two PostgreSQL servers with fsync, the standby synchronous; clients and their controller wait and retry as
podtide's own do. The standby is promoted at once: how long it takes to notice that the primary is gone is up to whatever
looks after the servers, and comes on top.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from podtide.allocator.client import AllocatorTimeouts
from podtide.controller.allocator_term import RENEW_SECONDS

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from failover_bench import LoadShape, failover_bench
from postgresql_server import NoPostgresql, binaries

PART = "failover"
NODES = 100
MOST_PAUSE_SECONDS = 1.0
"""Between two wishes of a node: some 200 are answered in a second."""
ANSWERS = 400
TURNS = 3


def measure() -> Iterator[tuple[str, str]]:
    """The longest time without an answered wish, over all nodes."""
    try:
        binaries()
    except NoPostgresql as reason:
        yield f"PostgreSQL: not measured, {reason}", "-"
        return
    killed = [asyncio.run(_turn(hangs=False)) for _ in range(TURNS)]
    yield "one of two replicas killed", _figure([replica for replica, _primary in killed])
    yield "the primary killed, its standby promoted", _figure([primary for _replica, primary in killed])
    hanging = [asyncio.run(_turn(hangs=True)) for _ in range(TURNS)]
    yield "the primary hangs, its standby promoted", _figure([primary for _replica, primary in hanging])


async def _turn(*, hangs: bool) -> tuple[float, float]:
    """The pauses by a killed replica and by a failover."""
    shape = LoadShape(
        nodes=NODES,
        containers=1,
        most_pause_seconds=MOST_PAUSE_SECONDS,
        renew_seconds=RENEW_SECONDS,
        timeouts=AllocatorTimeouts(deadline_seconds=120.0),
    )
    async with failover_bench(shape, durable=True) as bench:
        await bench.answers(ANSWERS)
        replica = await bench.kill_replica(ANSWERS)
        primary = await bench.fail_over(ANSWERS, hangs=hangs)
        await bench.stop()
        return replica, primary


def _figure(pauses: list[float]) -> str:
    return f"{median(pauses):.2f} s ({min(pauses):.2f} to {max(pauses):.2f})"
