"""How soon a network is looked at when something has happened to it.

What happens is gathered for a moment, so that nodes that come together are one write of the network's list of slices.
That list is one object, whose format is not ours to change (WIRE.md §5): with 5,000 entries it is a third of a megabyte,
for the API server, its database and every watch of it, whether one node came or a hundred. So the longer a list is, the
longer it rests after a look. A node that comes to a quiet network does not wait for that; where nodes come and go all
the time, more of them share a write, and the bytes per second have a bound that the size of the cluster does not move.
"""

from podtide.runtime.clock import Clock

GATHER_SECONDS = 0.5
ENTRIES_A_SECOND = 1_000
"""How much of a list a second of rest is for. An entry is about 65 bytes, so events have a list written at about 65 kB/s."""


class RequeueDelay:
    """Remembers until when each network rests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rested_at: dict[str, float] = {}

    def begin_look(self, network: str, entries: int) -> None:
        """The network, whose lists have so many entries, is looked at now: what the look itself causes is heard during it."""
        if entries:
            self._rested_at[network] = self._clock.monotonic() + entries / ENTRIES_A_SECOND
        else:
            self._rested_at.pop(network, None)

    def seconds_until_look(self, network: str) -> float:
        """In how many seconds to look, when something has happened now."""
        rest = self._rested_at.get(network, 0.0) - self._clock.monotonic()
        return max(GATHER_SECONDS, rest)
