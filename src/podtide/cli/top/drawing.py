"""`podtide top` on a terminal. A module of its own, because rich is imported only where it draws."""

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from podtide.cli.top.overview import Overview
from podtide.cli.top.tables import TopTable, all_tables
from podtide.cli.top.view import TopGrouping


def drawing_of(
    overview: Overview | None,
    complaint: str,
    width: int | None = None,
    by: TopGrouping = TopGrouping.NODE,
) -> RenderableType:
    """All tables, worst first: what does not fit on the screen are the nodes in the best state."""
    trouble = [Text(complaint, style="bold red")] if complaint else []
    if overview is None:
        return Group(*trouble, Text("reading the cluster"))
    first, *others = all_tables(overview, by)
    rest = (part for table in others for part in (Text(), _drawn(table.fitted(width))))
    return Group(*trouble, _drawn(first.fitted(width)), *rest)


def _drawn(table: TopTable) -> RichTable:
    drawn = RichTable(
        box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True
    )
    for column in table.columns:
        drawn.add_column(column, no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row.cells, style="bold red" if row.is_bad else "")
    return drawn
