"""What a node stated beside its requests, read from what it wrote.

By batch 8 the demands 21 to 28 lead to the request 31. By batch 16 those up to 24 lead to 31, and from 25 on to 47.
"""

from agent.node_bench import Bench
from podtide.core.subnet.statement import Statement
from podtide.resources.statement_annotation import statement_in

AN_HOUR = 3600.0


def stated(bench: Bench) -> list[Statement | None]:
    """What stood beside each request that was written."""
    return [
        statement_in(config.metadata.annotations, config.spec.requested_ip_count)
        for config in bench.cluster.applied
    ]


def demands(bench: Bench) -> list[int | None]:
    return [statement.demand if statement is not None else None for statement in stated(bench)]


def last_stated(bench: Bench) -> Statement:
    statement = stated(bench)[-1]
    assert statement is not None
    return statement


async def demand_of_25_after_24(bench: Bench) -> float:
    """The node has settled with 24 pods, and gets one more. Answers when."""
    await bench.schedule_many(24)
    await bench.settle(AN_HOUR)
    assert demands(bench) == [24]
    await bench.schedule("one-more")
    return bench.clock.monotonic()
