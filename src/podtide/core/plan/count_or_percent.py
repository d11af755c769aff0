"""A count that may be written as a part of another one, as Kubernetes writes `maxSurge`: `3`, or `25%` rounded up."""

import re
from fractions import Fraction
from math import ceil

from msgspec import Struct

from podtide.core.errors import InvalidPlan
from podtide.core.exact import exact, shortened, text

_WRITTEN = re.compile(r"[0-9]{1,9}|[0-9]{1,9}(?:\.[0-9]{1,9})?%")


class CountOrPercent(Struct, frozen=True):
    """So many, and beside them such a part of a total."""

    count: int = 0
    part: Fraction = Fraction(0)

    def of(self, total: int) -> int:
        """How many that is of a total, rounded up."""
        return self.count + ceil(self.part * total)

    def __str__(self) -> str:
        return f"{text(self.part * 100)}%" if self.part else str(self.count)


def parse_count_or_percent(written: str | int, name: str) -> CountOrPercent:
    """The count that `3` or `25%` stands for; `name` is what the error calls it."""
    words = str(written).strip()
    if not _WRITTEN.fullmatch(words):
        raise InvalidPlan(
            f"{name} {shortened(words)!r} is refused: give a whole number or a percentage, 0 or more, such as 3 or 25%"
        )
    return CountOrPercent(part=exact(words)) if words.endswith("%") else CountOrPercent(count=int(words))
