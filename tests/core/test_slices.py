"""Slices: their sizes, their arithmetic, and the plan of who gets which."""

from collections.abc import Iterable
from ipaddress import ip_network
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.errors import InvalidSlice
from podtide.core.intervals import Interval
from podtide.core.networks.slices import SliceAssignment, SlicePlan, Slicing, assign_slices, parse_slice_size
from podtide.core.ranges import IPNetwork, network_at, overlap, parse_network, parse_range


def cut(text: str, size: str, **more: str) -> Slicing:
    address_range = parse_range(text, **more).range
    return Slicing(address_range, parse_slice_size(size, address_range))


def held(**slices: str) -> list[SliceAssignment]:
    return [SliceAssignment(node, ip_network(text)) for node, text in slices.items()]


def shown(assignments: Iterable[SliceAssignment]) -> dict[str, str]:
    return {assignment.node: str(assignment.slice) for assignment in assignments}


EDGES = "as its first and its last are never handed out: use /24 to /30"


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size", "length"),
    [
        ("10.0.0.0/16", "/24", 24),
        ("10.0.0.0/16", "24", 24),
        ("192.168.2.225/8", "/22", 22),
        ("10.0.0.0/16", "/16", 16),
        ("10.0.0.0/16", "/30", 30),
        ("fd00::/64", "/120", 120),
    ],
)
def test_a_slice_size_is_a_prefix_length_with_or_without_slash(text: str, size: str, length: int) -> None:
    assert parse_slice_size(size, parse_range(text).range) == length


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("/22", "slice size /22 is larger than its range 192.168.2.0/24: use /24 to /30"),
        ("0", "slice size /0 is larger than its range 192.168.2.0/24: use /24 to /30"),
        ("", "slice size '' is not a valid prefix length: write one from /24 to /30 for 192.168.2.0/24"),
        ("-1", "slice size '-1' is not a valid prefix length: write one from /24 to /30 for 192.168.2.0/24"),
        ("/", "slice size '/' is not a valid prefix length: write one from /24 to /30 for 192.168.2.0/24"),
        (
            "big",
            "slice size 'big' is not a valid prefix length: write one from /24 to /30 for 192.168.2.0/24",
        ),
        (
            "2.4",
            "slice size '2.4' is not a valid prefix length: write one from /24 to /30 for 192.168.2.0/24",
        ),
        (
            "//26",
            "slice size '//26' is not a valid prefix length: write one from /24 to /30 for 192.168.2.0/24",
        ),
        ("/31", "slice size /31 leaves no usable address in a slice, " + EDGES),
        ("120", "slice size /120 leaves no usable address in a slice, " + EDGES),
    ],
)
def test_a_slice_size_that_cannot_cut_the_range_is_refused_in_one_line(size: str, message: str) -> None:
    with pytest.raises(InvalidSlice) as refusal:
        parse_slice_size(size, parse_range("192.168.2.0/24").range)
    assert str(refusal.value) == message


# --- arithmetic ------------------------------------------------------------------------------------------------------


def test_slices_are_counted_in_address_order() -> None:
    slicing = cut("10.0.0.0/8", "/10")
    assert slicing.count == 4
    assert list(map(str, slicing)) == ["10.0.0.0/10", "10.64.0.0/10", "10.128.0.0/10", "10.192.0.0/10"]


def test_an_ipv6_range_of_2_to_the_56_slices_is_never_written_down() -> None:
    slicing = cut("fd00::/64", "/120")
    assert slicing.count == 2**56
    assert str(slicing[2**56 - 1]) == "fd00::ffff:ffff:ffff:ff00/120"
    assert list(map(str, islice(slicing, 2))) == ["fd00::/120", "fd00::100/120"]
    assert slicing.index(ip_network("fd00::ffff:ffff:ffff:ff00/120")) == 2**56 - 1


@pytest.mark.parametrize("index", [-1, 4])
def test_a_slice_beyond_the_last_does_not_exist(index: int) -> None:
    with pytest.raises(IndexError, match="there are 4"):
        cut("10.0.0.0/8", "/10")[index]


@pytest.mark.parametrize("network", ["10.0.0.0/11", "10.0.0.0/8", "11.0.0.0/10", "fd00::/10"])
def test_a_network_that_is_no_slice_has_no_index(network: str) -> None:
    assert cut("10.0.0.0/8", "/10").index(ip_network(network)) is None


@pytest.mark.parametrize(
    ("network", "indexes"),
    [
        ("10.0.0.0/8", Interval(0, 255)),
        ("10.2.0.0/15", Interval(2, 3)),
        ("10.2.3.4/32", Interval(2, 2)),
        ("0.0.0.0/0", Interval(0, 255)),
        ("11.0.0.0/8", None),
        ("fd00::/8", None),
    ],
)
def test_any_network_overlaps_a_run_of_slices(network: str, indexes: Interval | None) -> None:
    assert cut("10.0.0.0/8", "/16").overlapping(ip_network(network)) == indexes


