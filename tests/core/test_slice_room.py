"""How many pods a node's slices have addresses for."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.errors import RangeFull
from podtide.core.networks.allocations import Allocation, Allocations
from podtide.core.networks.slice_room import MOST_PODS, pods_of_network, pods_of_slice
from podtide.core.ranges import AddressRange, IPNetwork, parse_range

SLICE = ip_network("10.0.1.0/28")


def a_range(text: str = "10.0.0.0/16", excludes: tuple[str, ...] = (), **more: str) -> AddressRange:
    return parse_range(text, excludes=excludes, **more).range


def handed_out(slice_: IPNetwork, range_: AddressRange, held: tuple[int, ...] = ()) -> int:
    """How many pods have an address of the slice when an agent has no more to give; the first ones hold these."""
    pool = Allocations(
        AddressRange(slice_, ()), {str(offset): Allocation(f"s{offset}", "d/p", "net1") for offset in held}
    )
    while True:
        asking = Allocation(f"box-{len(pool)}", f"default/p{len(pool)}", "net1", pod_uid=f"u{len(pool)}")
        try:
            address = pool.choose(asking, range_.part(slice_), is_ours=lambda _: False)
        except RangeFull:
            return len(pool)
        pool.put(address, asking)


def test_of_a_slice_all_but_the_first_and_the_last_address_count() -> None:
    assert pods_of_slice(SLICE, [a_range()]) == 14


def test_excludes_ends_and_the_gateway_take_away_what_of_them_is_in_the_slice() -> None:
    range_ = a_range(
        excludes=("10.0.1.4/30", "10.0.2.0/24"), start="10.0.1.3", end="10.0.1.12", gateway="10.0.1.10"
    )
    assert pods_of_slice(SLICE, [range_]) == 10 - 4 - 1


def test_where_definitions_differ_an_address_counts_that_any_of_them_gives() -> None:
    low, high = a_range(end="10.0.1.5"), a_range(start="10.0.1.4", end="10.0.1.8")
    assert pods_of_slice(SLICE, [low, high]) == 8


def test_what_a_pod_holds_counts_though_it_is_not_given_any_more() -> None:
    assert pods_of_slice(SLICE, [a_range(excludes=("10.0.1.8/29",))], ["3", "9", "10"]) == 7 + 2


@pytest.mark.parametrize("key", ["16", "-1", "x", "", "9" * 5_000])
def test_a_key_that_is_not_an_offset_in_the_slice_counts_for_nothing(key: str) -> None:
    assert pods_of_slice(SLICE, [a_range()], [key]) == 14


def test_two_keys_of_one_offset_count_once() -> None:
    assert pods_of_slice(SLICE, [], ["3", "03"]) == 1


@pytest.mark.parametrize("other", ["10.1.0.0/16", "10.0.1.0/29", "fd00::/64"])
def test_of_a_slice_that_is_not_within_the_range_only_what_pods_hold_counts(other: str) -> None:
    assert pods_of_slice(SLICE, [a_range(other)], ["3", "4"]) == 2


def test_a_slice_of_more_addresses_than_could_be_listed_counts_as_a_million() -> None:
    slice_ = ip_network("fd00:0:0:1::/64")
    assert pods_of_slice(slice_, [a_range("fd00::/48")], ["18446744073709551615"]) == MOST_PODS == 1_000_000


@given(
    start=st.integers(0, 40),
    end=st.integers(20, 63),
    excluded=st.sets(st.integers(0, 63), max_size=8),
    held=st.sets(st.integers(0, 15), max_size=16),
)
def test_the_agent_gives_exactly_as_many_as_are_counted(
    start: int, end: int, excluded: set[int], held: set[int]
) -> None:
    range_ = a_range(
        "10.0.1.0/26",
        tuple(f"10.0.1.{offset}" for offset in sorted(excluded)),
        start=f"10.0.1.{start}",
        end=f"10.0.1.{end}",
    )
    slice_ = ip_network("10.0.1.16/28")
    counted = pods_of_slice(slice_, [range_], [str(offset) for offset in held])
    assert counted == handed_out(slice_, range_, tuple(held))
    assert counted >= len(held)


@given(st.lists(st.integers(0, MOST_PODS), min_size=1))
def test_the_range_that_has_fewest_decides(slices: list[int]) -> None:
    pods = pods_of_network(slices)
    assert pods in slices
    assert all(pods <= each for each in slices)


def test_a_network_without_slices_has_addresses_for_no_pod() -> None:
    assert pods_of_network([]) == 0
