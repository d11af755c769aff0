"""What the design papers promise of each of their steps, and what docs/comparison.md says of it."""

from functools import cache
from pathlib import Path

import pytest

from podtide.simulation.comparison.contestants import (
    ADAPTIVE_BATCH,
    CONTESTANTS,
    IDEMPOTENT,
    POD_WATCHING,
    PODTIDE,
    REACTIVE,
    Contestant,
)
from podtide.simulation.comparison.loads import BURST, LOADS, SCARCE, Load
from podtide.simulation.comparison.table import table
from podtide.simulation.comparison.trial import Outcome, compare

PAGE = (Path(__file__).parents[3] / "docs" / "comparison.md").read_text()


@cache
def outcome_by_name(contestant: str, load: str) -> Outcome:
    (who,) = [each for each in CONTESTANTS if each.name == contestant]
    (what,) = [each for each in LOADS if each.name == load]
    return compare(who, what)


def outcome_of(contestant: Contestant, load: Load) -> Outcome:
    """What came of it, worked out once."""
    return outcome_by_name(contestant.name, load.name)


def test_with_the_adaptive_batch_a_subnet_at_95_percent_true_use_serves_every_pod() -> None:
    outcome = outcome_of(ADAPTIVE_BATCH, SCARCE)
    assert true_use_percent(outcome) >= 95
    assert outcome.served == outcome.pods
    assert outcome.ready_seconds is not None


def test_with_a_fixed_batch_of_16_it_does_not_although_there_are_idle_addresses_enough() -> None:
    outcome = outcome_of(POD_WATCHING, SCARCE)
    assert true_use_percent(outcome) >= 95
    left_out = outcome.pods - outcome.served
    assert left_out > 0
    assert outcome.ready_seconds is None
    assert outcome.samples[-1].idle >= left_out


def true_use_percent(outcome: Outcome) -> int:
    """What pods and nodes need of the subnet's 253 addresses."""
    return 100 * (outcome.pods + SCARCE.nodes) // 253


def test_who_watches_pods_asks_once_for_a_burst_and_who_does_not_asks_again_and_again() -> None:
    assert [outcome_of(each, BURST).requests for each in CONTESTANTS] == [2, 2, 1, 1, 1]


def test_every_step_of_the_papers_makes_the_last_pod_of_a_burst_ready_sooner_or_as_soon() -> None:
    seconds = [outcome_of(each, BURST).ready_seconds for each in CONTESTANTS]
    known = [each for each in seconds if each is not None]
    assert len(known) == len(CONTESTANTS)
    assert known == sorted(known, reverse=True)


def test_no_add_fails_where_it_waits_for_what_is_on_its_way() -> None:
    assert outcome_of(PODTIDE, BURST).failed_adds == 0
    for contestant in (REACTIVE, IDEMPOTENT, POD_WATCHING):
        assert outcome_of(contestant, BURST).failed_adds > 0


@pytest.mark.slow
@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_the_page_shows_what_comes_of_it(load: Load) -> None:
    rows = "\n".join(table(outcome_of(contestant, load) for contestant in CONTESTANTS))
    assert f"<!-- {load.name} -->\n{rows}\n<!-- end -->" in PAGE


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda contestant: contestant.name)
def test_the_page_says_who_is_compared(contestant: Contestant) -> None:
    assert f"\n| {contestant.name} | " in PAGE
