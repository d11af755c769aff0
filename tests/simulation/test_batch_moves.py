"""A change of the batch in force counts once, whoever decided it."""

from podtide.simulation.checks.batch_moves import BatchMoves
from podtide.simulation.trace import AllocatorCall


def decided(batch: int, subnet: str = "pods", cluster: str = "") -> AllocatorCall:
    return AllocatorCall(
        at=0.0, program="controller", call="put_in_force", subject=subnet, batch=batch, cluster=cluster
    )


def moves(*calls: AllocatorCall) -> int:
    counted = BatchMoves()
    for call in calls:
        counted.hear(call)
    return counted.count


def test_the_first_batch_is_no_move_and_neither_is_one_that_is_decided_again() -> None:
    assert moves(decided(16), decided(16), decided(16)) == 0
    assert moves(decided(16), decided(8), decided(8), decided(16)) == 2


def test_other_calls_say_nothing_of_the_batch() -> None:
    other = AllocatorCall(at=0.0, program="controller", call="put_container", subject="pods")
    assert moves(decided(8), other, decided(8)) == 0


def test_each_subnet_has_a_batch_of_its_own() -> None:
    assert moves(decided(16, "red"), decided(8, "blue"), decided(16, "red"), decided(8, "blue")) == 0


def test_clusters_that_share_a_subnet_have_one_batch() -> None:
    assert moves(decided(16, cluster="east"), decided(8, cluster="west"), decided(8, cluster="east")) == 1
