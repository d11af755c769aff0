"""Names and keys as Whereabouts 0.9.4 formed them, recorded from its own code (tests/recorded)."""

from ipaddress import ip_address, ip_network

import msgspec
import pytest

from podtide.core.errors import InvalidRange
from podtide.core.ranges import AddressRange
from podtide.resources.names import (
    InvalidName,
    Naming,
    SlicedRange,
    address_at,
    classic_pool_name,
    normalise_address,
    normalise_range,
    reservation_name,
)
from recordings import whereabouts


def recorded(section: str) -> pytest.MarkDecorator:
    cases = whereabouts("names")[section]
    return pytest.mark.parametrize("case", cases, ids=lambda case: msgspec.json.encode(case).decode())


@recorded("normalizeRange")
def test_a_range_is_normalised_the_same(case: dict[str, str]) -> None:
    assert normalise_range(case["in"]) == case["out"]


@recorded("IPPoolName")
def test_a_pool_has_the_same_name(case: dict[str, str]) -> None:
    network, node, cidr = case["network_name"], case["node_name"], case["range"]
    if node:
        slices = SlicedRange(network_name=network, configuration_name="", range=ip_network("10.0.0.0/8"))
        assert slices.node_pool_name(node, ip_network(cidr), Naming.WHEREABOUTS) == case["out"]
    else:
        assert classic_pool_name(network, cidr) == case["out"]


@recorded("NormalizeIP")
def test_a_reservation_has_the_same_name(case: dict[str, str]) -> None:
    network, address = case["network_name"], ip_address(case["ip"])
    if case["out"].startswith("-"):
        # Whereabouts forms a name that no API server takes, and the ADD fails there. The text is the same (design W14);
        # podtide says what is wrong with it before it writes (design T26).
        assert normalise_address(address) == case["out"]
        with pytest.raises(InvalidName):
            reservation_name(network, address)
    else:
        assert reservation_name(network, address) == case["out"]


@recorded("allocation_key_to_ip")
def test_a_key_stands_for_the_same_address(case: dict[str, str | None]) -> None:
    assert case["key"] is not None
    # Go prints its missing address as <nil>.
    expected = None if case["ip"] in {None, "<nil>"} else ip_address(case["ip"] or "")
    assert address_at(ip_network(case["pool_range"] or ""), case["key"]) == expected


@recorded("ip_to_allocation_key")
def test_an_address_has_the_same_key(case: dict[str, str]) -> None:
    network, address = ip_network(case["pool_range"]), ip_address(case["ip"])
    of = AddressRange(network, ())
    if address in network:
        assert str(of.offset(address)) == case["key"]
    else:
        # Whereabouts takes the distance without its sign, so 10.0.0.5 gets the key of 10.0.1.251, and releasing
        # the one would free the other. podtide refuses: an address outside the range has no key (design T27).
        assert str(address_at(network, case["key"])) == "10.0.1.251"
        with pytest.raises(InvalidRange):
            of.offset(address)
