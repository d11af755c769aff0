"""Which record changed when: enough to tell any client what it missed, however long it slept, in memory that it cannot grow.

No events are kept. Every record has the sequence number of its last change, and the numbers are in order: what a client
missed are the records from its number on, as they are now. Two changes of one record are one. So a slow client costs
nothing, and a burst that it slept through is as long as what it changed.

What is gone has no record, and a block of the map has none either: of these, marks are kept, the latest few thousand. A
client that is older than a dropped mark cannot be told what it missed, and is sent everything.

Changes are gathered under one number until `publish`.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")
Key = tuple[Enum, str, int]
"""The kind of record, its name, and for a block its number."""

_MOST_MARKS = 8_192


class MissedChanges(Struct, Generic[T], frozen=True):
    """What a client missed: keys of records and marks, newest first, and what was noted, oldest first."""

    keys: tuple[Key, ...]
    notes: tuple[T, ...]


class ChangeLog(Generic[T]):
    """Sequence numbers of records, marks and notes. Notes (decisions) are never replaced, and the latest are kept."""

    def __init__(self, *, most_notes: int, most_marks: int = _MOST_MARKS) -> None:
        self.sequence = 0
        """The number of the last publication."""
        self._is_open = False
        """Whether anything changed since."""
        self._records: dict[Key, int] = {}
        """By key, in the order of their last change."""
        self._marks: dict[Key, int] = {}
        self._notes: deque[tuple[int, T]] = deque()
        self._most_notes = most_notes
        self._most_marks = most_marks
        self._complete_since = 0
        """A client of an earlier number cannot be told what it missed."""

    @property
    def is_open(self) -> bool:
        """Whether there is something to publish."""
        return self._is_open

    def record(self, key: Key) -> None:
        """Note that a record is new or another than before."""
        self._marks.pop(key, None)
        _renew(self._records, key, self._opened())

    def mark(self, key: Key) -> None:
        """Note that a record is gone, or that what has no record changed."""
        self._records.pop(key, None)
        _renew(self._marks, key, self._opened())
        if len(self._marks) > self._most_marks:
            oldest = next(iter(self._marks))
            self._complete_since = max(self._complete_since, self._marks.pop(oldest))

    def note(self, note: T) -> None:
        """Remember a note."""
        self._notes.append((self._opened(), note))
        if len(self._notes) > self._most_notes:
            dropped, _ = self._notes.popleft()
            self._complete_since = max(self._complete_since, dropped)

    def publish(self) -> bool:
        """Give what changed its number. Returns whether anything did."""
        if not self._is_open:
            return False
        self._is_open = False
        self.sequence += 1
        return True

    def notes(self) -> tuple[T, ...]:
        """All that are remembered, oldest first."""
        return tuple(note for _, note in self._notes)

    def since(self, sequence: int) -> MissedChanges[T] | None:
        """What a client missed that has seen everything up to this number; None if that is not known any more.

        To be asked after `publish`: what is still open belongs to a later number.
        """
        if not self._complete_since <= sequence <= self.sequence:
            return None
        later: list[Key] = []
        for known in (self._records, self._marks):
            _take_later(known, sequence, later.append)
        notes: list[T] = []
        for number, note in reversed(self._notes):
            if number <= sequence:
                break
            notes.append(note)
        return MissedChanges(tuple(later), tuple(reversed(notes)))

    def _opened(self) -> int:
        self._is_open = True
        return self.sequence + 1


def _renew(known: dict[Key, int], key: Key, sequence: int) -> None:
    """Put a key at the end: a dict is in the order of insertion."""
    known.pop(key, None)
    known[key] = sequence


def _take_later(known: dict[Key, int], sequence: int, take: Callable[[Key], None]) -> None:
    for key in reversed(known):
        if known[key] <= sequence:
            return
        take(key)
