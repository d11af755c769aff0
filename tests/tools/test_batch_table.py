"""The table of docs/decisions.md on how far the batch comes back after a peak is true."""

from pathlib import Path

import pytest

from batch_table import ADDRESSES_PER_NODE, NODES, largest_demand, peak_demand, table
from comparison.contestants import LADDER, PODTIDE
from comparison.ladder_baseline import decide_by_ladder
from comparison.loads import Load
from comparison.trial import compare
from podtide.core.subnet.batch import decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.statement import StatedDemand, taken_at
from podtide.simulation.strategies import Strategy

PAGE = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text()
CAPACITY = 253


def test_the_page_shows_what_the_rules_do() -> None:
    _, after = PAGE.split("<!-- how far the batch comes back -->\n")
    assert after.split("<!-- end -->")[0].splitlines() == list(table())


@pytest.mark.parametrize("per_node", ADDRESSES_PER_NODE)
def test_now_the_batch_comes_back_wherever_it_fits(per_node: int) -> None:
    bounds, capacity = BatchBounds(), NODES * per_node
    fitting = [
        demand
        for demand in range(per_node)
        if NODES * taken_at(demand, StatedDemand(), bounds.rungs[-1]) < bounds.thresholds.lower * capacity
    ]
    assert largest_demand(decide_batch, capacity, NODES) == max(fitting, default=None)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [4, 6, 8])
@pytest.mark.parametrize("contestant", [LADDER, PODTIDE], ids=lambda contestant: contestant.name)
def test_whole_clusters_come_back_as_far_as_the_rules_say(contestant: Strategy, nodes: int) -> None:
    rule = decide_by_ladder if contestant is LADDER else decide_batch
    largest = largest_demand(rule, CAPACITY, nodes)
    if largest is not None:
        assert batch_after_a_peak(contestant, nodes, largest) == 16
    assert batch_after_a_peak(contestant, nodes, 0 if largest is None else largest + 1) < 16


def batch_after_a_peak(contestant: Strategy, nodes: int, demand: int) -> int:
    """Half an hour after it."""
    more = peak_demand(CAPACITY, nodes) - demand
    load = Load(
        name="peak",
        sentence="",
        subnet="10.0.0.0/24",
        nodes=nodes,
        seconds=2461,
        sample_seconds=60,
        changes={
            0: dict.fromkeys(range(nodes), demand),
            60: dict.fromkeys(range(nodes), more),
            660: dict.fromkeys(range(nodes), -more),
        },
    )
    batches = [sample.batch for sample in compare(contestant, load).samples]
    assert min(batches[:12]) < 16, "no peak"
    return batches[-1]
