"""The tables of `podtide top`: the same columns on a terminal, in a file, and while they are redrawn."""

from collections.abc import Iterator

from msgspec import Struct

from podtide.cli.output import table
from podtide.cli.top_overview import NodeLine, Overview, SubnetLine
from podtide.core.count_text import count_text

_UNKNOWN = "-"


class Row(Struct, frozen=True):
    """The cells, and whether a person should look here."""

    cells: tuple[str, ...]
    is_bad: bool = False


class Table(Struct, frozen=True):
    """Columns and rows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def lines(self) -> Iterator[str]:
        """As plain text."""
        return table([self.columns, *(row.cells for row in self.rows)])


def tables_of(overview: Overview) -> tuple[Table, Table]:
    """Subnets, and nodes."""
    return (
        Table(
            (
                "SUBNET",
                "CIDR",
                "CAPACITY",
                "RESERVED",
                "FREE",
                "USED",
                "BATCH",
                "BUFFER",
                "STATE",
                "NODES",
                "OWED",
            ),
            tuple(_subnet_row(line) for line in overview.subnets),
        ),
        Table(
            ("NODE", "SUBNET", "REQUESTED", "HELD", "FREE", "PODS", "WAITING", "OWED"),
            tuple(_node_row(line) for line in overview.nodes),
        ),
    )


def _subnet_row(line: SubnetLine) -> Row:
    used = f"{100 * line.reserved // line.capacity}%" if line.capacity and line.reserved is not None else None
    state = "starved" if line.starved else "exhausted" if line.exhausted else "ok"
    cells = (
        line.name,
        line.cidr or None,
        line.capacity,
        line.reserved,
        line.free,
        used,
        line.batch,
        None if line.buffer is None else f"{line.buffer:g}",
        state,
        line.nodes,
        line.owed,
    )
    return Row(tuple(map(_cell, cells)), is_bad=line.starved or line.exhausted)


def _node_row(line: NodeLine) -> Row:
    cells = (
        line.name,
        ",".join(line.subnets) or None,
        line.requested,
        line.held,
        line.free,
        line.pods_with_address,
        line.pods_without_address,
        line.owed,
    )
    return Row(tuple(map(_cell, cells)), is_bad=line.owed > 0)


def _cell(value: str | int | None) -> str:
    if value is None:
        return _UNKNOWN
    return value if isinstance(value, str) else count_text(value)
