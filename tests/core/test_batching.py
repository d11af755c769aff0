"""The batch in force, decision by decision. What holds over time is in `test_batch_laws`."""

from collections import Counter
from fractions import Fraction
from math import inf

import pytest
from msgspec import structs

from podtide.core.errors import InvalidThresholds
from podtide.core.subnet.batch import (
    STARVED,
    BatchInForce,
    BatchMove,
    SubnetDecision,
    SubnetReading,
    decide_batch,
)
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS, Scaler, SubnetScaler
from podtide.core.subnet.statement import StatedDemand, Statement, request_at, stated_demand

HALF = Fraction(1, 2)
USUAL = BatchBounds()


def by(batch: int, buffer: Fraction = HALF) -> SubnetScaler:
    return SubnetScaler(batch, buffer)


def node(demand: int, scaler: SubnetScaler, top: int = 16) -> ContainerDemand:
    """A container whose agent states this demand, and holds what it asks for."""
    request = request_at(demand, Scaler(scaler.batch, scaler.buffer), 1)
    statement = Statement(
        demand=demand,
        batch=scaler.batch,
        buffer=scaler.buffer,
        max_ips=DEFAULT_MAX_IPS,
        primaries=1,
        request=request,
        top=top,
    )
    return ContainerDemand(stated_demand(statement), 1 + request)


def reading(capacity: int, *nodes: ContainerDemand, owed: int = 0, quarantined: int = 0) -> SubnetReading:
    """A subnet in which these hold what they ask for."""
    return SubnetReading(
        capacity=capacity,
        reserved=quarantined + sum(each.taken for each in nodes) - owed,
        containers=len(nodes),
        owed=owed,
        ungoverned=quarantined,
        holdings=Counter(nodes),
    )


def decide(
    seen: SubnetReading,
    scaler: SubnetScaler | None,
    bounds: BatchBounds = USUAL,
    *,
    age: float = inf,
    exhausted: bool = False,
    starved: bool = False,
) -> SubnetDecision:
    standing = BatchInForce(scaler=scaler, exhausted=exhausted, starved=starved, age_seconds=age)
    return decide_batch(standing, seen, bounds)


def rests(seen: SubnetReading, scaler: SubnetScaler, bounds: BatchBounds = USUAL) -> bool:
    return decide(seen, scaler, bounds).step is BatchMove.NONE


def test_at_ease_the_largest_batch_is_in_force() -> None:
    seen = reading(253, *[node(1, by(16))] * 8)
    first = decide(seen, None)
    assert (first.scaler, first.step, first.exhausted, first.starved) == (
        by(16),
        BatchMove.NONE,
        False,
        False,
    )
    later = decide(seen, by(16))
    assert str(later) == (
        "batch 16, buffer 0.5 (Unchanged): R = 128, and the largest batch allowed is in force"
    )


def test_the_batch_goes_down_in_one_step_to_the_largest_that_can_fit() -> None:
    seen = reading(253, *[node(15, by(16))] * 8, owed=3)
    decision = decide(seen, by(16))
    assert (decision.step, decision.scaler, decision.exhausted) == (BatchMove.DOWN, by(8), True)
    assert decision.reason == (
        "R = 253 and 3 owed > T·Q = 0.9·253 = 227.7; at batch 8 R can come to rest at 128, under t·Q = 0.8·253 = 202.4"
    )


def test_what_is_owed_lowers_the_batch_before_it_is_granted() -> None:
    seen = reading(253, *[node(16, by(16))] * 8, owed=40)
    assert seen.reserved < 0.9 * 253
    decision = decide(seen, by(16))
    assert (decision.step, decision.exhausted) == (BatchMove.DOWN, False)


def test_inside_the_band_nothing_moves() -> None:
    seen = reading(253, *[node(16, by(16))] * 7)
    assert 0.8 * 253 < seen.reserved < 0.9 * 253
    assert rests(seen, by(16))


def test_it_comes_back_as_soon_as_statements_say_that_it_fits() -> None:
    seen = reading(253, *[node(1, by(8))] * 8)
    decision = decide(seen, by(8), exhausted=True)
    assert (decision.step, decision.scaler, decision.exhausted) == (BatchMove.UP, by(16), False)
    assert decision.reason == "at batch 16 R stays at 128 or less, under t·Q = 0.8·253 = 202.4"


