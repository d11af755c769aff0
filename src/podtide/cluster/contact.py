"""Since when there is no proof that the API server can be reached.

Only received data proves it, not an open watch: one whose peer is gone can look healthy for more than a minute. So when a
watch breaks, the silence counts from the last data it received, and a resumed watch proves nothing before it receives
some. But a server without changes sends nothing, and adapters do notice a dead watch in the end: a watch that has lasted
longer than that was alive until then.
"""

import math

from podtide.runtime.clock import Clock

_NOTICED_SECONDS = 120.0
"""Adapters end a dead watch within this (over HTTP: 30 s for it to begin, 75 s of silence)."""


class Contact:
    """Since when one connection to the server is known to be broken."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard_at = -math.inf
        self._watching_since = math.inf
        self._holds = False

    def heard(self) -> None:
        """Record that the server answered."""
        self._heard_at = self._clock.monotonic()
        self._holds = True

    def watching(self) -> None:
        """Record that a watch begins."""
        self._watching_since = self._clock.monotonic()

    def broken(self) -> None:
        """Record that the watch ended."""
        if self._has_lasted:
            self._heard_at = max(self._heard_at, self._clock.monotonic() - _NOTICED_SECONDS)
        self._watching_since = math.inf
        self._holds = False

    def silent_seconds(self) -> float:
        """Seconds since the last proven contact; 0 while there is contact, infinity when there never was."""
        if self._holds or self._has_lasted:
            return 0.0
        return self._clock.monotonic() - self._heard_at

    @property
    def is_watching(self) -> bool:
        """Whether a watch is open."""
        return self._watching_since < math.inf

    def watched_seconds(self) -> float:
        """How long the present watch has been open; 0 while there is none."""
        return max(0.0, self._clock.monotonic() - self._watching_since)

    @property
    def _has_lasted(self) -> bool:
        return self._clock.monotonic() - self._watching_since >= _NOTICED_SECONDS
