"""What commands print: `-o text|json`, tables for people, JSON for programs, and warnings on stderr."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import click
import msgspec

Command = TypeVar("Command", bound=Callable[..., Any])


def output_option(command: Command) -> Command:
    """Adds `-o text|json` to a command, which gets it as `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Text for people, JSON for programs.",
    )(command)


def show(output: str, document: Any, lines: Iterable[str]) -> None:
    """Print the document as JSON, or the lines as text."""
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain)).decode() + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as lines, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def counted(number: int, one: str, many: str) -> str:
    """`1 node is` or `3 nodes are`."""
    return f"{number} {one if number == 1 else many}"


def warn(words: Iterable[str]) -> None:
    """Print warnings to stderr, one line each, where they do not disturb a program that reads the output."""
    for line in words:
        click.echo(f"podtide: warning: {line}", err=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