def test_it_comes_back_by_several_rungs_at_once() -> None:
    assert decide(reading(253, *[node(1, by(1))] * 8), by(1)).scaler == by(16)


def test_it_stays_where_a_larger_one_could_take_too_much() -> None:
    seen = reading(253, *[node(13, by(8))] * 8)  # 24 each, and 32 each at batch 16
    decision = decide(seen, by(8))
    assert decision.step is BatchMove.NONE
    assert decision.reason == "at batch 16 R could reach 256, not under t·Q = 0.8·253 = 202.4"


def test_below_the_top_a_stated_demand_is_exact_and_at_the_top_it_is_a_window() -> None:
    exact = decide(reading(500, *[node(9, by(8))] * 8), by(8))
    assert {(rung.expected.least, rung.expected.most) for rung in exact.rungs if rung.scaler.batch == 16} == {
        (256, 256)
    }
    window = decide(reading(500, *[node(9, by(16))] * 8), by(16))
    assert {(rung.expected.least, rung.expected.most) for rung in window.rungs if rung.scaler.batch == 8} == {
        (128, 256)  # the demand is 9 to 24: 16 or 32 addresses by batches of 8
    }


def test_a_raised_top_counts_earlier_statements_by_their_window() -> None:
    bounds = BatchBounds(batch=32)
    stated_at_the_old_top = reading(509, *[node(9, by(16), top=16)] * 8)
    assert decide(stated_at_the_old_top, by(16), bounds).scaler == by(16), "9 to 24 pods could need 64 each"
    stated_anew = reading(509, *[node(9, by(16), top=32)] * 8)
    assert decide(stated_anew, by(16), bounds).scaler == by(32)


def test_no_change_before_everybody_has_answered_or_a_minute_has_passed() -> None:
    answered, silent = node(1, by(8)), node(1, by(16))
    seen = reading(253, *[answered] * 7, silent)
    waiting = decide(seen, by(8), age=59.0)
    assert (waiting.step, waiting.unanswered) == (BatchMove.NONE, 1)
    assert waiting.reason == "1 of 8 containers have not answered the last change yet"
    assert decide(seen, by(8), age=60.0).step is BatchMove.UP
    assert decide(reading(253, *[answered] * 8), by(8), age=0.0).step is BatchMove.UP


def test_a_clock_that_was_set_back_holds_up_nothing() -> None:
    seen = reading(253, *[node(1, by(8))] * 7, node(1, by(16)))
    assert decide(seen, by(8), age=-1.0).step is BatchMove.UP


def test_a_dead_agents_container_counts_with_what_it_holds() -> None:
    dead = structs.replace(node(1, by(16)), taken=100)
    seen = reading(253, dead, *[node(13, by(8))] * 4)
    by_batch = {rung.scaler.batch: rung.expected for rung in decide(seen, by(8)).rungs}
    assert (by_batch[1].least, by_batch[16].most) == (100 + 4 * 15, 100 + 4 * 32)
    early = {rung.scaler.batch: rung.expected for rung in decide(seen, by(8), age=1.0).rungs}
    assert early[16].most == 16 + 4 * 32, "until then it may still give back"


def test_a_batch_that_fits_is_not_lowered_while_what_nodes_gave_up_is_on_its_way_back() -> None:
    seen = structs.replace(reading(26, node(6, by(4), top=4)), reserved=26, owed=1)
    four = BatchBounds(batch=4)
    assert rests(seen, by(4), four)
    decision = decide(seen, by(4), four)
    assert (
        decision.reason
        == "R = 26 is on its way: at batch 4 it comes to rest at 8 or less, under t·Q = 0.8·26 = 20.8"
    )
    assert decide(seen, by(2), four).scaler == by(4)


def test_a_surplus_that_is_not_given_back_in_time_counts_at_every_rung() -> None:
    keeps = structs.replace(node(2, by(16)), taken=1 + 90)  # its agent lost its records, say, and asks for 15
    seen = reading(253, keeps, *[node(10, by(16))] * 5)
    assert seen.reserved == 251
    assert rests(structs.replace(seen, owed=3), by(16), BatchBounds()) is False
    lowered = decide(seen, by(16))
    assert lowered.scaler == by(8)
    (at_eight,) = (rung.expected for rung in lowered.rungs if rung.scaler == by(8))
    assert at_eight.least == 75 + 8 + 5 * 16
    in_time = decide(seen, by(16), age=30.0)
    assert in_time.scaler == by(16), "it may be given back yet"


