"""Which slices a NodeSlicePool lists, and how many it can."""

import json
from ipaddress import ip_network

from hypothesis import given
from hypothesis import strategies as st

from podtide.core.networks.slice_list import LARGEST_BYTES, WHOLE_UP_TO_BYTES, SliceEntry, listing, room_for
from podtide.core.networks.slices import SliceAssignment, Slicing
from podtide.core.ranges import parse_range


def cut(cidr: str, length: int) -> Slicing:
    return Slicing(parse_range(cidr).range, length)


def first(slicing: Slicing, count: int, name: str = "node-{}") -> list[SliceAssignment]:
    return [SliceAssignment(name.format(index), slicing[index]) for index in range(count)]


def as_json(entries: list[SliceEntry]) -> int:
    return len(json.dumps([{"nodeName": node, "sliceRange": slice_} for node, slice_ in entries]))


def test_a_small_list_shows_the_free_slices_too() -> None:
    assigned = [SliceAssignment("n1", ip_network("10.0.1.0/24"))]
    assert listing(cut("10.0.0.0/22", 24), assigned) == [
        ("", "10.0.0.0/24"),
        ("n1", "10.0.1.0/24"),
        ("", "10.0.2.0/24"),
        ("", "10.0.3.0/24"),
    ]


def test_65536_slices_are_too_many_to_show_the_free_ones() -> None:
    slicing = cut("10.0.0.0/8", 24)
    assert listing(slicing, first(slicing, 2)) == [("node-0", "10.0.0.0/24"), ("node-1", "10.0.1.0/24")]


def test_however_large_the_range_nothing_is_counted_out() -> None:
    slicing = cut("fd00::/8", 64)
    assert listing(slicing, first(slicing, 1)) == [("node-0", "fd00::/64")]


def test_5000_nodes_are_listed_in_far_less_than_an_object_may_have() -> None:
    slicing = cut("10.0.0.0/8", 24)
    assert as_json(listing(slicing, first(slicing, 5000))) < WHOLE_UP_TO_BYTES


def test_slices_of_another_cut_are_listed_as_they_are() -> None:
    other = [SliceAssignment("n1", ip_network("10.9.0.0/24"))]
    assert listing(cut("10.0.0.0/22", 24), other) == [("n1", "10.9.0.0/24")]


def test_there_is_room_for_nobody_when_nobody_comes() -> None:
    assert room_for(first(cut("10.0.0.0/22", 24), 2), []) == 0


def test_there_is_room_for_all_who_come_to_a_small_list() -> None:
    slicing = cut("10.0.0.0/22", 24)
    assert room_for(first(slicing, 2), first(slicing, 4)[2:]) == 2


def test_an_object_of_one_and_a_half_megabytes_ends_the_list() -> None:
    slicing = cut("10.0.0.0/8", 24)
    long = "x" * 240 + "-{}"
    kept, added = first(slicing, 1000, long), first(slicing, 6000, long)[1000:]
    room = room_for(kept, added)
    assert 0 < room < len(added)
    assert (
        as_json(listing(slicing, [*kept, *added[:room]])) < LARGEST_BYTES + 16_000
    )  # json.dumps adds blanks


@given(st.integers(0, 10), st.sampled_from([23, 26, 28, 30]))
def test_the_entries_are_all_slices_in_order_or_just_the_assigned_ones(count: int, length: int) -> None:
    slicing = cut("10.0.0.0/16", length)
    assigned = first(slicing, count)
    entries = listing(slicing, assigned)
    assert [entry for entry in entries if entry.node] == [(each.node, str(each.slice)) for each in assigned]
    assert len(entries) in {count, slicing.count}
    assert as_json(entries) <= 2 * WHOLE_UP_TO_BYTES
