"""A change of the batch in force counts once, whoever writes it how often."""

from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus, ScalerInForce
from podtide.simulation.batch_moves import BatchMoves
from podtide.simulation.trace import ClusterWrite


def told(batch: int | None, subnet: str = "pods", cluster: str = "") -> ClusterWrite:
    scaler = ScalerInForce(batch=batch, buffer=0.5) if batch is not None else None
    item = ClusterSubnet(metadata=ObjectMeta(name=subnet), status=ClusterSubnetStatus(scaler=scaler))
    return ClusterWrite(
        at=0.0,
        program="controller",
        verb="replace_status",
        kind="ClusterSubnet",
        name=subnet,
        item=item,
        cluster=cluster,
    )


def gone(subnet: str = "pods") -> ClusterWrite:
    return ClusterWrite(
        at=0.0, program="somebody", verb="delete", kind="ClusterSubnet", name=subnet, item=None
    )


def moves(*writes: ClusterWrite, of_cluster: str = "") -> int:
    counted = BatchMoves(of_cluster)
    for write in writes:
        counted.hear(write)
    return counted.count


def test_the_first_batch_is_no_move_and_neither_is_one_that_is_told_again() -> None:
    assert moves(told(16), told(16), told(16)) == 0
    assert moves(told(16), told(8), told(8), told(16)) == 2


def test_a_cluster_subnet_that_was_deleted_or_says_nothing_changes_nothing() -> None:
    assert moves(told(8), gone(), told(None), told(8)) == 0
    assert moves(told(8), gone(), told(16)) == 1


def test_each_subnet_has_a_batch_of_its_own() -> None:
    assert moves(told(16, "red"), told(8, "blue"), told(16, "red"), told(8, "blue")) == 0


def test_of_several_clusters_that_tell_the_same_one_counts() -> None:
    late = [
        told(16, cluster="west"),
        told(8, cluster="east"),
        told(16, cluster="west"),
        told(8, cluster="west"),
    ]
    assert moves(told(16, cluster="east"), *late, of_cluster="east") == 1