def test_where_none_fits_the_most_frugal_one_is_taken() -> None:
    seen = reading(253, *[node(23, by(16))] * 10, owed=67)
    decision = decide(seen, by(16))
    assert decision.step is BatchMove.DOWN
    exact = decide(reading(253, *[node(23, by(8))] * 10, owed=67), by(8))
    assert (exact.scaler, exact.step) == (by(2), BatchMove.DOWN)
    assert exact.reason.endswith("no batch stays under t·Q = 0.8·253 = 202.4, and at 2 R is the least")
    lowest = decide(reading(253, *[node(23, by(2))] * 10), by(2))
    assert (lowest.step, lowest.reason) == (
        BatchMove.NONE,
        "R = 250 > T·Q = 0.9·253 = 227.7, but no smaller batch takes less",
    )


def test_quarantine_is_in_every_rung() -> None:
    with_it = decide(reading(253, *[node(1, by(8))] * 8, quarantined=80), by(8))
    assert with_it.scaler == by(8), "128 and 80 would not be under 202.4"


def test_an_override_is_in_force_at_once() -> None:
    seen = reading(253, *[node(1, by(16))] * 8)
    smaller = decide(seen, by(16), BatchBounds(batch=8), age=1.0)
    assert (smaller.scaler, smaller.step, smaller.reason) == (
        by(8),
        BatchMove.CONFIGURED,
        "configured with batch up to 8, buffer 0.5",
    )
    assert decide(seen, by(16), BatchBounds(buffer=Fraction(1, 4)), age=1.0).scaler == by(16, Fraction(1, 4))
    assert decide(reading(1021, *[node(1, by(16))] * 8), by(16), BatchBounds(batch=32)).scaler == by(32)


def test_a_pin_holds_over_the_upper_threshold_and_comes_at_once_where_it_fits() -> None:
    pinned = BatchBounds(fixed=8)
    crowded = reading(253, *[node(22, by(8, HALF), top=8)] * 8)
    assert crowded.reserved > 0.9 * 253
    assert rests(crowded, by(8), bounds=pinned)
    from_above = decide(reading(253, *[node(1, by(16))] * 8), by(16), pinned, age=1.0)
    from_below = decide(reading(253, *[node(1, by(4))] * 8), by(4), pinned, age=1.0)
    assert (from_above.scaler, from_below.scaler) == (by(8), by(8))


def test_a_pin_that_does_not_fit_in_the_subnet_waits() -> None:
    seen = reading(253, *[node(13, by(4))] * 8)
    decision = decide(seen, by(4), BatchBounds(fixed=64))
    assert decision.scaler == by(8), "the largest that fits until then"


def test_a_lowest_batch_is_not_gone_below() -> None:
    bounds = BatchBounds(min_batch=4)
    seen = reading(253, *[node(25, by(4))] * 8, owed=2)
    assert rests(seen, by(4), bounds=bounds)
    assert decide(reading(253, *[node(23, by(16))] * 8, owed=3), by(16), bounds).scaler.batch >= 4


def test_starved_when_batch_1_was_answered_and_somebody_is_owed_and_nothing_is_left() -> None:
    seen = reading(253, *[node(24, by(1))] * 9, node(28, by(1)), owed=11)
    full = structs.replace(seen, reserved=253)
    decision = decide(full, by(1))
    assert (decision.scaler, decision.step, decision.starved) == (STARVED, BatchMove.STARVED, True)
    assert decision.reason == (
        "11 addresses are owed, 0 are free; nodes keep none in reserve until 10 are free, one for each container"
    )
    assert decide(structs.replace(full, owed=1), by(1)).reason.startswith(
        "1 address is owed, 0 are free; nodes"
    )
    assert not decide(structs.replace(full, reserved=252), by(1)).starved
    assert not decide(structs.replace(full, owed=0), by(1)).starved


def test_a_burst_does_not_jump_past_rungs_that_fit() -> None:
    seen = structs.replace(reading(253, *[node(15, by(16))] * 8, owed=3), reserved=253)
    assert decide(seen, by(16)).step is BatchMove.DOWN


def test_starved_at_once_where_no_rung_can_help() -> None:
    seen = structs.replace(reading(100, *[node(30, by(16))] * 4, owed=60), reserved=100)
    assert decide(seen, by(16), age=1.0).starved


