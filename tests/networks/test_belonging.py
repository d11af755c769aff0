"""What objects of a network can be called."""

import pytest

from podtide.core.ranges import parse_range
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import node_slice_pool_names
from podtide.resources.names import Naming


def sliced(network_name: str, configuration_name: str) -> NetworkRange:
    return NetworkRange(
        network_name=network_name,
        configuration_name=configuration_name,
        addresses=parse_range("10.0.0.0/16").range,
        slice_size=24,
        further=False,
    )


def test_the_name_by_the_preferred_rule_comes_first() -> None:
    unnamed = sliced("", "mynet")
    assert node_slice_pool_names(unnamed) == ["10.0.0.0-16", "mynet"]
    assert node_slice_pool_names(unnamed, Naming.WHEREABOUTS) == ["mynet", "10.0.0.0-16"]


@pytest.mark.parametrize("preferred", Naming)
def test_a_name_that_both_rules_give_is_there_once(preferred: Naming) -> None:
    assert node_slice_pool_names(sliced("blue", "mynet"), preferred) == ["blue"]


@pytest.mark.parametrize("preferred", Naming)
def test_a_name_that_kubernetes_does_not_take_is_none(preferred: Naming) -> None:
    assert node_slice_pool_names(sliced("", "MyNet"), preferred) == ["10.0.0.0-16"]
