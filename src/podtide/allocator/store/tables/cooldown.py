"""Addresses that rest: those a node gave back cool down, those of a removed node are in quarantine.

What cools down is a row with the time its rest ends, so that what is due is found by an index; it is free, and is
granted when nothing else is. What is in quarantine is reserved and is never granted, however long ago it began, until a
controller or a person ends the quarantine (`quarantines`; design R5, "A node deleted while its machine lives").
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from podtide.allocator.store.script import Query, Rows, Script, TableChange, execute_changes
from podtide.core.subnet.chunks import lowest

_PAGE = 256
_DUE = f"""SELECT quarantined, until, chunk, holder, mask FROM resting
    WHERE subnet = $1 AND quarantined = 0 AND until <= $2 LIMIT {_PAGE}"""  # noqa: S608 - a number
_COOLING_OF_HOLDER = """SELECT quarantined, until, chunk, holder, mask FROM resting /*index cooling_by_holder*/
    WHERE subnet = $1 AND quarantined = 0 AND holder = $2"""
_COOLING = """SELECT quarantined, until, chunk, holder, mask FROM resting
    WHERE subnet = $1 AND quarantined = 0{} ORDER BY until LIMIT $2"""
_ALL = "SELECT quarantined, until, chunk, holder, mask FROM resting WHERE subnet = $1"
_QUARANTINED_OF_HOLDER = """SELECT quarantined, until, chunk, holder, mask FROM resting /*index quarantined_by_holder*/
    WHERE subnet = $1 AND quarantined = 1 AND holder = $2"""
_DROP = """DELETE FROM resting
    WHERE subnet = $1 AND quarantined = $2 AND until = $3 AND chunk = $4 AND holder = $5"""
_SAVE = """INSERT INTO resting (subnet, quarantined, until, chunk, holder, mask) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (subnet, quarantined, until, chunk, holder) DO UPDATE SET mask = excluded.mask"""
_ADD = """INSERT INTO resting (subnet, quarantined, until, chunk, holder, mask) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (subnet, quarantined, until, chunk, holder) DO UPDATE SET mask = resting.mask | excluded.mask"""


class Rest(NamedTuple):
    """The key of addresses that rest together: of one chunk, last held by one container, until one time."""

    quarantined: int
    until: float
    chunk: int
    holder: str


class Resting:
    """The resting addresses of a subnet, as far as a transaction has read or added them."""

    def __init__(self, subnet: int) -> None:
        self._subnet = subnet
        self._known: dict[Rest, int] = {}
        self._changed: set[Rest] = set()
        self._added: dict[Rest, int] = {}

    def add(self, rest: Rest, mask: int) -> None:
        """Add resting addresses."""
        self._keep(rest, mask | self._known.get(rest, 0) | self._added.get(rest, 0))

    def take_due(self, now: float) -> Script[list[tuple[Rest, int]]]:
        """Remove and return some of the addresses whose cool-down is over; nothing when none is.

        Of a row that this transaction has read before, only what it has not taken since.
        """
        rows = yield Query(_DUE, (self._subnet, now))
        due = [(rest := Rest(*columns), self._known.pop(rest, mask)) for *columns, mask in rows]
        self._changed.difference_update(rest for rest, _mask in due)
        yield from execute_changes(TableChange(_DROP, [(self._subnet, *rest) for rest, _mask in due]))
        return due

    def take_cooling(self, count: int, holder: str, draining: Sequence[range] = ()) -> Script[dict[int, int]]:
        """Masks by chunk of `count` addresses that cool down, or as many as do: the holder's own, then the longest resting.

        None of the chunks that drain.
        """
        self._know((yield Query(_COOLING_OF_HOLDER, (self._subnet, holder))))
        outside = "".join(
            f" AND chunk NOT BETWEEN ${place} AND ${place + 1}"
            for place in range(3, 3 + 2 * len(draining), 2)
        )
        ends = (end for chunks in draining for end in (chunks.start, chunks.stop - 1))
        self._know((yield Query(_COOLING.format(outside), (self._subnet, count + len(self._known), *ends))))
        cooling = [
            rest
            for rest in (*self._known, *self._added)
            if not rest.quarantined and not any(rest.chunk in chunks for chunks in draining)
        ]
        taken: dict[int, int] = {}
        for rest in sorted(cooling, key=lambda rest: (rest.holder != holder, rest.until, rest.chunk)):
            there = self._known.get(rest, 0) | self._added.get(rest, 0)
            mask = lowest(there, count)
            self._keep(rest, there & ~mask)
            taken[rest.chunk] = taken.get(rest.chunk, 0) | mask
            count -= mask.bit_count()
        return {chunk: mask for chunk, mask in taken.items() if mask}

    def take_these(
        self, masks: dict[int, int], but_for: Collection[str] = ()
    ) -> Script[tuple[tuple[dict[int, int], dict[int, int]], list[str]]]:
        """Take these very addresses, as far as they rest: those that cooled down, and those in quarantine, by chunk.

        What is in quarantine of the removed containers `but_for` stays.
        With it, the removed containers of which nothing is left in quarantine by that.
        """
        rows = yield Query(_ALL, (self._subnet,))
        self._know(rows)
        taken: tuple[dict[int, int], dict[int, int]] = ({}, {})
        left: set[str] = set()
        for rest in (*self._known, *self._added):
            if rest.quarantined and rest.holder in but_for:
                continue
            there = self._known.get(rest, 0) | self._added.get(rest, 0)
            if mask := there & masks.get(rest.chunk, 0):
                self._keep(rest, there & ~mask)
                part = taken[rest.quarantined]
                part[rest.chunk] = part.get(rest.chunk, 0) | mask
                if rest.quarantined:
                    left.add(rest.holder)
        return taken, [holder for holder in sorted(left) if not self.is_in_quarantine(holder)]

    def at_rest_of(self, masks: Mapping[int, int], holder: str) -> Script[dict[int, int]]:
        """Those of these addresses that cool down, or are in quarantine of this removed container, by chunk; they stay so."""
        self._know((yield Query(_ALL, (self._subnet,))))
        found: dict[int, int] = {}
        for rest in (*self._known, *self._added):
            if rest.quarantined and rest.holder != holder:
                continue
            there = self._known.get(rest, 0) | self._added.get(rest, 0)
            if mask := there & masks.get(rest.chunk, 0):
                found[rest.chunk] = found.get(rest.chunk, 0) | mask
        return found

    def take_quarantined(
        self, holder: str, wanted: Mapping[int, int] | None = None
    ) -> Script[dict[int, int]]:
        """Masks by chunk of what is in quarantine of a removed container, taken out: all, or what is wanted of it."""
        self._know((yield Query(_QUARANTINED_OF_HOLDER, (self._subnet, holder))))
        taken: dict[int, int] = {}
        for rest in [
            rest for rest in (*self._known, *self._added) if rest.quarantined and rest.holder == holder
        ]:
            there = self._known.get(rest, 0) | self._added.get(rest, 0)
            mask = there if wanted is None else there & wanted.get(rest.chunk, 0)
            if mask:
                self._keep(rest, there & ~mask)
                taken[rest.chunk] = taken.get(rest.chunk, 0) | mask
        return taken

    def is_in_quarantine(self, holder: str) -> bool:
        """Whether anything of a removed container, which was taken from before, is left."""
        return any(
            mask and rest.quarantined and rest.holder == holder
            for there in (self._known, self._added)
            for rest, mask in there.items()
        )

    @property
    def changes(self) -> tuple[TableChange, ...]:
        """What changed."""
        changed = sorted(self._changed)
        gone = [rest for rest in changed if not self._known[rest]]
        kept = [rest for rest in changed if self._known[rest]]
        return (
            TableChange(_DROP, [(self._subnet, *rest) for rest in gone]),
            TableChange(_SAVE, [(self._subnet, *rest, self._known[rest]) for rest in kept]),
            TableChange(_ADD, [(self._subnet, *rest, mask) for rest, mask in self._added.items() if mask]),
        )

    def _know(self, rows: Rows) -> None:
        for *columns, mask in rows:
            rest = Rest(*columns)
            if rest not in self._known:  # what is known may have changed since it was read
                self._known[rest] = mask
                if rest in self._added:
                    self._keep(rest, mask | self._added.pop(rest))

    def _keep(self, rest: Rest, mask: int) -> None:
        if rest in self._known:
            self._known[rest] = mask
            self._changed.add(rest)
        else:
            self._added[rest] = mask
