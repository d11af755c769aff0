"""Work out the table of docs/decisions.md on how far the batch comes back after a peak: `make batch-table`.

By the rules themselves, in a closed loop: what a rule decides sets what nodes take, and that is what it is asked about
next, until nothing moves. Every node has the same demand and has answered; only what comes of it counts, not when.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import count, takewhile
from pathlib import Path

from comparison.ladder_baseline import decide_by_ladder
from page_section import with_section
from podtide.core.subnet.batch import BatchInForce, SubnetDecision, SubnetReading, decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.scaler import Scaler, SubnetScaler
from podtide.core.subnet.statement import Statement, request_at, stated_demand

_PAGE = Path(__file__).parent.parent / "docs" / "decisions.md"
_NAME = "how far the batch comes back"
_BOUNDS = BatchBounds()

NODES = 8
ADDRESSES_PER_NODE = (20, 21, 24, 28, 32, 33, 34, 36, 40, 41, 48, 56, 61, 64)

Rule = Callable[[BatchInForce, SubnetReading, BatchBounds], SubnetDecision]


def main() -> int:
    """The exit status."""
    rows = "\n".join(table())
    print(rows)
    _PAGE.write_text(with_section(_PAGE.read_text(), _NAME, rows))
    return 0


def table() -> Iterator[str]:
    """The table, in Markdown."""
    yield "| Q/N | before, by the ladder | now |"
    yield "| --- | --- | --- |"
    for each in ADDRESSES_PER_NODE:
        before, now = (largest_demand(rule, NODES * each, NODES) for rule in (decide_by_ladder, decide_batch))
        yield f"| {each} | {_words(before)} | {_words(now)} |"


def _words(demand: int | None) -> str:
    if demand is None:
        return "never"
    return f"{demand} pods" if demand else "without pods"


def largest_demand(rule: Rule, capacity: int, nodes: int) -> int | None:
    """The largest demand of each node up to which the batch is at the top again after a peak; None where it never is."""
    return max(takewhile(lambda demand: comes_back(rule, capacity, nodes, demand), count()), default=None)


def comes_back(rule: Rule, capacity: int, nodes: int, demand: int) -> bool:
    """Whether the batch is at the top after demand was as high as the subnet can serve, and fell to this."""
    standing = BatchInForce()
    for each in (peak_demand(capacity, nodes), demand):
        standing = _at_rest(rule, standing, capacity, nodes, each)
    return standing.scaler == _BOUNDS.rungs[-1]


def peak_demand(capacity: int, nodes: int) -> int:
    """The most that each node can have with one address to spare, beside its own."""
    return capacity // nodes - 2


def _at_rest(rule: Rule, standing: BatchInForce, capacity: int, nodes: int, demand: int) -> BatchInForce:
    """What is in force when nothing moves any more."""
    while True:
        scaler = standing.scaler or _BOUNDS.rungs[-1]
        decision = rule(standing, _reading(scaler, capacity, nodes, demand), _BOUNDS)
        then = BatchInForce(
            scaler=decision.scaler,
            exhausted=decision.exhausted,
            starved=decision.starved,
            age_seconds=float("inf"),  # nobody is too early with the next change
        )
        if then == standing:
            return standing
        standing = then


def _reading(in_force: SubnetScaler, capacity: int, nodes: int, demand: int) -> SubnetReading:
    """The subnet once every node has answered what is in force, and got what there is."""
    scaler = Scaler(in_force.batch, in_force.buffer)
    statement = Statement(
        demand=demand,
        batch=scaler.batch,
        buffer=scaler.buffer,
        max_ips=scaler.max_ips,
        primaries=1,
        request=request_at(demand, scaler, 1),
        top=_BOUNDS.top,
    )
    wanted = nodes * (1 + statement.request)
    return SubnetReading(
        capacity=capacity,
        reserved=min(capacity, wanted),
        containers=nodes,
        owed=max(0, wanted - capacity),
        holdings={ContainerDemand(stated_demand(statement), 1 + statement.request): nodes},
    )


if __name__ == "__main__":
    sys.exit(main())
