"""Transaction scripts: what the allocator does with its database, written once, without doing it.

A script is a generator. It yields a statement, is sent the rows, and returns its answer; a driver (`sqlite`, `postgresql`)
carries the statements out in one transaction and may run the script again if the transaction could not be committed. So
there is one logic for both databases, and simulations run it without threads or sockets.

The SQL is what SQLite and PostgreSQL have in common, with parameters `$1`, `$2`. Two hints stand in it as comments, each
for one driver:

    /*lock*/         PostgreSQL locks the rows it reads: a subnet's row, before anything else of the subnet
    /*index name*/   SQLite uses that index: it overlooks partial indexes by itself
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from podtide.core.subnet.chunks import CHUNK_SIZE

T = TypeVar("T")


class Query(NamedTuple):
    """One statement; the script is sent its rows."""

    sql: str
    parameters: tuple[Any, ...] = ()


class Many(NamedTuple):
    """One statement for each row of parameters, without results; a driver sends them in one batch."""

    sql: str
    rows: Sequence[tuple[Any, ...]]


Statement: TypeAlias = Query | Many
Rows: TypeAlias = Sequence[Sequence[Any]]
Script: TypeAlias = Generator[Statement, Rows, T]


def execute_many(sql: str, rows: Sequence[tuple[Any, ...]]) -> Script[None]:
    """`Many`, if there is anything to do."""
    if rows:
        yield Many(sql, rows)


def among(values: Sequence[Any], first: int) -> tuple[str, tuple[Any, ...]]:
    """A list for `IN`, with parameters from `$first` on, and what to bind to them.

    Lengths are rounded up to powers of two by repeating the last value, so that databases see few different statements and
    can keep them prepared.
    """
    length = 1 << (len(values) - 1).bit_length()
    places = ", ".join(f"${number}" for number in range(first, first + length))
    return f"({places})", (*values, *[values[-1]] * (length - len(values)))


def insert_into(table: str, columns: Sequence[str]) -> str:
    """A statement that writes a new row, with a parameter for each column in order."""
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - our own names


def update_by_id(table: str, columns: Sequence[str]) -> str:
    """A statement that changes a row, with its id for the first parameter, then one for each column."""
    settings = ", ".join(f"{column} = ${number}" for number, column in enumerate(columns, 2))
    return f"UPDATE {table} SET {settings} WHERE id = $1"  # noqa: S608 - our own names


def bits_in(column: str) -> str:
    """How many addresses a mask has: neither database counts bits in a way that the other knows."""
    return " + ".join(f"(({column} >> {position}) & 1)" for position in range(CHUNK_SIZE))
