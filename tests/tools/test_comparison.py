"""What the design papers promise of each of their steps, and what docs/comparison.md says of it."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from comparison.contestants import (
    ADAPTIVE_BATCH,
    CONTESTANTS,
    IDEMPOTENT,
    LADDER,
    POD_WATCHING,
    PODTIDE,
)
from comparison.loads import BURST, LOADS, PEAK_AND_AFTER, SCARCE, Load
from comparison.table import table
from comparison.trial import TrialOutcome, compare
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.simulation.strategies import REACTIVE, Strategy

PAGE = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text()


@cache
def outcome_by_name(contestant: str, load: str) -> TrialOutcome:
    (who,) = [each for each in CONTESTANTS if each.name == contestant]
    (what,) = [each for each in LOADS if each.name == load]
    return compare(who, what)


def outcome_of(contestant: Strategy, load: Load) -> TrialOutcome:
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


def true_use_percent(outcome: TrialOutcome) -> int:
    """What pods and nodes need of the subnet's 253 addresses."""
    return 100 * (outcome.pods + SCARCE.nodes) // 253


def test_who_watches_pods_asks_once_for_a_burst_and_who_does_not_asks_again_and_again() -> None:
    assert [outcome_of(each, BURST).requests for each in CONTESTANTS] == [2, 2, 1, 1, 1, 1]


def test_every_step_of_the_papers_makes_the_last_pod_of_a_burst_ready_sooner_or_as_soon() -> None:
    seconds = [outcome_of(each, BURST).ready_seconds for each in CONTESTANTS]
    known = [each for each in seconds if each is not None]
    assert len(known) == len(CONTESTANTS)
    assert known == sorted(known, reverse=True)


def test_no_add_fails_where_it_waits_for_what_is_on_its_way() -> None:
    for contestant in (LADDER, PODTIDE):
        assert outcome_of(contestant, BURST).failed_adds == 0
    for contestant in (REACTIVE, IDEMPOTENT, POD_WATCHING):
        assert outcome_of(contestant, BURST).failed_adds > 0


def test_how_often_a_load_is_looked_at_changes_nothing_but_the_samples() -> None:
    often = outcome_of(PODTIDE, BURST)
    seldom = compare(PODTIDE, structs.replace(BURST, sample_seconds=45))
    assert [sample.second for sample in seldom.samples] == [0, 45, 90, 135]
    assert set(seldom.samples) <= set(often.samples)
    assert counts(seldom) == counts(often)
    assert seldom.wait_seconds == pytest.approx(often.wait_seconds)


def counts(outcome: TrialOutcome) -> tuple[int, ...]:
    return outcome.requests, outcome.delayed, outcome.failed_adds, outcome.pods, outcome.served


def test_a_pod_that_never_has_an_address_counts_as_waiting_until_it_goes_or_all_ends() -> None:
    too_small = Load(
        name="too small",
        sentence="",
        subnet="10.0.0.0/30",
        nodes=1,
        seconds=100,
        changes={0: {0: 1}, 10: {0: 2}, 50: {0: -1}},
    )
    outcome = compare(ADAPTIVE_BATCH, too_small)
    assert outcome.ready_seconds is None
    assert outcome.wait_seconds == pytest.approx((100 + 90 + 40) / 3)


@pytest.mark.parametrize("contestant", [REACTIVE, ADAPTIVE_BATCH], ids=lambda contestant: contestant.name)
def test_the_time_at_the_configured_batch_is_that_of_the_batch_which_nodes_go_by(
    contestant: Strategy,
) -> None:
    outcome = outcome_of(contestant, SCARCE)
    batches = [sample.batch for sample in outcome.samples]
    assert outcome.batch_share == Fraction(batches.count(16), SCARCE.seconds)
    assert (outcome.batch_share == 1) == (not contestant.follows)


@pytest.mark.parametrize(
    ("contestant", "is_back"),
    [pytest.param(PODTIDE, True, id="podtide"), pytest.param(LADDER, False, id="ladder")],
)
def test_after_a_peak_the_batch_is_back_unless_it_goes_by_the_ladder(
    contestant: Strategy, is_back: bool
) -> None:
    peak = Load(
        name="peak",
        sentence="",
        subnet="10.0.0.0/24",
        nodes=8,
        seconds=2400,
        sample_seconds=60,
        changes={
            0: dict.fromkeys(range(8), 1),
            60: dict.fromkeys(range(8), 14),
            660: dict.fromkeys(range(8), -14),
        },
    )
    batches = [sample.batch for sample in compare(contestant, peak).samples]
    assert min(batches) < 16
    assert (batches[-1] == 16) == is_back


def test_only_its_peak_is_more_than_a_day_has_room_for_by_batches_of_16() -> None:
    held = dict(held_by_batches_of_16(PEAK_AND_AFTER))
    thresholds = Thresholds()
    over = [second for second, count in held.items() if count > thresholds.upper * 253]
    assert over == [3600]
    assert all(count < thresholds.lower * 253 for second, count in held.items() if second > 3600)


def held_by_batches_of_16(load: Load) -> Iterator[tuple[int, int]]:
    """What nodes take from the subnet after each change, with their own addresses."""
    pods = dict.fromkeys(range(load.nodes), 0)
    for second, changes in sorted(load.changes.items()):
        for node, change in changes.items():
            pods[node] += change
        yield second, sum(decide_request(each, Scaler(), 1).request + 1 for each in pods.values())


@pytest.mark.slow
@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda contestant: contestant.name)
def test_the_page_shows_what_comes_of_it(contestant: Strategy, load: Load) -> None:
    _, _, row = table([outcome_of(contestant, load)])
    assert row in shown(load)


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_the_page_shows_every_contestant_once_and_in_order(load: Load) -> None:
    heading, rule, *rows = shown(load)
    assert [heading, rule] == list(table([]))
    assert [row.split(" | ")[0] for row in rows] == [f"| {contestant.name}" for contestant in CONTESTANTS]


def shown(load: Load) -> list[str]:
    """The lines of the load's table on the page."""
    _, after = PAGE.split(f"<!-- {load.name} -->\n")
    return after.split("<!-- end -->")[0].splitlines()


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda contestant: contestant.name)
def test_the_page_says_who_is_compared(contestant: Strategy) -> None:
    assert f"\n| {contestant.name} | " in PAGE
