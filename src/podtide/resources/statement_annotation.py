"""The annotation in which a node says what its request was computed from: compact JSON of a `core.subnet.statement`.

    {"demand":20,"batch":16,"buffer":0.5,"max":250,"primaries":1,"request":31,"number":1750000000000,"top":16}

It stands beside the request that it belongs to and has no schema, so people and other programs can put anything
there, or change the request and leave it. What cannot be read, or does not belong, counts as absent. Fields that are
not known are passed over: a newer agent may say more.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from podtide.core.exact import exact, text
from podtide.core.subnet.statement import Statement
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION

MOST_NUMBER = 2**53 - 1
"""The highest number of a statement: any JSON reader keeps it exact."""

_MOST = 2**31 - 1
_MOST_BUFFER = 1_000_000
_LONGEST = 400
_LONGEST_BUFFER = 60
"""As many characters as `core.exact` reads."""

_Count = Annotated[int, Meta(ge=0, le=_MOST)]
_Positive = Annotated[int, Meta(ge=1, le=_MOST)]


class _Written(Struct, frozen=True, kw_only=True, rename={"max_ips": "max"}, omit_defaults=True):
    demand: _Count
    batch: _Positive
    buffer: Raw
    """A number, read by its digits: as a float it would be another. Text, such as "1/3", where no decimal is exact."""
    max_ips: _Positive
    primaries: _Count
    request: _Count
    number: Annotated[int, Meta(ge=0, le=MOST_NUMBER)]
    top: _Count = 0


_DECODER = msgspec.json.Decoder(_Written)


def render(statement: Statement) -> str:
    """The annotation's text."""
    buffer = text(statement.buffer)
    written = _Written(
        demand=statement.demand,
        batch=statement.batch,
        buffer=Raw(msgspec.json.encode(buffer) if "/" in buffer else buffer.encode()),
        max_ips=statement.max_ips,
        primaries=statement.primaries,
        request=statement.request,
        number=statement.number,
        top=statement.top,
    )
    return msgspec.json.encode(written).decode()


def statement_in(annotations: Mapping[str, str], request: int) -> Statement | None:
    """The statement for this request; None where there is none that can be read and belongs to it. Never raises."""
    statement = _read(annotations.get(STATEMENT_ANNOTATION, ""))
    return statement if statement is not None and _belongs(statement, request) else None


def number_in(annotations: Mapping[str, str]) -> int:
    """The number of the last statement, whether it still belongs to the request or not; 0 for none."""
    statement = _read(annotations.get(STATEMENT_ANNOTATION, ""))
    return statement.number if statement is not None else 0


def is_statable(statement: Statement) -> bool:
    """Whether readers would accept it. Odd parameters (a buffer of a hundred digits) are followed and not stated."""
    counts = (statement.demand, statement.primaries, statement.request, statement.top)
    return (
        all(0 <= count <= _MOST for count in counts)
        and all(1 <= count <= _MOST for count in (statement.batch, statement.max_ips))
        and 0 <= statement.number <= MOST_NUMBER
        and _is_usual(statement.buffer)
        and statement.is_consistent
    )


def _belongs(statement: Statement, request: int) -> bool:
    return statement.request == request and statement.is_consistent


@lru_cache(maxsize=8_192)
def _read(written: str) -> Statement | None:
    """The parsed annotation, cached: it is read at every look at an object, and seldom changes."""
    if not written or len(written) > _LONGEST:
        return None
    try:
        said = _DECODER.decode(written)
        buffer = _buffer(said.buffer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not _is_usual(buffer):
        return None
    return Statement(
        demand=said.demand,
        batch=said.batch,
        buffer=buffer,
        max_ips=said.max_ips,
        primaries=said.primaries,
        request=said.request,
        number=said.number,
        top=said.top,
    )


def _buffer(written: Raw) -> Fraction:
    digits = bytes(written)
    return exact(msgspec.json.decode(digits, type=str) if digits.startswith(b'"') else digits.decode())


def _is_usual(buffer: Fraction) -> bool:
    return 0 <= buffer <= _MOST_BUFFER and len(text(buffer)) <= _LONGEST_BUFFER
