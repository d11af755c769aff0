"""When a node states its demand anew."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.subnet.statement import Statement
from podtide.core.subnet.statement_refresh import (
    EVERY_SECONDS,
    GROWN_SECONDS,
    JITTER_SECONDS,
    REST_SECONDS,
    Restating,
    is_answered,
    makes_a_difference,
)


def said(demand: int, batch: int = 8, top: int = 16, **others: int) -> Statement:
    return Statement(
        **{
            "demand": demand,
            "batch": batch,
            "max_ips": 250,
            "primaries": 1,
            "request": 0,
            "top": top,
            **others,
        },
        buffer=Fraction(1, 2),
    )


@pytest.mark.parametrize(
    ("before", "now", "matters"),
    [
        (said(4), said(5), False),  # 15 at batch 16, either way
        (said(8), said(9), True),  # 15 and 31
        (said(8, batch=4, top=16), said(9, batch=4, top=16), True),
        (said(2, batch=2), said(3, batch=2), True),  # 3 and 7 by batches of 4, the next rung
        (said(9, batch=16), said(8, batch=16), False),  # at the top nobody asks
        (said(4, batch=8, top=8), said(4, batch=8, top=16), True),  # until now only its window counted
        (said(4, top=0), said(4, top=0), False),  # no top is known
        (said(9, batch=8, top=12), said(10, batch=8, top=12), False),
        (
            said(6, batch=8, top=12),
            said(7, batch=8, top=12),
            True,
        ),  # 11 and 23 at the top, which is no power of two
    ],
)
def test_a_demand_matters_where_a_larger_rung_would_ask_for_something_else(
    before: Statement, now: Statement, *, matters: bool
) -> None:
    assert makes_a_difference(before, now) is matters


def test_a_statement_answers_the_parameters_it_was_made_by() -> None:
    assert is_answered(said(4), said(9, top=32))
    for other in (said(4, batch=4), said(4, max_ips=100), said(4, primaries=2)):
        assert not is_answered(said(4), other)


def test_it_is_due_after_a_rest_with_jitter_and_not_too_often() -> None:
    state = Restating().seen(4, 100.0, 0.5)
    assert 100.0 + REST_SECONDS <= state.due_at <= 100.0 + REST_SECONDS + JITTER_SECONDS
    assert state.seen(4, 130.0, 1.0) == state, "the same demand goes on resting"
    assert state.seen(5, 130.0, 1.0).due_at >= 130.0 + REST_SECONDS
    assert state.stated(200.0).due_at == 200.0 + EVERY_SECONDS


@given(st.floats(0, 1))
def test_a_larger_demand_is_stated_within_seconds_where_pods_request_addresses(chance: float) -> None:
    state = Restating().seen(5, 100.0, chance, stated=4)
    assert state.grown_at is not None
    assert 100.0 + GROWN_SECONDS <= state.grown_at <= 105.0
    assert state.grown_at < state.rested_at


def test_a_demand_that_grows_on_is_stated_no_later_than_one_that_rests() -> None:
    state = Restating().seen(5, 100.0, 0.0, stated=4)
    for second in range(1, 9):
        state = state.seen(5 + second, 100.0 + second / 4, 1.0, stated=4)
    assert state.grown_at == 100.0 + GROWN_SECONDS
    assert state.rested_since == 102.0


def test_a_demand_that_is_no_larger_than_what_was_stated_rests_first() -> None:
    state = Restating().seen(5, 100.0, 0.0, stated=4).seen(4, 101.0, 0.0, stated=4)
    assert state.grown_at is None
    assert state.seen(5, 110.0, 0.0, stated=4).grown_at == 110.0 + GROWN_SECONDS
    assert (
        Restating().seen(5, 100.0, 0.0).grown_at is None
    )  # nothing was stated: it is missing, and written at once
