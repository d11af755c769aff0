"""What commands print: `-o`, tables for people, JSON, YAML and names for programs, colours, and warnings on stderr.

There are two sets of formats. A command that shows objects, such as subnets or nodes, has kubectl's: a table, a wide
one, JSON, YAML and bare names. A command that answers in sentences has text, JSON and YAML.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import click
import msgspec

from podtide.cli.output.screen_width import screen_width

Command = TypeVar("Command", bound=Callable[..., Any])

OBJECT_FORMATS = ("table", "wide", "json", "yaml", "name")
TEXT_FORMATS = ("text", "json", "yaml")
_DOCUMENTS = frozenset({"json", "yaml"})


class _FormatType(click.Choice[str]):
    """One of the formats. `text` is accepted for `table`, because half of all commands call it so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format."""
        meant = "table" if value == "text" and "table" in self.choices else value
        return str(super().convert(meant, param, ctx))


def output_option(command: Command) -> Command:
    """Adds `-o text|json|yaml` to a command that answers in sentences; it gets the format as `output`."""
    return formats_option(*TEXT_FORMATS, about="Text for people, JSON or YAML for programs.")(command)


def objects_option(command: Command) -> Command:
    """Adds `-o table|wide|json|yaml|name` to a command that shows objects; it gets the format as `output`."""
    return formats_option(
        *OBJECT_FORMATS, about="A table, a wide one with all columns, JSON, YAML, or names alone."
    )(command)


def formats_option(*formats: str, about: str) -> Callable[[Command], Command]:
    """Adds `-o` with these formats, of which the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=_FormatType(formats),
        default=formats[0],
        show_default=True,
        help=about,
    )


def show(output: str, document: Any, lines: Iterable[str], names: Iterable[str] = ()) -> None:
    """Print the document as JSON or YAML, the names, or else the lines, which are computed only if they are printed."""
    sys.stdout.write(rendered(output, document, lines, names))


def rendered(output: str, document: Any, lines: Iterable[str], names: Iterable[str] = ()) -> str:
    """The text that `show` prints."""
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain)).decode() + "\n"
    if output == "yaml":
        import yaml  # noqa: PLC0415 - needed for this format alone

        plain = msgspec.to_builtins(document, enc_hook=_plain, str_keys=True)
        return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
    return "".join(f"{line}\n" for line in (names if output == "name" else lines))


class ToldSteps:
    """The steps of a command, told as they are done. A program gets all of them in the document at the end."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._told: list[str] = []

    def __call__(self, words: str) -> None:
        """Tell one: on stdout as text, else on stderr, where a document on stdout is not disturbed."""
        self._told.append(words)
        click.echo(words, err=is_document(self._output))

    def document(self, **facts: Any) -> None:
        """Print the facts with all steps, unless text was asked for: that has been told."""
        if is_document(self._output):
            show(self._output, {**facts, "steps": self._told}, ())


def is_document(output: str) -> bool:
    """Whether the format is for programs, as a whole: JSON or YAML."""
    return output in _DOCUMENTS


def table_width(output: str) -> int | None:
    """The width that a table has to fit: that of the terminal; None for `-o wide`, and if stdout is not a terminal."""
    return None if output == "wide" else screen_width()


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as lines, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def has_colours() -> bool:
    """Whether to write colours: on a terminal that has them, unless NO_COLOR is set to anything (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def alarming(words: str) -> str:
    """The words, in red if there are colours. Only for whole lines: a table's cells are measured."""
    return click.style(words, fg="red", bold=True) if has_colours() else words


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