@given(
    st.integers(0, 255), st.integers(0, 255), st.integers(26, 32), st.lists(st.integers(0, 255), max_size=8)
)
def test_exactly_the_slices_with_an_assignable_address_are_offered(
    one: int, other: int, length: int, excluded: list[int]
) -> None:
    start, end = sorted((one, other))
    address_range = parse_range(
        "10.0.0.0/24",
        start=f"10.0.0.{start}",
        end=f"10.0.0.{end}",
        excludes=[f"10.0.0.{offset}/30" for offset in excluded],
    ).range
    slicing = Slicing(address_range, length)
    offered = {index for first, last in slicing.offered() for index in range(first, last + 1)}
    assert offered == {index for index, part in enumerate(slicing) if address_range.part(part).capacity > 0}


# --- the plan --------------------------------------------------------------------------------------------------------


def test_nodes_get_slices_in_the_order_given() -> None:
    plan = assign_slices(cut("10.0.0.0/16", "/24"), [], ["b", "a", "c"])
    assert shown(plan.added) == {"b": "10.0.0.0/24", "a": "10.0.1.0/24", "c": "10.0.2.0/24"}
    assert plan == SlicePlan(kept=(), added=plan.added)


def test_a_node_named_twice_gets_one_slice() -> None:
    assert shown(assign_slices(cut("10.0.0.0/16", "/24"), [], ["a", "a"]).assignments) == {"a": "10.0.0.0/24"}


def test_existing_slices_stay_and_a_newcomer_gets_the_first_free_one() -> None:
    plan = assign_slices(cut("10.0.0.0/16", "/24"), held(c="10.0.2.0/24", a="10.0.0.0/24"), ["a", "b", "c"])
    assert shown(plan.kept) == {"a": "10.0.0.0/24", "c": "10.0.2.0/24"}
    assert shown(plan.added) == {"b": "10.0.1.0/24"}
    assert [assignment.node for assignment in plan.assignments] == ["a", "b", "c"]


def test_a_replacement_node_in_a_full_pool_gets_the_slice_of_the_one_that_left() -> None:
    slices = held(n1="10.0.0.0/10", n2="10.64.0.0/10", n3="10.128.0.0/10", n4="10.192.0.0/10")
    plan = assign_slices(cut("10.0.0.0/8", "/10"), slices, ["n1", "n3", "n4", "n5"])
    assert shown(plan.freed) == {"n2": "10.64.0.0/10"}
    assert shown(plan.added) == {"n5": "10.64.0.0/10"}
    assert plan.waiting == ()


def test_more_nodes_than_slices_wait_in_the_order_given() -> None:
    plan = assign_slices(cut("10.0.0.0/8", "/9"), [], ["a", "b", "c", "d"])
    assert shown(plan.added) == {"a": "10.0.0.0/9", "b": "10.128.0.0/9"}
    assert plan.waiting == ("c", "d")


def test_a_slice_that_overlaps_an_existing_pool_is_given_to_nobody_new() -> None:
    occupied = [ip_network(text) for text in ("10.0.0.128/25", "10.0.2.0/23", "172.16.0.0/12", "fd00::/64")]
    plan = assign_slices(cut("10.0.0.0/16", "/24"), held(b="10.0.3.0/24"), ["a", "b", "c"], occupied=occupied)
    assert shown(plan.kept) == {"b": "10.0.3.0/24"}, "its own pool does not drive a node out"
    assert shown(plan.added) == {"a": "10.0.1.0/24", "c": "10.0.4.0/24"}


def test_a_pool_over_the_whole_of_an_ipv6_range_leaves_every_node_waiting() -> None:
    plan = assign_slices(cut("fd00::/32", "/64"), [], ["a"], occupied=[ip_network("fd00::/32")])
    assert plan.waiting == ("a",)


def test_a_freed_slice_whose_pool_still_exists_is_not_given_on() -> None:
    plan = assign_slices(
        cut("10.0.0.0/16", "/24"), held(old="10.0.0.0/24"), ["new"], occupied=[ip_network("10.0.0.0/24")]
    )
    assert shown(plan.freed) == {"old": "10.0.0.0/24"}
    assert shown(plan.added) == {"new": "10.0.1.0/24"}


def test_a_range_that_grew_keeps_all_assignments() -> None:
    slices = held(a="10.1.0.0/24", b="10.1.1.0/24")
    plan = assign_slices(cut("10.0.0.0/8", "/24"), slices, ["a", "b", "c"])
    assert plan.kept == tuple(slices)
    assert shown(plan.added) == {"c": "10.0.0.0/24"}


