"""Controller and agent find the same objects of a network, whichever of its configurations they read."""

from ipaddress import ip_address, ip_network

import msgspec

from podtide.cni.ipam_config import IpamConfig, parse_config
from podtide.networks.network import Network, network_of
from podtide.resources.names import Naming


def network(**ipam: object) -> Network:
    found = network_of(config(**ipam))
    assert found is not None
    return found


def config(**ipam: object) -> IpamConfig:
    document = {"cniVersion": "1.0.0", "name": "blue-conf", "ipam": {"type": "podtide", **ipam}}
    return parse_config(msgspec.json.encode(document))


def test_without_a_range_it_is_the_primary_network() -> None:
    assert network_of(config()) is None


def test_a_named_network_is_its_name_whatever_its_range() -> None:
    assert network(range="10.0.0.0/16", network_name="blue").key == "blue"
    assert network(range="10.1.0.0/16", network_name="blue").key == "blue"


def test_an_unnamed_network_is_its_first_range() -> None:
    assert network(range="10.0.0.7/16").key == network(range="10.0.0.0/16").key == "10.0.0.0-16"
    assert network(range="10.1.0.0/16").key != "10.0.0.0-16"


def test_in_classic_mode_all_nodes_share_a_pool_named_after_network_and_range() -> None:
    [only] = network(range="10.0.0.0/16", network_name="blue").ranges
    assert only.slicing is None
    assert only.classic_pool_name() == "blue-10.0.0.0-16"


def test_each_sliced_range_has_names_of_its_own() -> None:
    sliced = network(
        ipRanges=[
            {"range": "10.0.0.0/16", "node_slice_size": "/24"},
            {"range": "fd00::/48", "node_slice_size": 64},
        ],
        network_name="blue",
    )
    first, second = sliced.ranges
    assert first.slicing is not None
    assert first.slicing.count == 256
    assert [each.node_slice_pool_name() for each in sliced.ranges] == ["blue", "blue-fd00---48"]
    slice_ = ip_network("10.0.1.0/24")
    assert first.node_pool_name("n1", slice_) == "blue-n1"
    assert first.node_pool_name("n1", slice_, Naming.WHEREABOUTS) == "blue-n1-10.0.1.0-24"
    assert second.node_pool_name("n1", ip_network("fd00::/64")) == "blue-fd00---48-n1"


def test_reservations_carry_the_networks_name_and_can_be_turned_off() -> None:
    blue = network(range="10.0.0.0/16", network_name="blue", enable_overlapping_ranges=False)
    assert not blue.guarded
    assert blue.ranges[0].reservation_name(ip_address("10.0.0.5")) == "blue-10.0.0.5"
    assert network(range="10.0.0.0/16").guarded
