"""What the real Whereabouts 0.9.4 answered, through our code: one test for each recorded row of its pure functions.

The recordings are in tests/recorded. Where podtide answers otherwise on purpose, the row stands in one of the tables
below, with the reason, the entry of docs/design that demands it, and our own answer.
"""

from ipaddress import ip_address, ip_network
from typing import Any, TypeAlias

import pytest

from podtide.core.errors import InvalidRange, InvalidSlice, MixedFamilies, RangeFull
from podtide.core.networks.allocations import Allocation, Allocations
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.networks.slices import Slicing, parse_slice_size
from podtide.core.ranges import AddressRange, IPAddress, parse_address, parse_range
from recordings import whereabouts

Row: TypeAlias = dict[str, Any]

CASES = {section: whereabouts(section) for section in ("allocate", "iphelpers")}

QUESTIONS = ("in", "ip", "offset", "cidr", "range", "range_start", "range_end", "slice_size")


def rows(section: str, function: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", CASES[section][function], ids=title)


def title(row: Row) -> str:
    return row.get("name") or " ".join(str(row[key]) for key in QUESTIONS if row.get(key))


def everything(address: IPAddress) -> AddressRange:
    """The whole of the address's family, in which an address's offset is the address as a number."""
    return parse_range("0.0.0.0/0" if address.version == 4 else "::/0").range


def moved(text: str, by: int) -> IPAddress:
    address = parse_address(text)
    return everything(address).address(everything(address).offset(address) + by)


# --- allocate --------------------------------------------------------------------------------------------------------


def pool(given: Row, reserved: dict[IPAddress, Allocation]) -> Allocations:
    """The pool Whereabouts was asked about: its reservations under the keys an IPPool would have for them."""
    parsed = parse_range(
        given.get("range") or given["cidr"],
        start=given["range_start"],
        end=given["range_end"],
        excludes=given["exclude"] or (),
    )
    base = int(parsed.range.network.network_address)
    return Allocations(parsed.range, {str(int(address) - base): entry for address, entry in reserved.items()})


def reservations(recorded: list[dict[str, str]] | None) -> dict[IPAddress, Allocation]:
    return {
        ip_address(entry["IP"]): Allocation(entry["ID"], entry["PodRef"], entry["IfName"])
        for entry in recorded or ()
    }


def assign(allocations: Allocations, asking: Allocation) -> IPAddress:
    """As Whereabouts does: it goes by the pod's name alone."""
    address = allocations.choose(asking, allocations.range, is_ours=lambda _found: True)
    allocations.put(address, asking)
    return address


@rows("allocate", "AssignIP")
def test_assign_ip(row: Row) -> None:
    given = row["in"]
    allocations = pool(given, reservations(given["reserved"]))
    address = assign(allocations, Allocation(given["id"], given["podref"], given["ifname"]))
    assert f"{address}/{allocations.range.network.prefixlen}" == row["ip"]
    assert dict(allocations) == reservations(row["reserved_after"])


@rows("allocate", "DeallocateIP")
def test_deallocate_ip(row: Row) -> None:
    given = row["in"]
    anywhere = {"range": "10.0.0.0/24", "range_start": "", "range_end": "", "exclude": None}
    found = pool(anywhere, reservations(given["reserved"]))
    copy = PoolCopy(found.range.network, found.render())
    assert copy.release(given["id"], given["ifname"]) == {}
    assert row["ip"] is None
    assert dict(copy.allocations) == reservations(row["reserved_after"])


@rows("allocate", "IterateForAssignment")
def test_iterate_for_assignment(row: Row) -> None:
    given = row["in"]
    others = {ip_address(text): Allocation(text, f"ns/{text}", "net1") for text in given["reserved"]}
    allocations = pool(given, others)
    if "error" in row:
        with pytest.raises(RangeFull):
            assign(allocations, Allocation("id", "ns/pod", "net1"))
        return
    assert str(assign(allocations, Allocation("id", "ns/pod", "net1"))) == row["ip"]
    assert len(allocations.render()) == row["reserve_len"]


# --- iphelpers -------------------------------------------------------------------------------------------------------


@rows("iphelpers", "CompareIPs")
def test_compare_ips(row: Row) -> None:
    one, other = (everything(address).offset(address) for address in map(parse_address, row["in"]))
    assert (one > other) - (one < other) == row["out"]


def assert_step(row: Row, by: int, edge: str) -> None:
    """One step up or down. Whereabouts wraps around at the edge (design T27); no range has an address beyond it."""
    if row["in"] == edge:
        with pytest.raises(InvalidRange, match="is outside of"):
            moved(row["in"], by)
    else:
        assert str(moved(row["in"], by)) == row["out"]


@rows("iphelpers", "IncIP")
def test_inc_ip(row: Row) -> None:
    assert_step(row, 1, edge="255.255.255.255")


FIRST_OF_ALL = "0.0.0.0"  # noqa: S104 - an address to count down from, bound by nobody


@rows("iphelpers", "DecIP")
def test_dec_ip(row: Row) -> None:
    assert_step(row, -1, edge=FIRST_OF_ALL)


@rows("iphelpers", "IPAddOffset")
def test_ip_add_offset(row: Row) -> None:
    if row["ip"] == "255.255.255.255":
        # Whereabouts carries over into another family (::1:0:0:0); an offset beyond the network is no address (design
        # T27).
        with pytest.raises(InvalidRange):
            moved(row["ip"], int(row["offset"]))
    else:
        assert str(moved(row["ip"], int(row["offset"]))) == row["out"]


OFFSETS_THAT_DIFFER = {
    # Whereabouts subtracts byte by byte without borrowing: two addresses could share an IPPool's key (design
    # T27).
    ("10.0.1.5", "10.0.0.255"): 6,
    ("10.1.0.1", "10.0.255.254"): 3,
    # Whereabouts keeps the low 64 bits (design T17).
    ("fd00:1:0:5::1", "fd00:1::"): 5 * 2**64 + 1,
}


@rows("iphelpers", "IPGetOffset")
def test_ip_get_offset(row: Row) -> None:
    address, base = map(parse_address, row["in"])
    if row["error"]:
        with pytest.raises(MixedFamilies, match="one is IPv6, the other IPv4"):
            everything(base).offset(address)
        return
    offset = everything(base).offset(address) - everything(base).offset(base)
    assert offset == OFFSETS_THAT_DIFFER.get(tuple(row["in"]), int(row["out"]))


@rows("iphelpers", "IsIPInRange")
def test_is_ip_in_range(row: Row) -> None:
    address, first, last = map(parse_address, row["in"])
    assert (address in parse_range(f"{first}-{last}/0").range) is row["out"]


@rows("iphelpers", "GetIPRange")
def test_get_ip_range(row: Row) -> None:
    if "error" in row:
        with pytest.raises(InvalidRange, match="no usable address"):
            parse_range(row["cidr"])
        return
    parsed = parse_range(row["cidr"], start=row["range_start"], end=row["range_end"]).range
    (only,) = parsed.intervals
    assert str(parsed.address(only.first)) == row["first"]
    assert str(parsed.address(only.last)) == row["last"]


@rows("iphelpers", "network_bounds")
def test_network_bounds(row: Row) -> None:
    if not row["has_usable"]:
        with pytest.raises(InvalidRange, match="no usable address"):
            parse_range(row["cidr"])
        return
    parsed = parse_range(row["cidr"]).range
    (only,) = parsed.intervals
    assert str(parsed.network.network_address) == row["network"]
    assert str(parsed.network.broadcast_address) == row["broadcast"]
    assert str(parsed.address(only.first)) == row["first_usable"]
    assert str(parsed.address(only.last)) == row["last_usable"]


SLICINGS_THAT_DIFFER = {
    # Host bits are dropped here as everywhere else; Whereabouts refuses them only in this one function (design
    # W15).
    ("10.0.0.1/24", "/26"): ["10.0.0.0/26", "10.0.0.64/26", "10.0.0.128/26", "10.0.0.192/26"],
}
SLICE_SIZES_REFUSED_HERE = {
    # Whereabouts answers nothing at all, and no node ever gets a slice (design T31).
    ("10.0.0.0/24", ""): "is not a valid prefix length",
    # Both refuse it.
    ("10.0.0.0/24", "-1"): "is not a valid prefix length",
    # Whereabouts cuts slices of one address, from which every ADD then fails ("has no usable IP addresses";
    # design T31).
    ("10.0.0.0/30", "/32"): "leaves no usable address in a slice",
}


@rows("iphelpers", "DivideRangeBySize")
def test_divide_range_by_size(row: Row) -> None:
    question = (row["range"], row["slice_size"])
    address_range = parse_range(row["range"]).range
    if question in SLICE_SIZES_REFUSED_HERE:
        with pytest.raises(InvalidSlice, match=SLICE_SIZES_REFUSED_HERE[question]):
            parse_slice_size(row["slice_size"], address_range)
        return
    slicing = Slicing(address_range, parse_slice_size(row["slice_size"], address_range))
    assert list(map(str, slicing)) == SLICINGS_THAT_DIFFER.get(question, row["out"])


def test_slices_of_one_address_are_cut_alike_where_they_are_only_counted() -> None:
    (row,) = (row for row in CASES["iphelpers"]["DivideRangeBySize"] if row["slice_size"] == "/32")
    slicing = Slicing(parse_range(row["range"]).range, 32)
    assert list(slicing) == [ip_network(text) for text in row["out"]]


def test_every_difference_is_about_a_recorded_row() -> None:
    offsets = {tuple(row["in"]) for row in CASES["iphelpers"]["IPGetOffset"]}
    slicings = {(row["range"], row["slice_size"]) for row in CASES["iphelpers"]["DivideRangeBySize"]}
    assert offsets >= OFFSETS_THAT_DIFFER.keys()
    assert slicings >= SLICINGS_THAT_DIFFER.keys() | SLICE_SIZES_REFUSED_HERE.keys()
