"""A subnet's numbering covers its usable addresses, each once, and costs nothing per address."""

from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.errors import InvalidRange, MixedFamilies
from podtide.core.subnet.chunks import WHOLE
from podtide.core.subnet.layout import (
    MOST_ADDRESSES,
    AddressPlace,
    SubnetLayout,
    choose_gateways,
    first_overlap,
)


def everything(layout: SubnetLayout) -> list[str]:
    """Every usable address, chunk by chunk."""
    found: list[str] = []
    for block in layout.blocks:
        chunk = layout.next_chunk(block, block.first_chunk)
        while chunk is not None:
            found += layout.addresses(chunk, layout.mask(chunk))
            chunk = layout.next_chunk(block, chunk + 1)
    return found


def layout(
    *cidrs: str, gateway: str | None = None, keep: tuple[str, ...] = (), first: int = 0
) -> SubnetLayout:
    return SubnetLayout(cidrs, choose_gateways(cidrs, [gateway] if gateway else ()), keep, first)


@given(
    st.lists(st.integers(24, 30), min_size=1, max_size=4),
    st.none() | st.integers(0, 3),
    st.sets(st.integers(0, 255), max_size=5),
    st.integers(0, 20),
)
def test_what_is_numbered_is_what_can_be_given(
    lengths: list[int], gateway_at: int | None, kept_at: set[int], first: int
) -> None:
    networks = [ip_network((f"10.0.{number}.0", length)) for number, length in enumerate(lengths)]
    hosts = [[str(host) for host in network.hosts()] for network in networks]
    gateways = [each[0] for each in hosts]
    if gateway_at is not None:
        gateways[-1] = hosts[-1][min(gateway_at, len(hosts[-1]) - 1)]
    keep = tuple(str(networks[0][at % networks[0].num_addresses]) for at in kept_at)
    left = [host for each in hosts for host in each if host not in gateways][first:]
    expected = [host for host in left if host not in keep]
    cidrs = [str(network) for network in networks]
    if not expected:
        with pytest.raises(InvalidRange, match="no address to give"):
            SubnetLayout(cidrs, gateways, keep, first)
        return
    chosen = choose_gateways(cidrs, () if gateway_at is None else gateways[-1:])
    numbered = SubnetLayout(cidrs, chosen, keep, first)
    assert everything(numbered) == expected
    assert numbered.capacity == len(expected)
    assert [block.gateway for block in numbered.blocks] == gateways
    for block in numbered.blocks:
        for chunk in (0, *block.chunks, block.last_chunk + 1):
            later = range(max(chunk, block.first_chunk), block.last_chunk + 1)
            assert numbered.usable_in(block, chunk) == sum(numbered.mask(each).bit_count() for each in later)
    assert sum(map(numbered.kept_first_in, numbered.blocks)) == min(first, sum(map(len, hosts)) - len(hosts))


def test_growing_renumbers_nothing() -> None:
    before, after = layout("10.0.0.0/27"), layout("10.0.0.0/27", "10.9.0.0/29")
    assert [after.mask(chunk) for chunk in range(2)] == [before.mask(chunk) for chunk in range(2)]
    assert everything(after) == everything(before) + [f"10.9.0.{last}" for last in range(2, 7)]
    assert after.block(2).cidr == "10.9.0.0/29"
    assert after.address(AddressPlace(2, 1)) == "10.9.0.1"
    assert after.cidrs == ("10.0.0.0/27", "10.9.0.0/29")


def test_each_cidr_has_its_own_gateway() -> None:
    cidrs = ("10.0.0.0/29", "10.1.0.0/29", "10.2.0.0/29")
    assert choose_gateways(cidrs) == ("10.0.0.1", "10.1.0.1", "10.2.0.1")
    assert choose_gateways(cidrs, ["10.1.0.6"]) == ("10.0.0.1", "10.1.0.6", "10.2.0.1")
    without_one = SubnetLayout(cidrs, ("10.0.0.1", "", "10.2.0.1"))
    assert without_one.capacity == 5 + 6 + 5


def test_a_gateway_is_in_its_cidr_and_each_has_one() -> None:
    with pytest.raises(InvalidRange, match=r"gateway 10\.9\.0\.1 is in none of 10\.0\.0\.0/29"):
        choose_gateways(["10.0.0.0/29"], ["10.9.0.1"])
    with pytest.raises(InvalidRange, match=r"has one gateway, and 10\.0\.0\.2 and 10\.0\.0\.3"):
        choose_gateways(["10.0.0.0/29"], ["10.0.0.2", "10.0.0.3"])
    assert choose_gateways(["10.0.0.0/29"], ["10.0.0.2", "10.0.0.2"]) == ("10.0.0.2",)


@pytest.mark.parametrize(
    ("cidr", "address", "what"),
    [
        ("10.0.3.0/24", "10.0.3.0", "own"),
        ("10.0.3.0/24", "10.0.3.255", "broadcast"),
        ("fd00::/64", "fd00::", "own"),
    ],
)
def test_an_address_that_is_no_machines_is_no_gateway(cidr: str, address: str, what: str) -> None:
    with pytest.raises(
        InvalidRange,
        match=f"^gateway {address} is the {what} address of {cidr}: name another address of it$",
    ):
        choose_gateways([cidr], [address])


def test_the_last_address_of_an_ipv6_cidr_may_be_a_gateway() -> None:
    assert choose_gateways(["fd00::/125"], ["fd00::7"]) == ("fd00::7",)


