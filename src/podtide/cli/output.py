"""What the commands share: `-o text|json`, exact fractions as arguments, tables for people and JSON for programs."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import click
import msgspec

from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, shortened

_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")
Command = TypeVar("Command", bound=Callable[..., Any])


def output_option(command: Command) -> Command:
    """`-o text` for people, `-o json` for programs; the command gets it as `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Text for people, JSON for programs.",
    )(command)


class FractionType(click.ParamType[Fraction]):
    """A decimal or a fraction, kept exact."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """Read it, and call it by its option's name when it is no number."""
        del ctx
        return exact(value, param.opts[0] if param else "value")


FRACTION = FractionType()


class CountType(click.ParamType[int]):
    """A whole number. Which ones make sense, a negative one for instance, is for the decision to say."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it, and call it by its option's name when it is none."""
        del ctx
        if isinstance(value, int):
            return value
        if not _WHOLE_NUMBER.fullmatch(value.strip()):
            name = param.opts[0] if param else "value"
            raise InvalidInput(
                f"{name} {shortened(value)!r} is no whole number of at most 18 digits: give one"
            )
        return int(value)


COUNT = CountType()


class BoundedCount(CountType):
    """A whole number between two bounds, which whoever is asked would refuse in words that name no option."""

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it, and call it by its option's name when it is none, or out of bounds."""
        try:
            number = super().convert(value, param, ctx)
        except InvalidInput:
            number = self._least - 1
        if not self._least <= number <= self._most:
            name = param.opts[0] if param else "value"
            raise InvalidInput(
                f"{name}={shortened(str(value))} is refused: give a whole number, at least {self._least} and at most "
                f"{self._most}"
            )
        return number


def show(output: str, document: Any, lines: Iterable[str]) -> None:
    """Print the document or the lines, as asked."""
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
    """Print what was tolerated, one line each, where it does not disturb a program that reads the answer."""
    for line in words:
        click.echo(f"podtide: warning: {line}", err=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
