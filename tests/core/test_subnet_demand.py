"""Who has answered what is in force."""

from fractions import Fraction

import pytest
from msgspec import structs

from podtide.core.subnet.demand_by_batch import ContainerDemand, SubnetDemand
from podtide.core.subnet.scaler import SubnetScaler
from podtide.core.subnet.statement import StatedDemand

EIGHT = SubnetScaler(8, Fraction(1, 2))
SUBNET = SubnetDemand(holdings={}, ungoverned=0, in_force=EIGHT, top=16, exhausted=False, is_overdue=False)


@pytest.mark.parametrize(
    ("stated", "has"),
    [
        (StatedDemand(batch=8, buffer="0.5"), True),
        (StatedDemand(batch=16, buffer="0.5"), False),
        (StatedDemand(batch=4, buffer="0.5"), False),
        (StatedDemand(batch=8, buffer="0.25"), False),
        (StatedDemand(batch=6, buffer="0.5", max_ips=6), True),  # no node goes by more than its maximum
        (StatedDemand(), True),  # it holds nothing that a batch governs
        (StatedDemand(batch=4, buffer="0.5", of_two=True), True),  # the other subnet's
        (StatedDemand(batch=16, buffer="0.5", of_two=True), False),
        (StatedDemand(batch=1, buffer="1"), False),
    ],
)
def test_a_container_has_answered_when_it_goes_by_what_is_in_force(
    stated: StatedDemand, *, has: bool
) -> None:
    assert SUBNET.has_answered(stated) is has


def test_an_agent_that_knows_only_of_exhaustion_has_answered_with_batch_1() -> None:
    told = structs.replace(SUBNET, exhausted=True)
    assert told.has_answered(StatedDemand(batch=1, buffer="1"))
    assert not told.has_answered(StatedDemand(batch=1, buffer="0.5"))


def test_a_buffer_is_compared_as_a_node_network_config_says_it() -> None:
    third = structs.replace(SUBNET, in_force=SubnetScaler(8, Fraction(1, 3)))
    assert third.has_answered(StatedDemand(batch=8, buffer="0.34"))
    assert third.has_answered(StatedDemand(batch=8, buffer="0.3333333333333333"))


def test_the_unanswered_are_counted() -> None:
    late = ContainerDemand(StatedDemand(batch=16, buffer="0.5"), 16)
    seen = structs.replace(
        SUBNET, holdings={late: 3, ContainerDemand(StatedDemand(batch=8, buffer="0.5"), 8): 2}
    )
    assert seen.unanswered == 3
