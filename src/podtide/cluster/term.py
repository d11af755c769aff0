"""A term of leadership, as the leader's own work sees it."""

from math import inf

from podtide.core.errors import RetryError
from podtide.runtime.clock import Clock


class TermOver(RetryError):
    """The term ended before the write could be made. The next leader will make it."""


class Term:
    """Fencing by time: ask `check` before every write that only a leader may make.

    `number` grows with every change of leader; a store that remembers the highest it saw can refuse lower ones.
    """

    def __init__(self, number: int, valid_until: float, clock: Clock) -> None:
        self.number = number
        self._valid_until = valid_until
        self._clock = clock

    @property
    def remaining_seconds(self) -> float:
        """How long the term lasts unless it is renewed; 0 when it is over."""
        return max(0.0, self._valid_until - self._clock.monotonic())

    @property
    def valid(self) -> bool:
        """Whether we lead. Once false, it stays false."""
        return self.remaining_seconds > 0

    def check(self) -> None:
        """Raise TermOver if the term is over."""
        if not self.valid:
            raise TermOver(f"term {self.number} is over: leave this to the next leader")

    def renew(self, valid_until: float) -> None:
        """Extend the term. One that is over stays over: its work was cancelled."""
        if self.valid:
            self._valid_until = max(self._valid_until, valid_until)

    def end(self) -> None:
        """End the term now."""
        self._valid_until = -inf
