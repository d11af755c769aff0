"""The batch as it was decided before: what the comparison rests on."""

from fractions import Fraction
from math import inf

from comparison.ladder_baseline import decide_by_ladder, expected_at_most
from podtide.core.subnet.batch import STARVED, BatchInForce, BatchMove, SubnetReading
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.scaler import SubnetScaler

HALF = Fraction(1, 2)
USUAL = BatchBounds()


def after(
    batch: int,
    reserved: int,
    containers: int = 10,
    owed: int = 0,
    *,
    age: float = inf,
    exhausted: bool = False,
    starved: bool = False,
) -> tuple[SubnetScaler, BatchMove]:
    standing = BatchInForce(
        scaler=STARVED if starved else SubnetScaler(batch, HALF),
        exhausted=exhausted,
        starved=starved,
        age_seconds=age,
    )
    reading = SubnetReading(capacity=1000, reserved=reserved, containers=containers, owed=owed)
    decision = decide_by_ladder(standing, reading, USUAL)
    return decision.scaler, decision.step


def test_one_rung_down_while_above_the_lower_threshold() -> None:
    assert after(16, 801) == (SubnetScaler(8, HALF), BatchMove.DOWN)
    assert after(16, 801, age=29.0) == (SubnetScaler(16, HALF), BatchMove.NONE)
    assert after(1, 850) == (SubnetScaler(1, HALF), BatchMove.NONE)
    assert after(16, 800) == (SubnetScaler(16, HALF), BatchMove.NONE)


def test_one_rung_up_only_by_the_worst_case_of_every_node() -> None:
    reading = SubnetReading(capacity=1000, reserved=609, containers=10)
    assert expected_at_most(reading, SubnetScaler(8, HALF), SubnetScaler(16, HALF)) == 609 + 10 * 19
    assert after(8, 609) == (SubnetScaler(16, HALF), BatchMove.UP)
    assert after(8, 610) == (SubnetScaler(8, HALF), BatchMove.NONE)
    assert after(4, 100) == (SubnetScaler(8, HALF), BatchMove.UP)


def test_exhausted_is_batch_1_and_leaving_it_begins_at_the_bottom() -> None:
    assert after(16, 901) == (SubnetScaler(1, Fraction(1)), BatchMove.DOWN)
    assert after(1, 799, exhausted=True) == (SubnetScaler(1, HALF), BatchMove.NONE)


def test_starved_when_somebody_is_owed_and_nothing_is_left() -> None:
    assert after(16, 1000, owed=3) == (STARVED, BatchMove.DOWN)
    assert after(1, 995, starved=True, exhausted=True)[0] == STARVED
    assert after(1, 990, starved=True, exhausted=True)[0] == SubnetScaler(1, Fraction(1))
    assert after(1, 990, starved=True, exhausted=True, age=1.0)[0] == STARVED


def test_nothing_decided_yet_is_the_top() -> None:
    reading = SubnetReading(capacity=1000, reserved=0, containers=0)
    assert decide_by_ladder(BatchInForce(), reading, USUAL).scaler == SubnetScaler(16, HALF)
