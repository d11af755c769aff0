"""What docs/benchmarks.md says of writes under churn: stating demand costs nothing where there is room."""

import pytest

from comparison.contestants import LADDER, PODTIDE
from pod_churn import AT_60_PERCENT, AT_EASE, Case, Writes, changes, count_writes
from podtide.runtime import virtual_time
from podtide.simulation.strategies import Strategy


def writes(contestant: Strategy, case: Case) -> Writes:
    return virtual_time.run(count_writes(contestant, case, hours=1))


@pytest.mark.slow
def test_at_ease_nobody_writes_only_to_state_demand_and_as_much_is_written_as_before() -> None:
    now = writes(PODTIDE, AT_EASE)
    assert now.batches == (16,)
    assert now.requests > 0
    assert now.restatements == 0
    assert now == writes(LADDER, AT_EASE)


@pytest.mark.slow
def test_below_the_configured_batch_nodes_state_their_demand_anew_and_the_ladders_do_not() -> None:
    assert 0 < writes(PODTIDE, AT_60_PERCENT).restatements < 12  # at most one in five minutes
    assert writes(LADDER, AT_60_PERCENT).restatements == 0


def test_nobodys_pods_are_fewer_than_none() -> None:
    pods = dict[str, int]()
    for change in changes(mean_pods=1, seconds=36_000):
        pods[change.node] = pods.get(change.node, 1) + (1 if change.comes else -1)
        assert pods[change.node] >= 0
