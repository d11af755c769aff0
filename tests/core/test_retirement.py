"""Many nodes that seem gone at the start of a term are retired only after a second look."""

import pytest

from podtide.core.subnet.retirement_brake import (
    LOOK_AGAIN_SECONDS,
    HeldRetirement,
    RetirementJudgement,
    is_allowed_at_once,
    judge_retirement,
)

NONE = frozenset[str]()


def nodes(count: int, start: int = 0) -> frozenset[str]:
    return frozenset(f"uid-{number}" for number in range(start, start + count))


@pytest.mark.parametrize(
    ("missing", "of", "allowed"),
    [
        (0, 0, True),
        (3, 3, True),
        (4, 4, False),
        (4, 39, False),
        (4, 40, True),
        (500, 5000, True),
        (501, 5000, False),
    ],
)
def test_three_or_a_tenth_may_go_at_once(missing: int, of: int, allowed: bool) -> None:
    assert is_allowed_at_once(missing, of) is allowed
    held = None if allowed else HeldRetirement(nodes(missing), 100.0 + LOOK_AGAIN_SECONDS)
    retired = nodes(missing) if allowed else NONE
    assert judge_retirement(nodes(missing), of, 100.0, None) == RetirementJudgement(retired, held)


def test_before_the_second_look_nobody_goes_and_who_came_back_is_not_held() -> None:
    held = HeldRetirement(nodes(6), 700.0)
    assert judge_retirement(nodes(5), 10, 699.0, held) == RetirementJudgement(
        NONE, HeldRetirement(nodes(5), 700.0)
    )


def test_when_all_who_were_held_are_back_nobody_else_waits_for_them() -> None:
    held = HeldRetirement(nodes(6), 700.0)
    assert judge_retirement(nodes(2, start=6), 10, 699.0, held) == RetirementJudgement(nodes(2, start=6))


def test_at_the_second_look_those_go_that_are_still_missing() -> None:
    held = HeldRetirement(nodes(6), 700.0)
    assert judge_retirement(nodes(5), 10, 700.0, held) == RetirementJudgement(nodes(5))


def test_who_is_missing_only_at_the_second_look_is_judged_anew() -> None:
    held = HeldRetirement(nodes(6), 700.0)
    assert judge_retirement(nodes(8), 20, 700.0, held) == RetirementJudgement(
        nodes(8)
    )  # two more may go at once
    later = HeldRetirement(nodes(4, start=6), 700.0 + LOOK_AGAIN_SECONDS)
    assert judge_retirement(nodes(10), 20, 700.0, held) == RetirementJudgement(nodes(6), later)
