"""What an IPAM range means, what it tolerates, and that "lowest free" agrees with trying one address after another."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.address_set import AddressSet
from podtide.core.errors import InvalidRange, MixedFamilies
from podtide.core.intervals import Interval
from podtide.core.ranges import (
    AddressRange,
    IPAddress,
    IPNetwork,
    network_at,
    overlap,
    parse_address,
    parse_network,
    parse_range,
)


def bounds(parsed: AddressRange) -> tuple[str, str]:
    return str(parsed.address(parsed.intervals[0].first)), str(parsed.address(parsed.intervals[-1].last))


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "network", "first", "last"),
    [
        ("192.168.2.225/28", "192.168.2.224/28", "192.168.2.225", "192.168.2.238"),
        ("192.168.2.225/8", "192.0.0.0/8", "192.0.0.1", "192.255.255.254"),
        ("10.0.0.0/30", "10.0.0.0/30", "10.0.0.1", "10.0.0.2"),
        ("0.0.0.0/0", "0.0.0.0/0", "0.0.0.1", "255.255.255.254"),
        ("fd00::5/126", "fd00::4/126", "fd00::5", "fd00::6"),
        ("::/0", "::/0", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"),
        ("10.0.0.5-10.0.0.25/24", "10.0.0.0/24", "10.0.0.5", "10.0.0.25"),
        ("00192.00168.1.5-000000192.168.1.25/24", "192.168.1.0/24", "192.168.1.5", "192.168.1.25"),
        ("fd00::10-fd00::20/64", "fd00::/64", "fd00::10", "fd00::20"),
        ("10.0.0.0-10.0.0.255/24", "10.0.0.0/24", "10.0.0.1", "10.0.0.254"),
        ("10.0.0.7-10.0.0.7/24", "10.0.0.0/24", "10.0.0.7", "10.0.0.7"),
    ],
)
def test_both_forms_of_a_range_are_read_without_a_warning(
    text: str, network: str, first: str, last: str
) -> None:
    parsed = parse_range(text)
    assert parsed.warnings == ()
    assert str(parsed.range) == network
    assert bounds(parsed.range) == (first, last)


def test_start_and_end_bound_the_range() -> None:
    parsed = parse_range("00192.00168.1.0/24", start="00192.00168.1.44", end="00192.00168.01.209")
    assert bounds(parsed.range) == ("192.168.1.44", "192.168.1.209")
    assert parsed.range.capacity == 166


@pytest.mark.parametrize(
    ("start", "end"), [("10.0.0.0", None), (None, "10.0.0.255"), ("", ""), ("10.0.0.0", "10.0.0.255")]
)
def test_a_start_or_end_at_the_edge_of_the_network_loses_nothing_and_needs_no_warning(
    start: str | None, end: str | None
) -> None:
    parsed = parse_range("10.0.0.0/24", start=start, end=end)
    assert parsed.warnings == ()
    assert bounds(parsed.range) == ("10.0.0.1", "10.0.0.254")


@pytest.mark.parametrize(
    ("text", "start", "end", "kept", "warning"),
    [
        (
            "10.0.0.0/24",
            "10.0.1.5",
            None,
            ("10.0.0.1", "10.0.0.254"),
            "the start 10.0.1.5 is ignored: 10.0.0.0/24 can start at 10.0.0.1 to 10.0.0.254",
        ),
        (
            "10.0.0.0/24",
            "10.0.0.255",
            None,
            ("10.0.0.1", "10.0.0.254"),
            "the start 10.0.0.255 is ignored: 10.0.0.0/24 can start at 10.0.0.1 to 10.0.0.254",
        ),
        (
            "10.0.0.0/24",
            "9.255.255.255",
            None,
            ("10.0.0.1", "10.0.0.254"),
            "the start 9.255.255.255 is ignored: 10.0.0.0/24 can start at 10.0.0.1 to 10.0.0.254",
        ),
        (
            "10.0.0.0/24",
            None,
            "10.0.1.5",
            ("10.0.0.1", "10.0.0.254"),
            "the end 10.0.1.5 is ignored: 10.0.0.0/24 can end at 10.0.0.1 to 10.0.0.254",
        ),
        (
            "10.0.0.0/24",
            "10.0.0.9",
            "10.0.0.5",
            ("10.0.0.9", "10.0.0.254"),
            "the end 10.0.0.5 is ignored: 10.0.0.0/24 can end at 10.0.0.9 to 10.0.0.254",
        ),
        (
            "10.0.0.9-10.0.0.5/24",
            None,
            None,
            ("10.0.0.9", "10.0.0.254"),
            "the end 10.0.0.5 is ignored: 10.0.0.0/24 can end at 10.0.0.9 to 10.0.0.254",
        ),
        (
            "10.0.0.0/24",
            "nope",
            None,
            ("10.0.0.1", "10.0.0.254"),
            "range_start is ignored: 'nope' is not a valid IP address such as 10.0.0.5 or fd00::5",
        ),
        (
            "10.0.0.0/24",
            None,
            "10.0.0.999",
            ("10.0.0.1", "10.0.0.254"),
            "range_end is ignored: '10.0.0.999' is not a valid IP address such as 10.0.0.5 or fd00::5",
        ),
        (
            "10.0.0.5-10.0.0.25/24",
            "10.0.0.7",
            None,
            ("10.0.0.5", "10.0.0.25"),
            "range_start 10.0.0.7 is ignored: range 10.0.0.5-10.0.0.25/24 names its own ends",
        ),
    ],
)
def test_a_start_or_end_that_cannot_be_used_is_ignored_with_a_warning(
    text: str, start: str | None, end: str | None, kept: tuple[str, str], warning: str
) -> None:
    parsed = parse_range(text, start=start, end=end)
    assert bounds(parsed.range) == kept
    assert parsed.warnings == (warning,)


def test_excludes_and_the_gateway_are_never_handed_out() -> None:
    parsed = parse_range(
        "10.0.0.0/28", excludes=["10.0.0.1", "10.0.0.5/31", "10.0.0.12/30"], gateway="10.0.0.7"
    )
    assert parsed.warnings == ()
    assert parsed.range.intervals == (Interval(2, 3), Interval(6, 6), Interval(8, 11))
    assert parsed.range.capacity == 7
    assert IPv4Address("10.0.0.7") not in parsed.range
    assert IPv4Address("10.0.0.6") in parsed.range


@pytest.mark.parametrize("exclude", ["fd00::/64", "10.0.1.0/24", "192.168.0.1"])
def test_an_exclude_that_excludes_nothing_is_ignored_with_a_warning(exclude: str) -> None:
    parsed = parse_range("10.0.0.0/24", excludes=[exclude])
    assert parsed.range.capacity == 254
    assert parsed.warnings == (f"exclude {exclude} is ignored: nothing of it is in 10.0.0.0/24",)


@pytest.mark.parametrize("gateway", ["192.168.10.1", "fd00::1", "", "10.0.0.0"])
def test_a_gateway_elsewhere_withholds_nothing(gateway: str) -> None:
    parsed = parse_range("10.0.0.0/24", gateway=gateway)
    assert parsed.range.capacity == 254
    assert parsed.warnings == ()


def test_a_range_of_which_nothing_is_left_has_no_capacity_and_a_warning() -> None:
    parsed = parse_range("10.0.0.0/29", excludes=["10.0.0.0/29"])
    assert parsed.range.capacity == 0
    assert parsed.range.lowest_free(AddressSet(8)) is None
    assert parsed.warnings == (
        "range 10.0.0.0/29: excludes and gateway leave no address that could be handed out",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "range: '' is not a valid IP address"),
        ("10.0.0.0", "range: '10.0.0.0' has no prefix length (as 10.0.0.0/24 has)"),
        ("fd00::", "range: 'fd00::' has no prefix length (as fd00::/120 has)"),
        ("10.0.0.0/33", "range: '10.0.0.0/33' has no prefix length of IPv4 (/0 to /32)"),
        ("fd00::/129", "range: 'fd00::/129' has no prefix length of IPv6 (/0 to /128)"),
        ("10.0.0.0/-1", "range: '10.0.0.0/' is not a valid IP address"),
        ("10.0.0.0/", "range: '10.0.0.0/' has no prefix length of IPv4"),
        ("10.0.0.0/255.255.255.0", "has no prefix length of IPv4"),
        ("10.0.0.0/" + "9" * 5000, "has no prefix length of IPv4"),
        ("10.0.0/24", "range: '10.0.0' is not a valid IP address"),
        ("10.0.0.256/24", "range: '10.0.0.256' is not a valid IP address"),
        ("fe80::1%eth0/64", "range: 'fe80::1%eth0' is not a valid IP address"),
        ("x-10.0.0.5/24", "range: 'x' is not a valid IP address"),
        ("10.0.0.1-10.0.0.5", "range: '10.0.0.5' has no prefix length"),
        ("10.0.0.1-10.0.1.5/24", "range 10.0.0.1-10.0.1.5/24 begins outside of 10.0.1.0/24, where it ends"),
        (
            "10.0.0.0/31",
            "range 10.0.0.0/31 has no usable address, as its first and its last are never handed out: use /30",
        ),
        ("10.0.0.1/32", "range 10.0.0.1/32 has no usable address"),
        ("fd00::/127", "use /126 or wider"),
        ("fd00::/128", "use /126 or wider"),
    ],
)
def test_what_is_no_range_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidRange) as refusal:
        parse_range(text)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        (
            "nope",
            "exclude: 'nope' is not a valid IP address such as 10.0.0.5 or fd00::5; write an address, or a CIDR",
        ),
        ("10.0.0.0/40", "exclude: '10.0.0.0/40' has no prefix length of IPv4 (/0 to /32)"),
        (
            "010.0.0.1",
            "exclude: '010.0.0.1' has leading zeroes, which some programs read as octal: write 10.0.0.1",
        ),
        (
            "10.0.0.010/31",
            "exclude: '10.0.0.010/31' has leading zeroes, which some programs read as octal: write 10.0.0.10/31",
        ),
    ],
)
def test_an_exclude_that_is_no_address_is_refused(exclude: str, message: str) -> None:
    with pytest.raises(InvalidRange) as refusal:
        parse_range("10.0.0.0/24", excludes=[exclude])
    assert message in str(refusal.value)


def test_a_gateway_that_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidRange, match="gateway: 'router' is not a valid IP address"):
        parse_range("10.0.0.0/24", gateway="router")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("10.0.0.1-fd00::5/64", None, None),
        ("fd00::1-10.0.0.5/24", None, None),
        ("10.0.0.0/24", "fd00::1", None),
        ("fd00::/64", None, "10.0.0.5"),
    ],
)
def test_ends_of_two_families_are_refused(text: str, start: str | None, end: str | None) -> None:
    with pytest.raises(MixedFamilies, match="use one family"):
        parse_range(text, start=start, end=end)


@given(st.ip_addresses(), st.data())
def test_any_cidr_reads_as_the_standard_library_reads_it_without_its_host_bits(
    address: IPAddress, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, address.max_prefixlen))
    expected = ip_network(f"{address}/{length}", strict=False)
    assert parse_network(f"{address}/{length}") == expected
    assert network_at(address, length) == expected
    assert parse_address(str(address)) == address


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_an_offset_beyond_64_bits_is_exact() -> None:
    parsed = parse_range("fd00:1::/48").range
    assert parsed.offset(IPv6Address("fd00:1:0:5::1")) == 5 * 2**64 + 1
    assert parsed.address(5 * 2**64 + 1) == IPv6Address("fd00:1:0:5::1")


@given(st.ip_addresses(), st.data())
def test_offset_and_address_are_each_others_inverse(address: IPAddress, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, address.max_prefixlen - 2))
    parsed = parse_range(f"{address}/{length}").range
    assert parsed.address(parsed.offset(address)) == address


def test_an_address_of_the_other_family_has_no_offset() -> None:
    with pytest.raises(
        MixedFamilies, match=r"fd00::1 has no offset in 10.0.0.0/24: one is IPv6, the other IPv4"
    ):
        parse_range("10.0.0.0/24").range.offset(IPv6Address("fd00::1"))


@pytest.mark.parametrize("address", ["10.0.1.0", "9.255.255.255"])
def test_an_address_outside_of_the_network_has_no_offset(address: str) -> None:
    with pytest.raises(InvalidRange, match="outside of that network"):
        parse_range("10.0.0.0/24").range.offset(ip_address(address))


@pytest.mark.parametrize("offset", [-1, 256, 2**200])
def test_an_offset_outside_of_the_network_has_no_address(offset: int) -> None:
    with pytest.raises(InvalidRange, match="it has offsets 0 to 255"):
        parse_range("10.0.0.0/24").range.address(offset)


def test_only_what_may_be_handed_out_is_in_a_range() -> None:
    parsed = parse_range("10.0.0.0/24", start="10.0.0.10").range
    assert IPv4Address("10.0.0.10") in parsed
    assert IPv4Address("10.0.0.9") not in parsed
    assert IPv4Address("10.0.0.255") not in parsed
    assert IPv4Address("10.0.1.10") not in parsed
    assert IPv6Address("fd00::10") not in parsed


@pytest.mark.parametrize(
    ("network", "other", "shared"),
    [
        ("10.0.0.0/24", "10.0.0.0/8", Interval(0, 255)),
        ("10.0.0.0/8", "10.0.1.0/24", Interval(256, 511)),
        ("10.0.0.0/24", "10.0.1.0/24", None),
        ("10.0.1.0/24", "10.0.0.0/24", None),
        ("10.0.0.0/24", "::/0", None),
    ],
)
def test_the_overlap_of_two_networks_is_told_in_offsets_of_the_first(
    network: str, other: str, shared: Interval | None
) -> None:
    assert overlap(ip_network(network), ip_network(other)) == shared


# --- what is free ----------------------------------------------------------------------------------------------------

BASES = st.sampled_from(["10.0.0.0", "255.255.255.0", "fd00::", "2001:db8::ff00"])


@st.composite
def small_ranges(draw: st.DrawFn) -> tuple[AddressRange, set[int], set[int]]:
    """A range of at most 64 addresses, the offsets it may hand out told one by one, and some that are taken."""
    base = ip_address(draw(BASES))
    length = draw(st.integers(base.max_prefixlen - 6, base.max_prefixlen - 2))
    network = network_at(base, length)
    last = network.num_addresses - 1
    start, end = sorted(draw(st.tuples(st.integers(1, last - 1), st.integers(1, last - 1))))
    lengths = st.integers(base.max_prefixlen - 4, base.max_prefixlen)
    excluded = [
        network_at(network[offset], length)
        for offset, length in draw(st.lists(st.tuples(st.integers(0, last), lengths)))
    ]
    gateway = draw(st.integers(0, last))
    parsed = parse_range(
        str(network),
        start=str(network[start]),
        end=str(network[end]),
        excludes=map(str, excluded),
        gateway=str(network[gateway]),
    )
    allowed = {
        offset
        for offset in range(start, end + 1)
        if offset != gateway and not any(network[offset] in hole for hole in excluded)
    }
    return parsed.range, allowed, draw(st.sets(st.integers(0, last)))


@given(small_ranges(), st.integers(0, 70))
def test_free_and_lowest_free_agree_with_trying_every_address(
    case: tuple[AddressRange, set[int], set[int]], count: int
) -> None:
    address_range, allowed, taken = case
    oracle = sorted(allowed - taken)
    marked = AddressSet(address_range.size, taken)
    assert address_range.capacity == len(allowed)
    assert address_range.lowest_free(marked) == (oracle[0] if oracle else None)
    assert list(islice(address_range.free(marked), count)) == oracle[:count]
    assert set(marked) == taken, "looking takes nothing"
    assert {
        offset for offset in range(address_range.size) if address_range.address(offset) in address_range
    } == allowed


def test_taken_counts_only_addresses_of_the_network() -> None:
    parsed = parse_range("10.0.0.0/24").range
    addresses = [ip_address(text) for text in ("10.0.0.1", "10.0.0.2", "11.0.0.1", "fd00::1")]
    assert list(parsed.taken(addresses)) == [1, 2]


def test_a_range_of_2_to_the_64_addresses_answers_at_once() -> None:
    parsed = parse_range("fd00::/64", excludes=["fd00::/65"]).range
    assert parsed.capacity == 2**63 - 1
    assert list(islice(parsed.free(parsed.taken([IPv6Address("fd00::8000:0:0:0")])), 2)) == [
        2**63 + 1,
        2**63 + 2,
    ]


# --- parts -----------------------------------------------------------------------------------------------------------


def test_a_part_keeps_the_ranges_bounds_and_loses_its_own_edges() -> None:
    whole = parse_range(
        "10.0.0.0/16", start="10.0.1.10", excludes=["10.0.1.16/28"], gateway="10.0.1.200"
    ).range
    part = whole.part(IPv4Network("10.0.1.0/24"))
    assert str(part) == "10.0.1.0/24"
    assert part.intervals == (Interval(10, 15), Interval(32, 199), Interval(201, 254))
    assert whole.part(IPv4Network("10.0.0.0/24")).capacity == 0


@given(small_ranges(), st.data())
def test_a_part_hands_out_what_the_whole_does_except_its_own_edges(
    case: tuple[AddressRange, set[int], set[int]], data: st.DataObject
) -> None:
    whole, allowed, _ = case
    length = data.draw(st.integers(whole.network.prefixlen, whole.network.max_prefixlen))
    network: IPNetwork = network_at(whole.address(data.draw(st.integers(0, whole.size - 1))), length)
    part = whole.part(network)
    usable = {whole.address(offset) for offset in allowed if whole.address(offset) in network}
    usable -= {network.network_address, network.broadcast_address}
    assert {part.address(offset) for offset in part.free(AddressSet(part.size))} == usable
