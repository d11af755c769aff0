from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podtide.core.errors import InvalidRange
from podtide.core.ranges import AddressRange, IPAddress, IPNetwork, network_at
from podtide.resources.names import (
    LONGEST_NAME,
    InvalidName,
    Naming,
    SlicedRange,
    address_at,
    classic_pool_name,
    reservation_name,
    reserved_address,
)

SLICE = IPv4Network("10.3.0.0/24")
WIDE = IPv4Network("10.0.0.0/8")

addresses: st.SearchStrategy[IPAddress] = st.ip_addresses()
networks = st.sampled_from(["", "net-x", "a", "fd00"])


@st.composite
def addresses_in_networks(draw: st.DrawFn) -> tuple[IPNetwork, IPAddress]:
    address = draw(addresses)
    return network_at(address, draw(st.integers(0, address.max_prefixlen))), address


def sliced(
    network_name: str = "",
    *,
    range_: IPNetwork = WIDE,
    further: bool = False,
    configuration_name: str = "conf",
) -> SlicedRange:
    return SlicedRange(
        network_name=network_name, configuration_name=configuration_name, range=range_, further=further
    )


def test_a_shared_pool_is_named_by_its_range_and_network() -> None:
    assert classic_pool_name("", "192.168.2.0/24") == "192.168.2.0-24"
    assert classic_pool_name("blue", "2001:db8::/64") == "blue-2001-db8---64"


def test_a_named_network_names_its_slices_and_its_nodes_pools() -> None:
    network = sliced("test-network")
    assert network.node_slice_pool_name() == "test-network"
    assert network.node_pool_name("trusted-otter", SLICE) == "test-network-trusted-otter"


def test_an_unnamed_network_is_named_by_its_range() -> None:
    assert sliced().node_slice_pool_name() == "10.0.0.0-8"
    assert sliced().node_pool_name("trusted-otter", SLICE) == "10.0.0.0-8-trusted-otter"


def test_a_further_range_of_a_network_has_its_range_in_the_name() -> None:
    second = sliced("test-network", range_=IPv6Network("fd00::/56"), further=True)
    assert second.node_slice_pool_name() == "test-network-fd00---56"
    assert second.node_pool_name("otter", IPv6Network("fd00::/64")) == "test-network-fd00---56-otter"
    unnamed = sliced(range_=IPv6Network("fd00::/56"), further=True)
    assert unnamed.node_slice_pool_name() == "fd00---56"


def test_the_shipped_names_are_known_too() -> None:
    named, unnamed = sliced("test-network"), sliced()
    assert named.node_slice_pool_name(Naming.WHEREABOUTS) == "test-network"
    assert named.node_pool_name("otter", SLICE, Naming.WHEREABOUTS) == "test-network-otter-10.3.0.0-24"
    assert unnamed.node_slice_pool_name(Naming.WHEREABOUTS) == "conf"
    assert unnamed.node_pool_name("otter", SLICE, Naming.WHEREABOUTS) == "otter-10.3.0.0-24"


def test_a_setting_of_naming_is_one_of_two_words() -> None:
    assert [str(naming) for naming in Naming] == ["podtide", "whereabouts"]


@pytest.mark.parametrize("network", ["Blue", "blue_net", "-blue", "blue/net", "blue..net", "blue\n"])
def test_a_network_name_that_kubernetes_would_refuse_is_refused_first(network: str) -> None:
    with pytest.raises(InvalidName, match="choose another network_name"):
        classic_pool_name(network, "10.0.0.0/24")


def test_a_name_may_have_253_characters_and_no_more() -> None:
    fits = "n" * (LONGEST_NAME - len("blue-"))
    assert len(sliced("blue").node_pool_name(fits, SLICE)) == 253
    with pytest.raises(
        InvalidName, match="has 254 characters and Kubernetes takes 253: shorten network_name"
    ):
        sliced("blue").node_pool_name(f"{fits}n", SLICE)


def test_an_ipv6_address_that_ends_in_colons_still_makes_a_name() -> None:
    assert reservation_name("", IPv6Address("fd00:0:0:1::")) == "fd00-0-0-1--0"


def test_an_address_that_begins_with_colons_makes_no_name_in_an_unnamed_network() -> None:
    with pytest.raises(InvalidName, match="'--1'"):
        reservation_name("", IPv6Address("::1"))
    assert reservation_name("blue", IPv6Address("::1")) == "blue---1"


@given(networks, addresses)
def test_a_reservation_s_name_leads_back_to_its_address(network: str, address: IPAddress) -> None:
    assume(network or not str(address).startswith("::"))
    assert reserved_address(network, reservation_name(network, address)) == address


@given(networks, st.text(alphabet="0123456789abcdefx-.", max_size=20))
def test_any_name_at_all_is_an_address_or_none(network: str, name: str) -> None:
    found = reserved_address(network, name)
    assert found is None or isinstance(found, IPv4Address | IPv6Address)


def test_a_reservation_of_another_network_is_none_of_ours() -> None:
    assert reserved_address("blue", "red-10.0.0.1") is None
    assert reserved_address("", "red-10.0.0.1") is None
    assert reserved_address("red", "10.0.0.1") is None


@given(addresses_in_networks())
def test_an_address_s_key_leads_back_to_it_whatever_the_size(place: tuple[IPNetwork, IPAddress]) -> None:
    network, address = place
    key = str(AddressRange(network, ()).offset(address))
    assert key == str(int(key))
    assert address_at(network, key) == address


@pytest.mark.parametrize(
    "key", ["", "abc", "-1", "+1", " 1", "1_0", "1.0", "0x1", "\u0663", "\u00b2", "9" * 39, "1" * 5000]
)
def test_a_key_that_is_no_offset_stands_for_no_address(key: str) -> None:
    assert address_at(IPv6Network("fd00::/64"), key) is None


def test_an_offset_past_the_last_address_there_is_stands_for_none() -> None:
    assert address_at(IPv4Network("255.255.255.0/24"), "255") == IPv4Address("255.255.255.255")
    assert address_at(IPv4Network("255.255.255.0/24"), "256") is None


def test_an_address_outside_the_pool_has_no_key() -> None:
    for address in (IPv4Address("10.0.2.0"), IPv4Address("10.0.0.255"), IPv6Address("fd00::1")):
        with pytest.raises(InvalidRange, match=r"has no offset in 10\.0\.1\.0/24"):
            AddressRange(IPv4Network("10.0.1.0/24"), ()).offset(address)
