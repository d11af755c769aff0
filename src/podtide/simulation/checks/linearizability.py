"""Whether calls and their answers can be explained by an address that belongs to at most one sandbox at a time.

Nothing is known here of pools, grants or nodes: only what callers saw, each event with its number in the order of all.
An ADD takes effect at some moment between its call and its answer; what it brought is given up at some moment after its
caller begins to give it up. The history of one address is linearizable if such moments can be chosen so that the
sandboxes never overlap. Calls without an answer constrain nothing: they may have had no effect.

Where a sandbox gives its address up after the answer, the choice that leaves most room is to take effect at the answer
and to end at once: its span is certain. Where it began to give it up while the ADD was in flight, it may have had the
address for one moment only, anywhere from then to the answer. So a history is linearizable exactly if

    the certain spans of different sandboxes do not overlap, and
    no such window lies wholly within the certain span of another sandbox.

Sandboxes' events have numbers of their own, so between two certain spans there is always a moment for one of the latter.
A history of several addresses is linearizable if that of each one is, because linearizability is local.
"""

import math
from collections.abc import Iterable

from msgspec import Struct


class Hold(Struct, frozen=True, kw_only=True):
    """An ADD that was answered with the address, as its caller saw it."""

    holder: str
    asked: int
    answered: int
    given_up: float = math.inf
    """When the caller first began to give it up after it asked; infinity while it has not."""

    @property
    def is_certain(self) -> bool:
        """Whether there is a time in which it surely has the address: from its answer on."""
        return self.given_up > self.answered


def contradiction(holds: Iterable[Hold]) -> tuple[Hold, Hold] | None:
    """Two holds of one address that cannot both be explained; None if the history is linearizable."""
    holds = sorted(holds, key=lambda hold: hold.answered if hold.is_certain else hold.given_up)
    longest = _Longest()
    for hold in holds:
        other = longest.of_another(hold.holder)
        until = hold.answered
        if other is not None and other.given_up > until:
            return other, hold
        if hold.is_certain:
            longest.take(hold)
    return None


class _Longest:
    """Of the certain spans that began so far, the one that ends last, and the one that does so among other holders."""

    def __init__(self) -> None:
        self._first: Hold | None = None
        self._second: Hold | None = None

    def take(self, hold: Hold) -> None:
        first, second = self._first, self._second
        if first is None or hold.given_up > first.given_up:
            if first is not None and first.holder != hold.holder:
                self._second = first
            self._first = hold
        elif hold.holder != first.holder and (second is None or hold.given_up > second.given_up):
            self._second = hold

    def of_another(self, holder: str) -> Hold | None:
        if self._first is None or self._first.holder != holder:
            return self._first
        return self._second
