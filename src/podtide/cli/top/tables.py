"""The tables of `podtide top`: the same columns on a terminal, in a file, and while they are redrawn."""

from collections.abc import Iterator

from msgspec import Struct

from podtide.cli.output.formats import table
from podtide.cli.output.screen_width import fitted
from podtide.cli.top.overview import NamespaceLine, NetworkLine, NodeLine, Overview, ReservedBy, SubnetLine
from podtide.cli.top.view import TopGrouping
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


def all_tables(
    overview: Overview, by: TopGrouping = TopGrouping.NODE, *, is_wide: bool = False
) -> tuple[TopTable, ...]:
    """Every table in the order they are shown: subnets, their ranges, secondary networks, nodes or namespaces."""
    subnets, nodes = tables_of(overview, is_wide=is_wide)
    last = namespace_table(overview) if by is TopGrouping.NAMESPACE else nodes
    return (subnets, *cidr_tables(overview), *network_tables(overview), last)


def tables_of(overview: Overview, *, is_wide: bool = False) -> tuple[TopTable, TopTable]:
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
                *(["RESERVED BY"] if is_wide else []),
            ),
            tuple(_subnet_row(line, is_wide=is_wide) for line in overview.subnets),
            dispensable=("USED", "BUFFER", "CIDR", "NODES"),
        ),
        TopTable(
            (
                *("NODE", "SUBNET", "REQUESTED", "HELD", "FREE", "PODS", "WAITING", "OWED"),
                *(["SECONDARY"] if is_wide else []),
            ),
            tuple(_node_row(line, is_wide=is_wide) for line in overview.nodes),
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


def network_tables(overview: Overview) -> tuple[TopTable, ...]:
    """The table of secondary networks; empty if there are none."""
    rows = tuple(map(_network_row, overview.networks))
    columns = ("NETWORK", "RANGES", "CAPACITY", "HELD", "FREE", "USED", "QUARANTINED", "SLICES")
    return (TopTable(columns, rows, dispensable=("USED", "RANGES")),) if rows else ()


def namespace_table(overview: Overview) -> TopTable:
    """The table of namespaces, instead of that of nodes."""
    columns = ("NAMESPACE", "PODS", "WAITING", "ADDRESSES", "SECONDARY", "NODES")
    return TopTable(columns, tuple(map(_namespace_row, overview.namespaces)))


def _network_row(line: NetworkLine) -> TopRow:
    free = max(0, line.capacity - line.held)
    cells: tuple[str | int | None, ...] = (
        line.name or None,
        ",".join(line.ranges) or None,
        line.capacity,
        line.held,
        free,
        f"{100 * line.held // line.capacity}%" if line.capacity else None,
        line.quarantined,
        None if line.slices is None else f"{line.slices}/{count_text(line.slices_total or 0)}",
    )
    return TopRow(tuple(map(_cell, cells)), is_bad=bool(line.capacity) and not free)


def _namespace_row(line: NamespaceLine) -> TopRow:
    cells: tuple[str | int | None, ...] = (
        line.name,
        line.pods_with_address,
        line.pods_without_address,
        line.addresses,
        line.secondary,
        line.nodes,
    )
    return TopRow(tuple(map(_cell, cells)), is_bad=line.pods_without_address > 0)


def _subnet_row(line: SubnetLine, *, is_wide: bool) -> TopRow:
    used = f"{100 * line.reserved // line.capacity}%" if line.capacity and line.reserved is not None else None
    state = "starved" if line.starved else "exhausted" if line.exhausted else "ok"
    by_nodes = line.reserved_by is ReservedBy.NODES
    cells: tuple[str | int | None, ...] = (
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
        *([line.reserved_by] if is_wide else []),
    )
    return TopRow(tuple(map(_cell, cells)), is_bad=line.starved or line.exhausted)


def _node_row(line: NodeLine, *, is_wide: bool) -> TopRow:
    cells: tuple[str | int | None, ...] = (
        line.name,
        ",".join(line.subnets) or None,
        line.requested,
        line.held,
        line.free,
        line.pods_with_address,
        line.pods_without_address,
        line.owed,
        *([line.secondary] if is_wide else []),
    )
    return TopRow(tuple(map(_cell, cells)), is_bad=line.owed > 0)


def _cell(value: str | int | None) -> str:
    if value is None:
        return _UNKNOWN
    return value if isinstance(value, str) else count_text(value)
