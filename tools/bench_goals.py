"""What a benchmark's figures are held against: a goal, and the figure that was recorded last.

`bench/data/goals.toml` names figures by part and label. A figure's number is the first one in its text. Counts and ratios
mean the same on every machine: a run in which one of them is a quarter worse than recorded fails. Bare times differ from
machine to machine and hour to hour, so they are compared and never fail. `bench/data/recorded.json` is written by
`make bench ARGS=--record`, part by part.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert

GOALS, RECORDED = "goals.toml", "recorded.json"
WORSE_BY = 1.25
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """What a figure is to be, and what kind of number it is."""

    kind: Literal["count", "ratio", "time", "rate", "size"]
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        """A goal has one direction, so that worse means one thing."""
        if (self.at_most is None) is (self.at_least is None):
            raise ValueError("a goal has either at_most or at_least")

    @property
    def can_fail(self) -> bool:
        """Whether the number means the same on every machine."""
        return self.kind in {"count", "ratio"}

    def is_met_by(self, number: float) -> bool:
        """Whether the goal is reached."""
        if self.at_most is not None:
            return number <= self.at_most
        return self.at_least is not None and number >= self.at_least

    def is_worse(self, number: float, recorded: float) -> bool:
        """Whether the number is a quarter worse than the one that was recorded."""
        if self.at_most is not None:
            return number > recorded * WORSE_BY
        return number * WORSE_BY < recorded

    def __str__(self) -> str:
        sign, limit = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        return f"{sign} {limit:,g}"


class Verdict(Struct, frozen=True):
    """What is said of a figure beside it, and whether the run fails by it."""

    words: str = ""
    fails: bool = False


class Ledger:
    """Goals and recorded figures of all parts. Figures of the run are kept until they are written."""

    def __init__(self, directory: Path) -> None:
        self._recorded_file = directory / RECORDED
        self._goals: dict[str, dict[str, Goal]] = convert(
            tomllib.loads((directory / GOALS).read_text()), dict[str, dict[str, Goal]]
        )
        there = self._recorded_file.is_file()
        self._recorded: dict[str, dict[str, float]] = (
            json.loads(self._recorded_file.read_text()) if there else {}
        )
        self._measured: dict[str, dict[str, float]] = {}

    def judge(self, part: str, label: str, figure: str) -> Verdict:
        """Compare a figure with its goal and with the last one recorded."""
        goal = self._goals.get(part, {}).get(label)
        if goal is None:
            return Verdict()
        number = number_in(figure)
        if number is None:
            return Verdict(f"goal {goal}: not measured")
        self._measured.setdefault(part, {})[label] = number
        words = f"goal {goal}: {'met' if goal.is_met_by(number) else 'missed'}"
        recorded = self._recorded.get(part, {}).get(label)
        if recorded is None:
            return Verdict(f"{words}, none recorded")
        words += f", {number / recorded:.2f} of recorded" if recorded else f", {recorded:g} recorded"
        fails = goal.can_fail and goal.is_worse(number, recorded)
        return Verdict(f"{words}: WORSE" if fails else words, fails)

    def unknown(self, part: str) -> tuple[str, ...]:
        """The part's goals of which no figure came in this run: their labels may have changed."""
        return tuple(sorted(self._goals.get(part, {}).keys() - self._measured.get(part, {}).keys()))

    def record(self) -> None:
        """Keep the figures of this run as those to compare with. Others stay as they were."""
        for part, figures in self._measured.items():
            self._recorded.setdefault(part, {}).update(figures)
        ordered = {part: dict(sorted(figures.items())) for part, figures in sorted(self._recorded.items())}
        self._recorded_file.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n")


def number_in(figure: str) -> float | None:
    """The first number of a figure's text; None where there is none."""
    found = _NUMBER.search(figure)
    return float(found[0].replace(",", "")) if found else None
