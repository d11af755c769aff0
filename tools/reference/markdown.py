"""Pieces of Markdown that pages of reference are made of."""

from collections.abc import Iterable, Iterator, Sequence


class Undescribed(Exception):
    """Something in the code has no sentence that says what it is."""


def described(sentence: str | None, what: str) -> str:
    """The sentence, in one line; Undescribed if there is none."""
    words = " ".join((sentence or "").split())
    if not words:
        raise Undescribed(f"{what} has no description: give it one where it is defined")
    return words


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, and the empty line after it; nothing if it has no rows."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    if lines:
        yield f"| {' | '.join(heads)} |"
        yield f"|{'---|' * len(heads)}"
        yield from (line.replace("|  |", "| |") for line in lines)
        yield ""


def code(text: object) -> str:
    """Text as code."""
    return f"`{text}`"
