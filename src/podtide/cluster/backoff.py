"""How long to wait before asking again: longer after each failure, and never in step with other clients.

When an API server goes down, thousands of clients lose their watches in the same instant. Each waits a time drawn at
random between a floor and a ceiling that doubles with every failure, up to a cap; so the server sees each of them a
few times a minute, and all of them spread out when it comes back. A server that names a time itself is obeyed.

A server that cannot be reached is a case of its own. A failed connection costs it nothing, and pods wait for it to be
back, so no client waits longer than `OUTAGE_CAP_SECONDS`: enough to spread thousands of clients, and little to a pod.
The longer waits are for what does not pass by itself: a right that is missing, a kind that is not installed.
"""

from random import Random

from msgspec import Struct

from podtide.cluster.port import Throttled, Unavailable
from podtide.runtime.clock import Clock

OUTAGE_CAP_SECONDS = 5.0
"""The longest wait for a server that cannot be reached, whatever the rule says otherwise."""

_MOST_DOUBLINGS = 64
"""More change nothing, and a power of two that grows for days would no longer be a float."""


class Backoff(Struct, frozen=True):
    """The rule: how long to wait after the n-th failure in a row."""

    floor_seconds: float = 1.0
    cap_seconds: float = 30.0
    first_ceiling_seconds: float = 0.0
    """The longest wait after the first failure; 0 is for twice the floor. Over so long the first comers are spread."""

    def delay_seconds(self, failures: int, randomness: Random, error: BaseException | None = None) -> float:
        """The wait after `failures` in a row (1 or more), the last of them being `error`."""
        cap = self.cap_seconds
        if isinstance(error, Unavailable):
            cap = min(cap, OUTAGE_CAP_SECONDS)
        first = self.first_ceiling_seconds or 2.0 * self.floor_seconds
        ceiling = min(cap, first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
        delay = randomness.uniform(min(self.floor_seconds, ceiling), ceiling)
        if isinstance(error, Throttled):
            # All clients that were throttled were told the same time.
            return max(delay, error.retry_after_seconds + randomness.uniform(0.0, self.floor_seconds))
        return delay


class FailureStreak:
    """Failures of one connection, counted until it has held for a while.

    A success alone proves nothing: a server that accepts every watch and drops it at once is failing. The streak
    ends when nothing failed for `calm_seconds` after a wait was over.
    """

    def __init__(
        self, backoff: Backoff, clock: Clock, randomness: Random, *, calm_seconds: float = 30.0
    ) -> None:
        self._backoff = backoff
        self._clock = clock
        self._randomness = randomness
        self._calm_seconds = calm_seconds
        self._calm_at = 0.0
        self._failures = 0

    @property
    def is_over(self) -> bool:
        """Whether the streak has ended: the next failure would be the first for a while."""
        return self._failures == 0 or self._clock.monotonic() >= self._calm_at

    def delay_seconds(self, error: BaseException | None = None) -> float:
        """Count a failure; returns how long to wait before the next attempt."""
        self._failures = 1 if self.is_over else self._failures + 1
        delay = self._backoff.delay_seconds(self._failures, self._randomness, error)
        self._calm_at = self._clock.monotonic() + delay + self._calm_seconds
        return delay
