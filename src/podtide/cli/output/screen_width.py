"""The width of the terminal, and lines and tables that fit it. Output to a file or another program is never shortened."""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence

_GAP = 2
_NARROWEST = 8
"""The shortest that a cell may become."""


def screen_width() -> int | None:
    """The width of the terminal; None if stdout is not one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def folded(first: str, rest: str, words: str, width: int | None) -> Iterator[str]:
    """The words after `first`, in lines of at most `width`; further lines begin with `rest`."""
    if width is None or len(first) + len(words) <= width:
        yield first + words
        return
    yield from textwrap.wrap(
        words,
        max(width, len(first) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def fitted(
    rows: Sequence[Sequence[str]], width: int | None, *, dispensable: Sequence[str] = ()
) -> list[list[str]]:
    """The rows of a table, the first being its headers, made to fit.

    First the dispensable columns are dropped, in that order; then the longest cells of the widest columns are shortened
    in their middle, because names differ at their ends.
    """
    table = [list(row) for row in rows]
    if width is None:
        return table
    for head in dispensable:
        if _total(table) <= width:
            break
        if head in table[0]:
            column = table[0].index(head)
            for row in table:
                del row[column]
    while _total(table) > width:
        widths = _widths(table)
        widest = max(range(len(widths)), key=lambda column: widths[column])
        to = max(_NARROWEST, widths[widest] - (_total(table) - width), len(table[0][widest]))
        if to >= widths[widest]:
            break
        for row in table:
            row[widest] = _shortened(row[widest], to)
    return table


def _shortened(cell: str, to: int) -> str:
    if len(cell) <= to:
        return cell
    head = (to - 1) // 2
    return f"{cell[:head]}…{cell[len(cell) - (to - 1 - head) :]}"


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[column]) for row in table) for column in range(len(table[0]))]


def _total(table: Sequence[Sequence[str]]) -> int:
    widths = _widths(table)
    return sum(widths) + _GAP * (len(widths) - 1)
