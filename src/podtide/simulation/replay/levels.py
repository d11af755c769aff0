"""A count over time, by how long it was at each level: its mean and its quantiles are exact, however seldom it is looked at."""

from collections import defaultdict
from collections.abc import Sequence
from math import ceil


class LevelHistogram:
    """How many seconds a count was at each level."""

    def __init__(self, level: int, now: float) -> None:
        self._level = level
        self._since = now
        self._seconds: defaultdict[int, float] = defaultdict(float)

    @property
    def level(self) -> int:
        """The level at the moment."""
        return self._level

    def move(self, level: int, now: float) -> None:
        """The count has this level from now on."""
        if now > self._since:
            self._seconds[self._level] += now - self._since
            self._since = now
        self._level = level

    def mean(self) -> float:
        """The mean over the time."""
        total = sum(self._seconds.values())
        return (
            sum(level * seconds for level, seconds in self._seconds.items()) / total
            if total
            else float(self._level)
        )

    def quantile(self, part: float) -> int:
        """The lowest level under or at which the count was for this part of the time."""
        wanted, passed = part * sum(self._seconds.values()), 0.0
        for level in sorted(self._seconds):
            passed += self._seconds[level]
            if passed >= wanted:
                return level
        return self._level


def nearest_rank(ordered: Sequence[float], percent: int) -> float:
    """The value at or under which so many percent of the ordered values are; 0 if there are none."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0
