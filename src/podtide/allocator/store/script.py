"""Transaction scripts: what the allocator does with its database, written once, without doing it.

A script is a generator. It yields a statement, is sent the rows, and returns its answer; a driver (`sqlite`, `postgresql`)
carries the statements out in one transaction and may run the script again if the transaction could not be committed. So
there is one logic for both databases, and simulations run it without threads or sockets.

The SQL is what SQLite and PostgreSQL have in common, with parameters `$1`, `$2`. A list is one parameter too, so that there is
one statement for lists of all lengths, which databases keep prepared: `IN $1`, with a Python list, each driver spells in
its way. Two hints stand in the SQL as comments, each for one driver:

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


class TableChange(NamedTuple):
    """One statement for each row of parameters, without results. No two of the rows change the same row of a table."""

    sql: str
    rows: Sequence[tuple[Any, ...]]


class TableChanges(NamedTuple):
    """Changes of which none sees or touches a row that another one changes: PostgreSQL gets them in one statement."""

    each: Sequence[TableChange]


Statement: TypeAlias = Query | TableChanges
Rows: TypeAlias = Sequence[Sequence[Any]]
Script: TypeAlias = Generator[Statement, Rows, T]


def execute_changes(*changes: TableChange) -> Script[None]:
    """`TableChanges`, if there is anything to do."""
    if some := [change for change in changes if change.rows]:
        yield TableChanges(some)


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
