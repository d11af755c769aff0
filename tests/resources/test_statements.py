import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION
from podtide.resources.statement_annotation import MOST_NUMBER, is_statable, number_in, render, statement_in

STATED = Statement(
    demand=20,
    batch=16,
    buffer=Fraction(1, 2),
    max_ips=250,
    primaries=1,
    request=31,
    number=1_750_000_000_000,
    top=16,
)
WRITTEN = json.loads(render(STATED))


def read(written: str, request: int = 31) -> Statement | None:
    return statement_in({STATEMENT_ANNOTATION: written}, request)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    demand, batch, max_ips = draw(st.integers(0, 300)), draw(st.integers(1, 300)), draw(st.integers(1, 300))
    buffer = draw(st.fractions(0, 5) | st.decimals(0, 5, places=3).map(Fraction))
    primaries = draw(st.integers(0, min(4, max_ips)))
    return Statement(
        demand=demand,
        batch=batch,
        buffer=buffer,
        max_ips=max_ips,
        primaries=primaries,
        request=request_at(demand, Scaler(batch, buffer, max_ips), primaries),
        number=draw(st.integers(0, MOST_NUMBER)),
        top=draw(st.integers(0, 300)),
    )


def test_a_statement_is_compact_json_without_what_is_unknown() -> None:
    start = '{"demand":20,"batch":16,"buffer":0.5,"max":250,"primaries":1,"request":31,"number":1750000000000'
    assert render(STATED) == start + ',"top":16}'
    assert render(structs.replace(STATED, top=0)) == start + "}"


@pytest.mark.parametrize(
    ("buffer", "written"), [(Fraction(1), "1"), (Fraction(1, 8), "0.125"), (Fraction(1, 3), '"1/3"')]
)
def test_a_buffer_is_a_number_where_a_decimal_is_exact(buffer: Fraction, written: str) -> None:
    assert f'"buffer":{written},' in render(structs.replace(STATED, buffer=buffer))


@given(statements())
def test_what_can_be_stated_is_read_as_it_was_written(statement: Statement) -> None:
    assert is_statable(statement)
    assert read(render(statement), statement.request) == statement
    assert number_in({STATEMENT_ANNOTATION: render(statement)}) == statement.number


@given(statements(), st.integers(-1, 400))
def test_a_statement_belongs_to_its_own_request_alone(statement: Statement, request: int) -> None:
    assert (read(render(statement), request) is None) == (request != statement.request)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.text(max_size=500) | ANYTHING.map(json.dumps))
@example("\ud800")
@example("[" * 400)
@example('{"buffer":' + "[" * 380)
def test_whatever_people_write_there_raises_nothing(written: str) -> None:
    assert read(written) is None
    assert number_in({STATEMENT_ANNOTATION: written}) == 0


@given(st.sampled_from(sorted(WRITTEN)), ANYTHING)
def test_whatever_people_make_of_a_field_raises_nothing(name: str, value: Any) -> None:
    written = json.dumps({**WRITTEN, name: value}, separators=(",", ":"))
    statement = read(written)
    assert statement is None or is_statable(statement)


@pytest.mark.parametrize(
    "change",
    [
        {"demand": -1},
        {"demand": 2**31},
        {"demand": 40},
        {"batch": 0},
        {"buffer": -0.5},
        {"buffer": "1/0"},
        {"buffer": True},
        {"buffer": "1e99"},
        {"buffer": None},
        {"max": 0},
        {"primaries": -1},
        {"request": 47},
        {"number": -1},
        {"number": MOST_NUMBER + 1},
        {"top": -1},
        {"padding": "x" * 400},
        {"nested": json.loads("[" * 100 + "]" * 100)},
    ],
)
def test_what_is_out_of_range_or_does_not_follow_is_not_taken(change: dict[str, Any]) -> None:
    written = json.dumps({**WRITTEN, **change}, separators=(",", ":"))
    taken = read(written) is not None
    assert taken == ("nested" in change)


@pytest.mark.parametrize("name", sorted(set(WRITTEN) - {"top"}))
def test_a_statement_that_lacks_a_field_is_none(name: str) -> None:
    assert read(json.dumps({key: value for key, value in WRITTEN.items() if key != name})) is None


def test_nothing_is_stated_where_there_is_no_annotation() -> None:
    assert statement_in({}, 31) is None
    assert number_in({}) == 0


def test_the_number_is_known_of_a_statement_that_no_longer_belongs() -> None:
    assert read(render(STATED), 47) is None
    assert number_in({STATEMENT_ANNOTATION: render(STATED)}) == STATED.number


@pytest.mark.parametrize(
    "odd",
    [
        structs.replace(STATED, buffer=Fraction(1, 10**100)),
        structs.replace(STATED, buffer=Fraction(10**7)),
        structs.replace(STATED, demand=40),
        structs.replace(STATED, number=MOST_NUMBER + 1),
    ],
)
def test_what_readers_would_not_take_cannot_be_stated(odd: Statement) -> None:
    assert not is_statable(odd)
    assert read(render(odd)) is None
