"""Which gateways a node's bridge should have, and what to change on it."""

from ipaddress import ip_interface, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.pool.bridge_gateways import (
    BridgeAddress,
    GatewayChanges,
    decide_changes,
    gateways_needed,
)

BOTH = {"10.1.0.0/24": "10.1.0.1", "10.9.0.0/28": "10.9.0.1"}


def ours(*addresses: str) -> list[BridgeAddress]:
    return [BridgeAddress(address, is_ours=True) for address in addresses]


def test_every_cidr_that_the_node_has_addresses_of_needs_its_gateway() -> None:
    assert gateways_needed(BOTH, ["10.1.0.5", "10.9.0.5", "10.9.0.6"]) == {
        "10.1.0.0/24": "10.1.0.1/24",
        "10.9.0.0/28": "10.9.0.1/28",
    }


def test_a_cidr_that_the_node_has_nothing_of_needs_none() -> None:
    assert gateways_needed(BOTH, ["10.9.0.5"]) == {"10.9.0.0/28": "10.9.0.1/28"}
    assert gateways_needed(BOTH, []) == {}


def test_both_families_are_alike() -> None:
    stated = {"fd01::/64": "fd01:0::1", "10.1.0.0/24": "10.1.0.1"}
    assert gateways_needed(stated, ["fd01::5"]) == {"fd01::/64": "fd01::1/64"}


@pytest.mark.parametrize(
    ("cidr", "first"),
    [("10.1.0.0/24", "10.1.0.1/24"), ("fd01::/64", "fd01::1/64"), ("10.1.0.4/31", "10.1.0.5/31")],
)
def test_a_cidr_that_states_no_gateway_has_its_first_address(cidr: str, first: str) -> None:
    held = [str(ip_network(cidr)[0 if cidr.endswith("/31") else 5])]
    assert gateways_needed({cidr: ""}, held) == {cidr: first}


@pytest.mark.parametrize(
    ("cidr", "gateway", "held"),
    [
        ("10.1.0.0/24", "", "10.1.0.1"),
        ("10.1.0.0/24", "10.1.0.5", "10.1.0.5"),
        ("10.1.0.7/32", "", "10.1.0.7"),
        ("10.1.0.0/24", "10.2.0.1", "10.1.0.5"),
        ("10.1.0.0/24", "nowhere", "10.1.0.5"),
        ("10.1.0.0", "10.1.0.1", "10.1.0.5"),
        ("", "", "10.1.0.5"),
    ],
)
def test_no_gateway_is_a_pods_address_or_one_that_cannot_be(cidr: str, gateway: str, held: str) -> None:
    assert gateways_needed({cidr: gateway}, [held]) == {}


def test_what_is_missing_is_added_and_what_is_there_stays() -> None:
    changes = decide_changes(["10.1.0.1/24", "10.9.0.1/28"], ["10.1.0.5"], ours("10.1.0.1/24"))
    assert changes == GatewayChanges(add=("10.9.0.1/28",))


def test_a_gateway_is_removed_with_the_last_address_of_its_cidr() -> None:
    present = ours("10.1.0.1/24", "10.9.0.1/28")
    assert decide_changes(["10.1.0.1/24"], ["10.1.0.5", "10.9.0.5"], present) == GatewayChanges()
    assert decide_changes(["10.1.0.1/24"], ["10.1.0.5"], present) == GatewayChanges(remove=("10.9.0.1/28",))


def test_an_address_that_is_not_podtides_is_left_alone() -> None:
    present = [BridgeAddress("192.168.9.1/24", is_ours=False), BridgeAddress("fe80::1/64", is_ours=False)]
    assert decide_changes([], [], present) == GatewayChanges()


def test_the_former_gateway_of_a_cidr_stays_for_the_pods_that_know_it() -> None:
    changes = decide_changes(["10.1.0.2/24"], ["10.1.0.5"], ours("10.1.0.1/24"))
    assert changes == GatewayChanges(add=("10.1.0.2/24",))


addresses = st.integers(0, 3).flatmap(lambda net: st.integers(0, 15).map(lambda host: f"10.{net}.0.{host}"))


@given(
    st.dictionaries(
        st.integers(0, 3).map(lambda net: f"10.{net}.0.0/28"), st.one_of(st.just(""), addresses), max_size=4
    ),
    st.frozensets(addresses, max_size=8),
    st.lists(st.tuples(addresses, st.booleans()), max_size=5, unique_by=lambda each: each[0]),
)
def test_once_changed_the_bridge_has_all_it_needs_nothing_stale_and_no_pods_address(
    stated: dict[str, str], held: frozenset[str], there: list[tuple[str, bool]]
) -> None:
    present = [BridgeAddress(f"{ip}/28", is_ours=is_ours) for ip, is_ours in there]
    needed = tuple(gateways_needed(stated, held).values())
    changes = decide_changes(needed, held, present)
    after = [each for each in present if each.address not in changes.remove] + ours(*changes.add)
    assert set(needed) <= {each.address for each in after}
    assert not {str(ip_interface(gateway).ip) for gateway in needed} & held
    for each in after:
        network = ip_interface(each.address).network
        assert not each.is_ours or any(ip_interface(ip).ip in network for ip in held)
    assert {each.address for each in present if not each.is_ours} <= {each.address for each in after}
    assert decide_changes(needed, held, after) == GatewayChanges(), "and then there is nothing to do"
