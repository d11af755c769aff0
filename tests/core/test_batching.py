"""The batch in force: the ladder, exhaustion and the starved state, each alone and all together as a closed loop."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from podtide.core.batching import (
    Batching,
    Reading,
    Standing,
    Step,
    decide_batch,
    depth_of,
    expected_at_most,
    ladder,
)
from podtide.core.errors import InvalidScaler, InvalidThresholds
from podtide.core.scaler import NodeScaler, SubnetScaler, effective_scaler
from podtide.core.scaling import decide_request

HALF = Fraction(1, 2)
USUAL = Batching()


def rungs(batch: int, buffer: Fraction = HALF) -> list[tuple[int, Fraction]]:
    return [(rung.batch, rung.buffer) for rung in ladder(Batching(batch, buffer))]


def test_the_ladder_is_of_powers_of_two_up_to_the_configured_batch() -> None:
    assert rungs(16) == [(16, HALF), (8, HALF), (4, HALF), (2, HALF), (1, HALF)]
    assert rungs(10) == [(10, HALF), (8, HALF), (4, HALF), (2, HALF), (1, HALF)]
    assert rungs(17)[:2] == [(17, HALF), (16, HALF)]
    assert rungs(2) == [(2, HALF), (1, HALF)]
    assert rungs(1) == [(1, HALF)]


def test_the_lowest_rung_keeps_no_more_than_exhaustion_does() -> None:
    four = Fraction(4)
    assert rungs(4, four) == [(4, four), (2, four), (1, Fraction(1))]
    assert rungs(1, four) == [(1, four), (1, Fraction(1))]


@pytest.mark.parametrize(("batch", "depth"), [(64, 0), (16, 0), (15, 1), (8, 1), (3, 3), (1, 4)])
def test_a_controller_that_starts_finds_its_rung_by_the_batch_in_force(batch: int, depth: int) -> None:
    assert depth_of(SubnetScaler(batch, HALF), USUAL) == depth


def test_the_rung_is_found_where_two_have_the_same_batch() -> None:
    configured = Batching(1, Fraction(4))
    assert [depth_of(rung, configured) for rung in ladder(configured)] == [0, 1]
    assert depth_of(SubnetScaler(1, Fraction(0)), configured) == 1, (
        "a starved subnet's scaler is the lowest rung"
    )


def test_at_ease_the_configured_batch_is_in_force() -> None:
    decision = decide_batch(Standing(), Reading(capacity=1000, reserved=100, containers=3), USUAL, now=99)
    assert decision.scaler == SubnetScaler(16, HALF)
    assert decision.step is Step.NONE
    assert str(decision) == (
        "batch 16, buffer 0.5 (Unchanged): R = 100 ≤ t·Q = 0.8·1000 = 800, and the configured batch is in force"
    )


def test_one_rung_down_per_dwell_while_above_the_lower_threshold() -> None:
    standing, seen = Standing(since=0.0), []
    for now in range(0, 200, 10):
        decision = decide_batch(
            standing, Reading(capacity=1000, reserved=801, containers=50), USUAL, float(now)
        )
        standing = decision.standing
        if decision.step is not Step.NONE:
            seen.append((now, decision.step, decision.scaler.batch))
    assert seen == [(30, Step.DOWN, 8), (60, Step.DOWN, 4), (90, Step.DOWN, 2), (120, Step.DOWN, 1)]


def test_exactly_at_the_lower_threshold_nothing_moves() -> None:
    reading = Reading(capacity=1000, reserved=800, containers=50)
    assert decide_batch(Standing(depth=2), reading, USUAL, now=99).step is Step.NONE


def test_up_only_when_the_larger_batch_is_sure_to_fit() -> None:
    # at batch 8 a container spares at least 4, at batch 16 at most 8 + 15: 19 more for each of 10
    fits = Reading(capacity=1000, reserved=609, containers=10)
    assert expected_at_most(fits, SubnetScaler(8, HALF), SubnetScaler(16, HALF)) == 609 + 10 * 19
    up = decide_batch(Standing(depth=1), fits, USUAL, now=30)
    assert (up.step, up.scaler.batch, up.standing.since) == (Step.UP, 16, 30)
    assert up.reason == "at batch 16 R stays at 799 or less, under t·Q = 0.8·1000 = 800"
    tight = structs.replace(fits, reserved=610)
    stay = decide_batch(Standing(depth=1), tight, USUAL, now=30)
    assert (stay.step, stay.reason) == (Step.NONE, "at batch 16 R could reach 800 ≥ t·Q = 0.8·1000 = 800")
    early = decide_batch(Standing(depth=1), fits, USUAL, now=29)
    assert early.step is Step.NONE
    assert early.reason.endswith("but the last change is too recent")


def test_what_is_owed_counts_as_taken_when_going_up() -> None:
    reading = Reading(capacity=1000, reserved=608, containers=10, owed=2)
    assert decide_batch(Standing(depth=1), reading, USUAL, now=30).step is Step.NONE


def test_exhaustion_acts_at_once_and_ignores_the_override() -> None:
    override = Batching(batch=64, buffer=Fraction(3))
    decision = decide_batch(Standing(since=99), Reading(1000, 901, 10), override, now=99)
    assert decision.step is Step.EXHAUSTED
    assert decision.scaler == SubnetScaler(1, Fraction(1))
    assert decision.reason == "R = 901 > T·Q = 0.9·1000 = 900"
    assert decision.standing == Standing(exhausted=True, depth=6, since=99)


def test_leaving_exhaustion_resumes_at_the_lowest_rung() -> None:
    decision = decide_batch(Standing(exhausted=True, depth=4), Reading(1000, 799, 10), USUAL, now=99)
    assert (decision.step, decision.scaler) == (Step.RECOVERED, SubnetScaler(1, HALF))
    assert not decision.standing.exhausted
    still = decide_batch(Standing(exhausted=True, depth=4, since=7), Reading(1000, 800, 10), USUAL, now=99)
    assert (still.step, still.standing.since) == (Step.NONE, 7)


def test_starved_while_somebody_is_owed_and_nothing_is_left() -> None:
    full = Reading(capacity=100, reserved=100, containers=10, owed=3)
    decision = decide_batch(Standing(exhausted=True, depth=4), full, USUAL, now=5)
    assert (decision.step, decision.scaler) == (Step.STARVED, SubnetScaler(1, Fraction(0)))
    assert decision.reason == (
        "3 addresses are owed, 0 are free; nodes keep none in reserve until 10 are free, one for each container"
    )
    for reading in (structs.replace(full, owed=0), structs.replace(full, reserved=99)):
        assert not decide_batch(Standing(), reading, USUAL, now=5).standing.starved


def test_starved_ends_only_when_every_container_can_keep_one_and_after_a_dwell() -> None:
    starved = Standing(exhausted=True, starved=True, depth=4, since=0)
    fed = Reading(capacity=100, reserved=90, containers=10)
    assert decide_batch(starved, structs.replace(fed, reserved=91), USUAL, now=99).step is Step.NONE
    assert decide_batch(starved, structs.replace(fed, owed=1), USUAL, now=99).step is Step.NONE
    assert decide_batch(starved, fed, USUAL, now=29).step is Step.NONE
    ends = decide_batch(starved, fed, USUAL, now=30)
    assert (ends.step, ends.scaler) == (Step.FED, SubnetScaler(1, Fraction(1)))
    assert ends.reason == "10 addresses are free, enough for each of 10 containers to keep 1"


def test_a_larger_override_is_in_force_at_once_where_the_subnet_is_at_ease() -> None:
    reading = Reading(capacity=1000, reserved=100, containers=3)
    assert decide_batch(Standing(depth=0, since=99), reading, Batching(batch=64), now=99).scaler.batch == 64
    assert decide_batch(Standing(depth=1, since=99), reading, Batching(batch=64), now=99).scaler.batch == 32
    assert decide_batch(Standing(depth=4, since=99), reading, Batching(batch=2), now=99).scaler.batch == 1


def test_at_the_lowest_rung_there_is_nothing_smaller() -> None:
    decision = decide_batch(Standing(depth=4), Reading(1000, 850, 10), USUAL, now=99)
    assert decision.step is Step.NONE
    assert decision.reason == "R = 850 > t·Q = 0.8·1000 = 800, but no smaller batch is left"


@pytest.mark.parametrize(
    ("batch", "buffer", "words"),
    [(0, "0.5", "batch 0 is too small"), (1, "-1", "minimum-free fraction -1 is negative: give 0 or more")],
)
def test_a_bad_override_is_refused(batch: int, buffer: str, words: str) -> None:
    with pytest.raises(InvalidScaler, match=words):
        Batching(batch, Fraction(buffer))


def test_negative_counts_are_refused() -> None:
    with pytest.raises(InvalidThresholds, match="owed -1 is negative"):
        Reading(1, 0, 0, owed=-1)
    with pytest.raises(InvalidThresholds, match="containers -1 is negative"):
        Reading(1, 0, -1)


def test_a_subnet_that_shrank_has_nothing_free() -> None:
    assert Reading(capacity=10, reserved=12, containers=1).free == 0


class ClosedLoop:
    """One subnet, its nodes and its controller: what is decided changes what is reserved, which is decided upon."""

    def __init__(
        self, capacity: int, demands: list[int], configured: Batching, *, slow_to_give_back: bool = False
    ) -> None:
        self.capacity, self.demands, self.configured = capacity, demands, configured
        self.slow_to_give_back = slow_to_give_back
        self.standing = Standing(since=-configured.dwell_seconds)
        self.scaler = SubnetScaler(configured.batch, configured.buffer)
        self.held = [0] * len(demands)
        self.kept = self.held
        self.now = 0.0

    @property
    def reserved(self) -> int:
        return sum(self.held) + len(self.held)

    def round(self) -> Step:
        """Nodes state their wish, give back, are granted what there is; then the controller looks."""
        scaler = effective_scaler(NodeScaler(), self.scaler)
        request = {demand: decide_request(demand, scaler, 1).request for demand in set(self.demands)}
        wishes = [request[demand] for demand in self.demands]
        patient = self.slow_to_give_back and not self.standing.exhausted
        keep = [max(wish, last) for wish, last in zip(wishes, self.kept, strict=True)] if patient else wishes
        self.held = [min(held, most) for held, most in zip(self.held, keep, strict=True)]
        self.kept = wishes
        free = self.capacity - self.reserved
        # those with pods that wait are served first
        for upto in (self.demands, wishes):
            for node, limit in enumerate(upto):
                grant = min(max(0, min(limit, wishes[node]) - self.held[node]), free)
                self.held[node] += grant
                free -= grant
        owed = sum(max(0, wish - held) for wish, held in zip(wishes, self.held, strict=True))
        reading = Reading(self.capacity, self.reserved, len(self.held), owed)
        decision = decide_batch(self.standing, reading, self.configured, self.now)
        self.standing, self.scaler = decision.standing, decision.scaler
        self.now += self.configured.dwell_seconds
        return decision.step


@st.composite
def loops(draw: st.DrawFn) -> ClosedLoop:
    nodes = draw(st.integers(1, 500))
    pods = draw(st.integers(0, 30 * nodes))
    seed = draw(st.randoms(use_true_random=False))
    demands = [0] * nodes
    for _ in range(pods):
        demands[seed.randrange(nodes)] += 1
    demands = [min(demand, 240) for demand in demands]
    # from "hardly the primaries fit" to "everything fits at the configured batch", each utilization in between
    capacity = draw(st.integers(nodes, nodes * 2 + sum(demands) * 2 + 40 * nodes))
    configured = Batching(
        draw(st.integers(1, 64)), draw(st.sampled_from([Fraction(n, 4) for n in range(13)]))
    )
    return ClosedLoop(capacity, demands, configured, slow_to_give_back=draw(st.booleans()))


@pytest.mark.slow
@settings(max_examples=150)
@given(loops())
@example(ClosedLoop(100, [1] * 40, Batching(16, Fraction(4))))
@example(ClosedLoop(1, [0], Batching()))
def test_ladder_exhaustion_and_starved_settle_together_under_constant_load(loop: ClosedLoop) -> None:
    steps = [loop.round() for _ in range(30)]
    assert steps[-10:] == [Step.NONE] * 10, f"still moving: {steps}"
    assert loop.reserved <= loop.capacity
    if sum(loop.demands) + len(loop.demands) <= loop.capacity:
        assert all(held >= demand for held, demand in zip(loop.held, loop.demands, strict=True)), (
            "every last usable address can be a pod's"
        )


@settings(max_examples=100)
@given(st.integers(1, 60), st.integers(1, 100), st.integers(0, 40))
def test_it_settles_at_every_utilization(nodes: int, percent: int, pods_each: int) -> None:
    needed = nodes * (pods_each + 1)
    loop = ClosedLoop(max(nodes, needed * 100 // percent), [pods_each] * nodes, USUAL)
    steps = [loop.round() for _ in range(30)]
    assert steps[-10:] == [Step.NONE] * 10