def test_slices_without_live_addresses_follow_a_new_slice_size() -> None:
    plan = assign_slices(cut("10.0.0.0/16", "/26"), held(a="10.0.0.0/24", b="10.0.1.0/24"), ["a", "b"])
    assert shown(plan.freed) == {"a": "10.0.0.0/24", "b": "10.0.1.0/24"}
    assert shown(plan.added) == {"a": "10.0.0.0/26", "b": "10.0.0.64/26"}


def test_a_change_that_would_move_a_live_slice_is_refused_and_changes_nothing() -> None:
    slices = held(a="10.0.0.0/24", b="10.0.1.0/24")
    plan = assign_slices(cut("10.0.0.0/16", "/26"), slices, ["a", "b", "c"], live=set(held(b="10.0.1.0/24")))
    assert plan == SlicePlan(
        kept=tuple(slices),
        waiting=("c",),
        conflicts=(slices[1],),
        refusal=(
            "cutting 10.0.0.0/16 by /26 is refused: it has no slice 10.0.1.0/24, where node b has addresses in use; "
            "drain it, or keep the range and slice size as they were"
        ),
    )


def test_a_refusal_names_one_node_and_counts_the_others() -> None:
    slices = held(a="10.0.0.0/24", b="10.0.1.0/24", c="10.0.2.0/24")
    plan = assign_slices(cut("172.16.0.0/16", "/24"), slices, ["a"], live=set(slices))
    assert "node a has addresses in use (and 2 more likewise); drain" in plan.refusal


def test_a_live_slice_stays_with_a_node_that_is_gone() -> None:
    plan = assign_slices(
        cut("10.0.0.0/16", "/24"), held(gone="10.0.0.0/24"), ["new"], live=set(held(gone="10.0.0.0/24"))
    )
    assert shown(plan.assignments) == {"gone": "10.0.0.0/24", "new": "10.0.1.0/24"}


def test_of_two_slices_a_node_has_by_mistake_it_keeps_the_live_one_else_the_first() -> None:
    twice = [*held(a="10.0.1.0/24"), *held(a="10.0.0.0/24")]
    slicing = cut("10.0.0.0/16", "/24")
    assert shown(assign_slices(slicing, twice, ["a"]).kept) == {"a": "10.0.0.0/24"}
    assert shown(assign_slices(slicing, twice, ["a"], live={twice[0]}).kept) == {"a": "10.0.1.0/24"}


def test_of_two_nodes_that_have_one_slice_by_mistake_the_first_keeps_it() -> None:
    plan = assign_slices(cut("10.0.0.0/16", "/24"), held(b="10.0.0.0/24", a="10.0.0.0/24"), ["a", "b"])
    assert shown(plan.assignments) == {"b": "10.0.0.0/24", "a": "10.0.1.0/24"}


def test_start_end_and_excludes_hold_a_slice_without_addresses_back() -> None:
    slicing = cut("10.0.0.0/16", "/24", start="10.0.2.255")
    assert slicing.count == 256, "slices still cover the whole network"
    assert shown(assign_slices(slicing, [], ["a"]).added) == {"a": "10.0.3.0/24"}


def test_five_thousand_nodes_fill_a_part_of_65536_slices() -> None:
    slicing = cut("10.0.0.0/8", "/24")
    nodes = [f"node-{number}" for number in range(5000)]
    first = assign_slices(slicing, [], nodes)
    assert len(first.added) == 5000
    again = assign_slices(
        slicing,
        first.assignments,
        [*nodes[1:], "late"],
        occupied=[assignment.slice for assignment in first.assignments[1:]],
    )
    assert len(again.kept) == 4999
    assert shown(again.added) == {"late": "10.0.0.0/24"}


def test_of_two_nodes_that_have_one_slice_by_mistake_the_one_that_uses_it_keeps_it() -> None:
    both = held(a="10.0.0.0/24", b="10.0.0.0/24")
    plan = assign_slices(cut("10.0.0.0/16", "/24"), both, ["a", "b"], live={both[1]})
    assert shown(plan.assignments) == {"b": "10.0.0.0/24", "a": "10.0.1.0/24"}


def test_what_is_occupied_is_looked_through_only_for_somebody_new() -> None:
    occupied = iter([ip_network("10.0.0.0/8")])
    plan = assign_slices(cut("10.0.0.0/16", "/24"), held(a="10.0.0.0/24"), ["a"], occupied=occupied)
    assert shown(plan.assignments) == {"a": "10.0.0.0/24"}
    assert next(occupied, None) is not None


# --- laws ------------------------------------------------------------------------------------------------------------

