"""The owed are served in order, names are never mistaken, and late wishes are known as such."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.subnet.chunks import WHOLE, positions
from podtide.core.subnet.grants import (
    HOLDS_NOTHING,
    AddressName,
    Claim,
    Order,
    address_names,
    is_stale,
    is_taken_anew,
    may_take,
    parse_address_name,
    primary_name,
)
from podtide.core.subnet.layout import AddressPlace

claims = st.lists(
    st.builds(
        Claim,
        container=st.sampled_from("abcdef"),
        owed=st.integers(1, 9),
        waiting_pods=st.integers(0, 2),
        since=st.sampled_from([1.0, 2.0, 3.0]),
    ),
    max_size=6,
    unique_by=lambda claim: claim.container,
)


@pytest.mark.parametrize(
    ("free", "wanted", "given_"),
    [(10, 4, 4), (10, 8, 7), (3, 1, 0), (0, 1, 0)],
)
def test_a_newcomer_gets_what_earlier_claims_leave(free: int, wanted: int, given_: int) -> None:
    earlier = [Claim("a", 2, 0, 1.0), Claim("b", 1, 0, 2.0)]
    assert may_take(Claim("c", wanted, 0, 3.0), free, earlier) == given_


def test_waiting_pods_go_first_then_more_of_them_then_the_longest_owed() -> None:
    order = [Claim("d", 1, 5, 9.0), Claim("c", 1, 1, 7.0), Claim("a", 1, 0, 1.0), Claim("b", 1, 0, 2.0)]
    assert sorted(set(order), key=lambda claim: claim.rank) == order
    assert may_take(Claim("z", 5, 2, 99.0), 3, order) == 2


@given(claims, st.integers(0, 40))
def test_when_all_come_in_any_order_each_gets_its_turn_and_nothing_is_left_idle(
    waiting: list[Claim], free: int
) -> None:
    taken = {claim.container: may_take(claim, free, waiting) for claim in waiting}
    left = free
    for claim in sorted(waiting, key=lambda claim: claim.rank):
        assert taken[claim.container] == min(claim.owed, left)
        left -= taken[claim.container]
    assert sum(taken.values()) == min(free, sum(claim.owed for claim in waiting))


ids = st.text("ab-0.", min_size=1)


@given(ids, st.integers(1, 2**40), st.integers(0, 2**49), st.integers(0, WHOLE))
def test_a_name_says_for_whom_it_was_granted_and_where(
    container: str, version: int, chunk: int, mask: int
) -> None:
    assert [parse_address_name(name) for name in address_names(container, version, chunk, mask)] == [
        AddressName(container, version, AddressPlace(chunk, position)) for position in positions(mask)
    ]


@pytest.mark.parametrize(
    "text", ["", "a", "a-1", "a-1-x", "a-01-2", "a-1-+2", "a-1-2 ", "a-1-1_0", "a-1-٣", "a-1-" + "9" * 5_000]
)
def test_what_is_no_name_of_ours_is_none(text: str) -> None:
    assert parse_address_name(text) is None


@pytest.mark.parametrize(
    ("wish", "stale"),
    [
        (Order("u", 4), True),
        (Order("u", 5), False),
        (Order("u", 6), False),
        (Order("newer", 1), False),
        (Order("older", 9), True),
    ],
)
def test_a_wish_is_stale_when_a_newer_one_was_taken(wish: Order, *, stale: bool) -> None:
    assert is_stale(wish, Order("u", 5), ["oldest", "older"]) is stale


@pytest.mark.parametrize(
    ("instead_of", "holds_nothing", "counts"),
    [
        (Order("u", 12), False, True),
        (Order("u", 11), False, False),  # somebody else was served since
        (Order("v", 12), False, False),
        (None, False, False),
        (HOLDS_NOTHING, False, False),
        (HOLDS_NOTHING, True, True),
        (Order("u", 12), True, False),  # it was deleted since
        (None, True, False),
    ],
)
def test_a_stale_wish_is_taken_anew_instead_of_the_last_one_and_of_no_other(
    instead_of: Order | None, holds_nothing: bool, counts: bool
) -> None:
    assert is_taken_anew(instead_of, Order("u", 12), holds_nothing=holds_nothing) is counts


def test_the_name_of_a_primary_is_that_of_no_address() -> None:
    assert primary_name("uid-1") == "uid-1-primary"
    assert parse_address_name(primary_name("uid-1")) is None
