from hypothesis import given
from hypothesis import strategies as st

from podtide.core.pool.pacing import Pace, PacingDecision, Waiting, WantedTarget, pace

PATIENCE = Pace()
NOTHING = PacingDecision(write=False, look_at=None, waiting=None)


def paced(
    waiting: Waiting | None,
    target: int,
    requested: int,
    now: float,
    *,
    demand: int = 8,
    exhausted: bool = False,
) -> PacingDecision:
    return pace(waiting, WantedTarget(target, requested, demand, now, exhausted), now, PATIENCE)


def test_what_agrees_is_left_alone() -> None:
    assert paced(None, 16, 16, 0.0) == NOTHING


def test_growth_is_written_after_the_moment_of_gathering() -> None:
    first = paced(None, 32, 16, 10.0)
    assert (first.write, first.look_at) == (False, 10.1)
    due = paced(first.waiting, 32, 16, 10.1)
    assert due == PacingDecision(write=True, look_at=None, waiting=None)


def test_what_is_looked_at_late_is_gathered_from_when_it_changed() -> None:
    first = pace(None, WantedTarget(32, 16, 8, 10.0), 10.02, PATIENCE)
    assert (first.write, first.look_at) == (False, 10.1)
    second = pace(first.waiting, WantedTarget(48, 16, 30, 10.05), 10.08, PATIENCE)
    assert (second.write, second.look_at) == (False, 10.05 + PATIENCE.gather_seconds)


def test_a_burst_that_goes_on_is_written_after_half_a_second_at_most() -> None:
    waiting, writes = None, []
    for tick in range(12):
        now = 10 + tick * 0.05
        verdict = paced(waiting, 32 + tick, 16, now)
        waiting = verdict.waiting
        if verdict.write:
            writes.append(now)
            break
    assert writes == [10.5]


def test_pods_that_keep_coming_are_gathered_also_while_they_fit_the_same_batch() -> None:
    first = paced(None, 32, 16, 10.0, demand=9)
    second = paced(first.waiting, 32, 16, 10.09, demand=10)
    assert (second.write, second.look_at) == (False, 10.09 + PATIENCE.gather_seconds)
    third = paced(second.waiting, 32, 16, 10.18, demand=10)
    assert (third.write, third.look_at) == (False, second.look_at)


def test_shrinking_waits_until_the_target_has_stood_for_the_delay() -> None:
    first = paced(None, 32, 48, 0.0)
    assert (first.write, first.look_at) == (False, 30.0)
    assert not paced(first.waiting, 32, 48, 29.9).write
    assert paced(first.waiting, 32, 48, 30.0).write


def test_a_dip_at_the_end_of_the_delay_has_to_stand_itself() -> None:
    first = paced(None, 32, 48, 0.0)
    dip = paced(first.waiting, 16, 48, 29.95)
    assert (dip.write, dip.look_at) == (False, 59.95)
    back = paced(dip.waiting, 32, 48, 31.0)
    assert (back.write, back.look_at) == (False, 59.95), "rising back does not start it once more"


def test_a_pod_that_comes_back_at_the_batch_boundary_starts_the_wait_anew() -> None:
    first = paced(None, 32, 48, 0.0)
    back = paced(first.waiting, 48, 48, 29.0)
    assert back == NOTHING
    assert paced(back.waiting, 32, 48, 29.5).look_at == 59.5


def test_an_exhausted_subnet_does_not_wait() -> None:
    first = paced(None, 32, 48, 0.0, exhausted=True)
    assert first.look_at == 0.1
    assert paced(first.waiting, 32, 48, 0.1, exhausted=True).write


def test_exhaustion_ends_a_wait_that_had_begun() -> None:
    first = paced(None, 32, 48, 0.0)
    assert paced(first.waiting, 26, 48, 5.0, exhausted=True).write


def test_turning_from_shrinking_to_growing_gathers_anew() -> None:
    shrinking = paced(None, 32, 48, 0.0)
    growing = paced(shrinking.waiting, 64, 48, 12.0)
    assert (growing.write, growing.look_at) == (False, 12.1)


@given(
    st.lists(st.tuples(st.floats(0.001, 40), st.integers(0, 5)), min_size=1, max_size=40),
    st.booleans(),
)
def test_a_target_that_stands_is_written_once_and_then_nothing_is(
    history: list[tuple[float, int]],
    exhausted: bool,
) -> None:
    now, requested, waiting = 0.0, 0, None
    for pause, target in history:
        now += pause
        verdict = paced(waiting, target * 16, requested, now, exhausted=exhausted)
        waiting = verdict.waiting
        if verdict.write:
            requested = target * 16
    final, writes = history[-1][1] * 16, 0
    while requested != final:
        verdict = paced(waiting, final, requested, now, exhausted=exhausted)
        waiting = verdict.waiting
        if verdict.write:
            requested, writes = final, writes + 1
        else:
            assert verdict.look_at is not None
            assert verdict.look_at > now
            now = verdict.look_at
    assert writes <= 1
    assert paced(waiting, final, requested, now + 1000) == NOTHING
