"""Decisions as lines, equal ones as one: when twenty nodes decide the same, that is one line with a count."""

from msgspec import Struct, field

_MOST_NAMED = 3


class _FoldedDecision(Struct):
    words: str
    at: float
    who: list[str] = field(default_factory=list)
    times: int = 0

    def line(self) -> str:
        """`node-1 asks for 15`, `each of 20 nodes (node-01, node-02, …) asks for 15`, or `3 times: the plugin failed`."""
        if len(self.who) > 1:
            names = sorted(self.who)
            if len(names) <= _MOST_NAMED:
                return f"each of {', '.join(names[:-1])} and {names[-1]} {self.words}"
            return f"each of {len(names)} nodes ({names[0]}, {names[1]}, …) {self.words}"
        line = f"{self.who[0]} {self.words}" if self.who else self.words
        return f"{self.times} times: {line}" if self.times > 1 else line


class FoldedDecisions:
    """The latest decisions, oldest first; one that is repeated moves to the end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._told: dict[str, _FoldedDecision] = {}

    def add(self, words: str, who: str, at: float) -> None:
        """Add a decision. The same words again are counted in the same line."""
        told = self._told.pop(words, None) or _FoldedDecision(words, at)
        told.times += 1
        if who and who not in told.who:
            told.who.append(who)
        self._told[words] = told
        while len(self._told) > self._most:
            del self._told[next(iter(self._told))]

    def lines(self) -> list[str]:
        """All decisions as lines."""
        return [told.line() for told in self._told.values()]

    def take(self, until: float) -> list[tuple[float, str]]:
        """Remove and return the decisions that were first added until then, each with that time."""
        due = [told for told in self._told.values() if told.at <= until]
        for told in due:
            del self._told[told.words]
        return sorted((told.at, told.line()) for told in due)
