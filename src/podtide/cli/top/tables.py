"""The tables of `podtide top`: the same columns on a terminal, in a file, and while they are redrawn."""

from collections.abc import Iterator

from msgspec import Struct

from podtide.cli.output import table
from podtide.cli.screen_width import fitted
from podtide.cli.top.overview import NodeLine, Overview, ReservedBy, SubnetLine
from podtide.core.subnet.count_text import count_text

_UNKNOWN = "-"


class TopRow(Struct, frozen=True):
    """The cells, and whether the row is to be highlighted."""

    cells: tuple[str, ...]
    is_bad: bool = False


class TopTable(Struct, frozen=True):
    """Columns and rows."""

    columns: tuple[str, ...]
    rows: tuple[TopRow, ...]
    dispensable: tuple[str, ...] = ()
    """Columns to drop first on a narrow terminal."""

    def fitted(self, width: int | None) -> "TopTable":
        """The same table for a terminal of that width."""
        heads, *cells = fitted(
            [self.columns, *(row.cells for row in self.rows)], width, dispensable=self.dispensable
        )
        rows = (TopRow(tuple(each), is_bad=row.is_bad) for each, row in zip(cells, self.rows, strict=True))
        return TopTable(tuple(heads), tuple(rows))

    def lines(self, width: int | None = None) -> Iterator[str]:
        """The table as plain text."""
        shown = self.fitted(width)
        return table([shown.columns, *(row.cells for row in shown.rows)])


def tables_of(overview: Overview) -> tuple[TopTable, TopTable]:
    """The tables of subnets and of nodes."""
    return (
        TopTable(
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
            dispensable=("USED", "BUFFER", "CIDR", "NODES"),
        ),
        TopTable(
            ("NODE", "SUBNET", "REQUESTED", "HELD", "FREE", "PODS", "WAITING", "OWED"),
            tuple(_node_row(line) for line in overview.nodes),
            dispensable=("SUBNET",) if len(overview.subnets) == 1 else (),
        ),
    )


def cidr_tables(overview: Overview) -> tuple[TopTable, ...]:
    """The table of the ranges of subnets that have several; empty if none has."""
    rows = tuple(
        TopRow((line.name, each.cidr, each.gateway or "-", "draining" if each.draining else "ok"))
        for line in overview.subnets
        if len(line.cidrs) > 1
        for each in line.cidrs
    )
    return (TopTable(("SUBNET", "CIDR", "GATEWAY", "STATE"), rows),) if rows else ()


def _subnet_row(line: SubnetLine) -> TopRow:
    used = f"{100 * line.reserved // line.capacity}%" if line.capacity and line.reserved is not None else None
    state = "starved" if line.starved else "exhausted" if line.exhausted else "ok"
    by_nodes = line.reserved_by is ReservedBy.NODES
    cells = (
        line.name,
        line.cidr or None,
        line.capacity,
        f"≥{line.reserved}" if by_nodes else line.reserved,
        f"≤{line.free}" if by_nodes else line.free,
        used,
        line.batch,
        None if line.buffer is None else f"{line.buffer:g}",
        state,
        line.nodes,
        line.owed,
    )
    return TopRow(tuple(map(_cell, cells)), is_bad=line.starved or line.exhausted)


def _node_row(line: NodeLine) -> TopRow:
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
    return TopRow(tuple(map(_cell, cells)), is_bad=line.owed > 0)


def _cell(value: str | int | None) -> str:
    if value is None:
        return _UNKNOWN
    return value if isinstance(value, str) else count_text(value)
