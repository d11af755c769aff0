"""Values as people write them in a scenario file: durations, and numbers that need not be exact."""

import re
from typing import Any, TypeVar

import msgspec

from podtide.core.errors import InvalidInput
from podtide.runtime.durations import format_duration, parse_duration

_RELATIONS = ("at least", "at most", "more than", "less than")
_AMOUNT = re.compile(rf"({'|'.join(_RELATIONS)}) (\d{{1,12}})", re.ASCII)

T = TypeVar("T")


class Seconds(float):
    """A duration such as `30s`, `100ms` or `5m`."""

    def __str__(self) -> str:
        return format_duration(self)


class Amount:
    """How many of something are expected: `5`, or `at least 5`."""

    def __init__(self, number: int, relation: str = "") -> None:
        self.number = number
        self.relation = relation

    def allows(self, measured: int) -> bool:
        """Whether the expectation is met by this number."""
        return {
            "": measured == self.number,
            "at least": measured >= self.number,
            "at most": measured <= self.number,
            "more than": measured > self.number,
            "less than": measured < self.number,
        }[self.relation]

    def __str__(self) -> str:
        return f"{self.relation} {self.number}".lstrip()


def read_value(written: Any, kind: type[T]) -> T:
    """The value, converted to the type; ValidationError if it is not one."""
    return msgspec.convert(written, kind, dec_hook=_read)


def _read(kind: type, written: Any) -> Any:
    if kind is Seconds:
        return Seconds(parse_duration(str(written)))
    if kind is Amount:
        return _read_amount(written)
    raise NotImplementedError(kind)


def _read_amount(written: Any) -> Amount:
    if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
        return Amount(written)
    if isinstance(written, str) and (match := _AMOUNT.fullmatch(written)):
        return Amount(int(match[2]), match[1])
    raise InvalidInput(f"{written!r} is not a number, alone or after {', '.join(_RELATIONS)}")