def test_a_cidr_that_drains_keeps_its_numbers_and_is_not_in_the_capacity() -> None:
    cidrs = ("10.0.0.0/27", "10.9.0.0/29")
    gateways = choose_gateways(cidrs)
    draining = SubnetLayout(cidrs, gateways, draining=["10.0.0.0/27"])
    whole = layout(*cidrs)
    assert draining.capacity == 5
    assert [block.is_draining for block in draining.blocks] == [True, False]
    assert everything(draining) == everything(whole)


def test_losing_a_cidr_renumbers_nothing() -> None:
    whole = layout("10.0.0.0/27", "10.9.0.0/29")
    rest = SubnetLayout(["10.9.0.0/29"], ["10.9.0.1"], first_chunks=[2])
    assert rest.mask(2) == whole.mask(2)
    assert rest.address(AddressPlace(2, 3)) == whole.address(AddressPlace(2, 3))
    assert rest.find("10.9.0.0/29") == whole.blocks[1]
    assert rest.find("10.0.0.0/27") is None
    grown = SubnetLayout(["10.9.0.0/29", "10.7.0.0/29"], ["10.9.0.1", "10.7.0.1"], first_chunks=[2])
    assert [block.first_chunk for block in grown.blocks] == [2, 3]


def test_a_chunk_never_spans_two_24s() -> None:
    small = layout("10.0.0.248/29")
    assert everything(small) == [f"10.0.0.{last}" for last in range(250, 255)]


def test_an_8_is_described_as_quickly_as_a_29() -> None:
    wide = layout("10.0.0.0/8", first=1_000_000)
    assert wide.capacity == 2**24 - 3 - 1_000_000
    assert wide.next_chunk(wide.blocks[0], 0) == 1_000_002 // 16
    assert wide.mask(2**19) == WHOLE
    assert wide.address(AddressPlace(2**20 - 1, 14)) == "10.255.255.254"
    assert wide.next_chunk(wide.blocks[0], 2**20) is None


def test_of_a_wide_ipv6_cidr_the_first_2_to_the_53_are_used() -> None:
    wide = layout("2001:db8::/64", keep=("2001:db8::ffff:ffff:ffff:ffff",))
    assert wide.capacity == MOST_ADDRESSES - 2
    assert wide.addresses(0, wide.mask(0))[0] == "2001:db8::2"
    last = MOST_ADDRESSES // 16 - 1
    assert wide.mask(last) == WHOLE
    assert wide.next_chunk(wide.blocks[0], last + 1) is None
    assert wide.address(AddressPlace(last, 15)) == "2001:db8::1f:ffff:ffff:ffff"
    with pytest.raises(InvalidRange, match="make another subnet"):
        layout("2001:db8::/64", "2001:db9::/64")


def test_ipv6_keeps_its_first_and_last_address_back_too() -> None:
    small = layout("fd00::/125", gateway="fd00::3")
    assert everything(small) == ["fd00::1", "fd00::2", "fd00::4", "fd00::5", "fd00::6"]
    assert str(small) == "fd00::/125"


@pytest.mark.parametrize(
    ("cidrs", "words"),
    [
        ((), "without a CIDR"),
        (("10.0.0.5/24",), "write 10.0.0.0/24"),
        (("nonsense",), "'nonsense' is not a valid IP address .*; write a CIDR such as 10.1.0.0/24"),
        (("10.0.0.0/31",), "use /30 or wider"),
        (("fd00::/127",), "use /126 or wider"),
        (("10.0.0.0/24", "10.0.0.128/25"), "overlap"),
        (("10.0.0.0/24", "10.0.0.0/24"), "overlap"),
        (("10.0.0.0/33",), "prefix length"),
    ],
)
def test_cidrs_that_make_no_subnet_are_refused(cidrs: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidRange, match=words):
        layout(*cidrs)


def test_a_subnet_is_of_one_family() -> None:
    with pytest.raises(MixedFamilies):
        layout("10.0.0.0/24", "fd00::/64")


def test_gateway_and_what_is_kept_back_are_of_the_subnet() -> None:
    with pytest.raises(InvalidRange, match=r"10\.0\.1\.1 is not in subnet 10\.0\.0\.0/24"):
        SubnetLayout(["10.0.0.0/24"], ["10.0.1.1"])
    with pytest.raises(InvalidRange, match="fd00::1 is not in subnet"):
        layout("10.0.0.0/24", keep=("fd00::1",))


@given(st.lists(st.tuples(st.integers(0, 2**12), st.integers(20, 32)), max_size=8))
def test_an_overlap_is_found_exactly_when_two_cidrs_share_an_address(given_: list[tuple[int, int]]) -> None:
    networks = [
        ip_network((int(IPv4Address("10.0.0.0")) + at, length), strict=False) for at, length in given_
    ]
    shared = any(
        one.overlaps(other) for number, one in enumerate(networks) for other in networks[number + 1 :]
    )
    found = first_overlap([*map(str, networks), "fd00::/64"])
    assert (found is not None) is shared
    if found is not None:
        one, other = map(ip_network, found)
        assert one.overlaps(other)


def test_an_address_that_can_be_given_is_found_by_its_text() -> None:
    layout = SubnetLayout(["10.1.0.0/28", "10.9.0.0/28"], ["10.1.0.1", "10.9.0.1"], ["10.1.0.5"], 0)
    for chunk in (0, 1):
        for position, address in zip(
            (p for p in range(16) if layout.mask(chunk) >> p & 1),
            layout.addresses(chunk, layout.mask(chunk)),
            strict=True,
        ):
            assert layout.place(address) == (chunk, position)
    for nobodys in ("10.1.0.0", "10.1.0.1", "10.1.0.5", "10.1.0.15", "10.2.0.1", "fd00::1", "nonsense", ""):
        assert layout.place(nobodys) is None
