from fractions import Fraction

import pytest

from podtide.core.errors import InvalidScaler
from podtide.core.subnet.scaler import (
    EXHAUSTED_BATCH,
    EXHAUSTED_BUFFER,
    STARVED_BUFFER,
    NodeScaler,
    Scaler,
    SubnetScaler,
    effective_scaler,
    release_percent,
    request_percent,
)

NOTHING = NodeScaler()


def test_the_defaults_are_those_of_current_deployments() -> None:
    scaler = effective_scaler(NOTHING, None)
    assert scaler == Scaler(batch=16, buffer=Fraction(1, 2), max_ips=250)
    assert [scaler.minimum_free, scaler.maximum_free] == [8, 24]


def test_the_nodes_own_percent_becomes_a_fraction() -> None:
    assert effective_scaler(NodeScaler(batch=10, request_percent=33), None).buffer == Fraction(33, 100)


def test_the_cluster_subnet_goes_before_the_node() -> None:
    node = NodeScaler(batch=16, request_percent=50, max_ips=100)
    assert effective_scaler(node, SubnetScaler(4, Fraction(3, 4))) == Scaler(4, Fraction(3, 4), 100)


def test_exhaustion_counts_only_where_there_is_no_cluster_subnet() -> None:
    node = NodeScaler(batch=16, request_percent=50)
    assert effective_scaler(node, None, exhausted=True) == Scaler(1, Fraction(1))
    assert effective_scaler(node, SubnetScaler(8, Fraction(1, 2)), exhausted=True) == Scaler(
        8, Fraction(1, 2)
    )


@pytest.mark.parametrize(("max_ips", "in_force"), [(None, 250), (0, 250), (-5, 250), (1, 1), (30, 30)])
def test_a_maximum_below_one_or_absent_is_250(max_ips: int | None, in_force: int) -> None:
    assert effective_scaler(NodeScaler(max_ips=max_ips), None).max_ips == in_force


@pytest.mark.parametrize(("batch", "in_force"), [(-3, 1), (0, 1), (1, 1), (64, 64), (65, 64), (1000, 64)])
def test_the_batch_is_clamped_to_one_and_the_maximum(batch: int, in_force: int) -> None:
    assert effective_scaler(NodeScaler(batch=batch, max_ips=64), None).batch == in_force
    assert effective_scaler(NodeScaler(max_ips=64), SubnetScaler(batch, Fraction(0))).batch == in_force


def test_a_negative_threshold_from_the_wire_reads_as_none_free() -> None:
    assert effective_scaler(NodeScaler(request_percent=-1), None).buffer == 0
    assert effective_scaler(NOTHING, SubnetScaler(1, Fraction(-1))).buffer == 0


@pytest.mark.parametrize(
    ("batch", "buffer", "max_ips", "words"),
    [
        (0, Fraction(0), 1, "batch 0 is too small: addresses come in batches of at least 1"),
        (
            1,
            Fraction(-1, 2),
            1,
            "buffer -0.5 is negative: give 0 or more, such as 0.5 for half a batch",
        ),
        (1, Fraction(0), 0, "maximum of 0 addresses is too small: a node may hold at least 1"),
    ],
)
def test_what_a_person_states_is_refused_rather_than_clamped(
    batch: int, buffer: Fraction, max_ips: int, words: str
) -> None:
    with pytest.raises(InvalidScaler) as refused:
        Scaler(batch=batch, buffer=buffer, max_ips=max_ips)
    assert str(refused.value) == words


def test_the_least_scaler_is_allowed() -> None:
    assert Scaler(batch=1, buffer=Fraction(0), max_ips=1).maximum_free == 1


def test_thresholds_in_percent_are_one_batch_apart() -> None:
    assert request_percent(Fraction(1, 2)) == 50
    assert request_percent(Fraction(1, 3)) == 34
    assert release_percent(50) == 150
    assert release_percent(50, 150) == 150
    assert release_percent(50, 170) == 170
    with pytest.raises(
        InvalidScaler, match=r"149 is less than requestThresholdPercent 50 \+ 100.*set it to 150 or more"
    ):
        release_percent(50, 149)


def test_a_node_that_is_told_to_keep_nothing_does_so_also_when_its_subnet_is_exhausted() -> None:
    starved = NodeScaler(batch=1, request_percent=0)
    assert effective_scaler(starved, None, exhausted=True) == Scaler(1, Fraction(0))
    for frugal in (NodeScaler(batch=2, request_percent=0), NodeScaler(batch=1, request_percent=1)):
        assert effective_scaler(frugal, None, exhausted=True) == Scaler(1, Fraction(1))


def test_what_is_kept_when_exhausted_and_when_starved() -> None:
    assert (1, Fraction(1), Fraction(0)) == (EXHAUSTED_BATCH, EXHAUSTED_BUFFER, STARVED_BUFFER)


def test_parameters_are_values() -> None:
    assert (
        len(
            {
                Scaler(),
                Scaler(),
                NodeScaler(),
                NodeScaler(),
                SubnetScaler(1, Fraction(1)),
                SubnetScaler(1, Fraction(1)),
            }
        )
        == 3
    )