def test_starved_overrides_a_pin() -> None:
    pinned = BatchBounds(fixed=16)
    seen = structs.replace(reading(253, *[node(15, by(16))] * 8, owed=3), reserved=253)
    assert decide(seen, by(16), pinned).scaler == STARVED


def test_starved_ends_when_every_container_can_keep_one_and_after_a_while() -> None:
    seen = reading(253, *[node(20, STARVED)] * 8)
    free = structs.replace(seen, reserved=245)
    assert decide(free, STARVED, starved=True, age=29.0).starved
    assert decide(structs.replace(free, owed=1), STARVED, starved=True).starved
    assert decide(structs.replace(free, reserved=246), STARVED, starved=True).starved
    fed = decide(free, STARVED, starved=True)
    assert (fed.step, fed.starved, fed.scaler) == (BatchMove.FED, False, by(8))
    assert fed.reason == "8 addresses are free, enough for each of 8 containers to keep 1"


def test_after_starvation_a_pin_is_in_force_again_only_where_it_fits_in_the_subnet() -> None:
    seen = structs.replace(reading(253, *[node(20, STARVED, top=16)] * 8), reserved=245)
    tight = decide(seen, STARVED, BatchBounds(fixed=16), starved=True)
    assert tight.scaler == by(8), "16 would take 256 of 253"
    later = reading(253, *[node(20, by(8), top=16)] * 8)
    assert decide(later, by(8), BatchBounds(fixed=16)).scaler == by(8)
    roomy = structs.replace(seen, capacity=256)
    assert decide(roomy, STARVED, BatchBounds(fixed=16), starved=True).scaler == by(16)
    lowest = decide(roomy, STARVED, BatchBounds(min_batch=8), starved=True)
    assert lowest.scaler == by(8)


def test_starved_ends_for_a_pin_that_fits_in_the_subnet_to_the_last_address() -> None:
    seen = reading(13, node(5, STARVED, top=2), node(6, STARVED, top=2))
    full = decide(seen, STARVED, BatchBounds(fixed=2, buffer=Fraction(0)), starved=True)
    assert (full.step, full.scaler) == (BatchMove.FED, by(2, Fraction(0)))
    assert full.reason == "at batch 2 R stays at 13 or less, and Q = 13"
    assert decide(seen, STARVED, BatchBounds(fixed=2), starved=True).starved, "it would take 16 of 13"
    assert decide(seen, STARVED, starved=True).starved, "nobody could keep one"


def test_after_starvation_batch_1_is_left_where_nothing_larger_fits() -> None:
    seen = reading(253, *[node(29, STARVED)] * 8)
    assert decide(seen, STARVED, starved=True).scaler == by(1)


def test_a_container_that_asked_for_nothing_yet_counts_between_its_primary_and_a_batch() -> None:
    newcomer = ContainerDemand(StatedDemand(), 1)
    decision = decide(reading(253, newcomer, node(1, by(8))), by(8))
    top = decision.rungs[-1].expected
    assert (top.least, top.most) == (1 + 16, 16 + 16)


def test_negative_counts_are_refused() -> None:
    for name in ("containers", "owed", "ungoverned", "draining"):
        with pytest.raises(InvalidThresholds, match=f"{name} -1 is negative"):
            SubnetReading(**{"capacity": 1, "reserved": 0, "containers": 0, name: -1})  # type: ignore[arg-type] # counts


def test_a_subnet_that_shrank_has_nothing_free() -> None:
    assert SubnetReading(capacity=10, reserved=12, containers=1).free == 0


def test_what_nodes_have_of_a_cidr_that_drains_is_not_taken_from_what_is_free() -> None:
    draining = SubnetReading(capacity=100, reserved=60, draining=50, containers=3)
    assert draining.free == 90
    assert SubnetReading(capacity=100, reserved=120, draining=20, containers=3).free == 0


def test_the_batch_is_decided_by_the_capacity_that_stays() -> None:
    nodes = [node(1, by(16)) for _ in range(4)]
    roomy = reading(253, *nodes)
    assert decide(roomy, by(16)).scaler.batch == 16
    draining = structs.replace(roomy, capacity=61, draining=roomy.reserved)
    assert decide(draining, by(16)).scaler.batch < 16
