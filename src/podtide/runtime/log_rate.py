"""How many lines a program writes about one thing: a flood from outside must not fill the disk.

Each event has a budget of its own, so that what floods leaves room for the rest: a burst is written whole, then so
many lines a second, and the next line that is written says how many were left out before it (`unlogged`).
"""

from msgspec import Struct

_MOST_EVENTS = 512
"""Events are words in the program's source, but libraries may put anything there: the rest share one budget."""


class Budget(Struct, frozen=True):
    """How many lines are allowed at once, and how many a second."""

    burst: int
    per_second: float


CHATTER = Budget(2000, 50.0)
"""Every call and request is a line: all pods of a node may start at once."""
COMPLAINTS = Budget(250, 2.0)
"""From warnings on. They are longer, with tracebacks by far."""


class LogRate:
    """The budgets of one program's log, by event."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, Budget], _Account] = {}

    def spend(self, event: str, budget: Budget, now: float) -> int | None:
        """How many lines of this event were dropped before this one; None if this one must be dropped too."""
        account = self._account(event, budget, now)
        account.lines = min(budget.burst, account.lines + (now - account.since) * budget.per_second)
        account.since = now
        if account.lines < 1:
            account.unlogged += 1
            return None
        account.lines -= 1
        unlogged, account.unlogged = account.unlogged, 0
        return unlogged

    def _account(self, event: str, budget: Budget, now: float) -> "_Account":
        if (event, budget) not in self._accounts and len(self._accounts) >= _MOST_EVENTS:
            event = ""
        return self._accounts.setdefault((event, budget), _Account(budget.burst, now))


class _Account(Struct):
    lines: float
    since: float
    unlogged: int = 0