NODES = [f"n{number}" for number in range(12)]


@st.composite
def situations(
    draw: st.DrawFn,
) -> tuple[Slicing, list[SliceAssignment], list[str], list[IPNetwork], set[SliceAssignment]]:
    """A range of eight slices, some assigned, some occupied, some live; one time in two the slice size changes."""
    base = draw(st.sampled_from(["10.0.0.0/24", "fd00::/120"]))
    address_range = parse_range(base).range
    network = address_range.network
    length = network.prefixlen + 3
    before = Slicing(address_range, length)
    indexes = draw(st.lists(st.integers(0, 7), unique=True))
    holders = draw(st.permutations(NODES))
    assigned = [SliceAssignment(node, before[index]) for node, index in zip(holders, indexes, strict=False)]
    nodes = draw(st.lists(st.sampled_from(NODES), unique=True))
    places = st.tuples(
        st.integers(0, network.num_addresses - 1), st.integers(length - 1, network.max_prefixlen)
    )
    occupied = [network_at(network[offset], size) for offset, size in draw(st.lists(places, max_size=4))]
    live = set(draw(st.lists(st.sampled_from(assigned)))) if assigned else set()
    after = Slicing(address_range, draw(st.sampled_from([length, length + 1])))
    return after, assigned, nodes, occupied, live


@given(situations())
def test_the_laws_of_a_plan(
    situation: tuple[Slicing, list[SliceAssignment], list[str], list[IPNetwork], set[SliceAssignment]],
) -> None:
    slicing, assigned, nodes, occupied, live = situation
    plan = assign_slices(slicing, assigned, nodes, occupied=occupied, live=live)
    before, after = shown(assigned), shown(plan.assignments)

    # No two slices overlap, and each node has one.
    assert len(after) == len(plan.assignments)
    addresses = [address for assignment in plan.assignments for address in assignment.slice]
    assert len(addresses) == len(set(addresses))
    # What is assigned never moves, is kept or freed, and is never freed while live.
    assert set(plan.kept) | set(plan.freed) == set(assigned)
    assert not set(plan.kept) & set(plan.freed)
    assert all(assignment not in live for assignment in plan.freed)
    assert all(before[assignment.node] == str(assignment.slice) for assignment in plan.kept)
    # Every node that is wanted has a slice or waits.
    assert set(nodes) <= set(after) | set(plan.waiting)
    assert not set(after) & set(plan.waiting)
    if plan.conflicts:
        assert plan.refusal
        assert list(plan.kept) == sorted(
            assigned, key=lambda assignment: int(assignment.slice.network_address)
        )
        assert not plan.freed
        assert not plan.added
        return
    # Every slice is one of the range's, and the gone keep only what is live.
    assert all(slicing.index(assignment.slice) is not None for assignment in plan.assignments)
    assert all(assignment.node in nodes or assignment in live for assignment in plan.assignments)
    # Newcomers get the first free slices in address order, in the order they were given; they wait only without one.
    kept = {str(assignment.slice) for assignment in plan.kept}
    free = [
        part
        for part in slicing
        if str(part) not in kept and not any(overlap(part, other) for other in occupied)
    ]
    newcomers = [node for node in nodes if node not in shown(plan.kept)]
    assert [(assignment.node, assignment.slice) for assignment in plan.added] == list(
        zip(newcomers, free, strict=False)
    )
    assert list(plan.waiting) == newcomers[len(free) :]
    # Planning again changes nothing.
    again = assign_slices(slicing, plan.assignments, nodes, occupied=occupied, live=live)
    assert again.assignments == plan.assignments
    assert again.waiting == plan.waiting


def test_what_nobody_used_yet_gives_way_to_what_other_networks_have_and_its_node_gets_another() -> None:
    slicing = Slicing(parse_range("10.0.0.0/22").range, 24)
    first, second = (SliceAssignment(f"n{place}", slicing[place]) for place in range(2))
    taken = [parse_network("10.0.0.0/23")]
    plan = assign_slices(
        slicing, [first, second], ["n0", "n1"], occupied=taken, unused={first}, contested=taken
    )
    assert (plan.kept, plan.freed) == ((second,), (first,)), "what is used never moves"
    assert plan.added == (SliceAssignment("n0", slicing[2]),)


def test_what_nobody_used_yet_is_kept_where_no_other_network_has_it() -> None:
    slicing = Slicing(parse_range("10.0.0.0/22").range, 24)
    mine = SliceAssignment("n0", slicing[0])
    contested = [parse_network("10.0.1.0/24"), parse_network("fd00::/64")]
    plan = assign_slices(slicing, [mine], ["n0"], unused={mine}, contested=contested)
    assert plan.kept == (mine,)
