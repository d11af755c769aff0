"""A queue of keys to look at, in which a key stands once however often it was added.

Reconciling is level-triggered: what matters is that a key is looked at after its last change, not how many changes
there were. So adding a key that waits already does nothing. A key that is being worked on is never handed to a second
worker: added meanwhile, it is handed out once more when the first is done. That is why work on one network or node
needs no lock.

An idle queue does nothing: no timer runs unless a key asked for one.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """A queue of keys, first come first served, each at most once. To be used on one event loop."""

    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._due: set[K] = set()
        """What must be looked at: the ready ones, and those to be handed out again after their present worker."""
        self._taken: set[K] = set()
        self._alarms: dict[K, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()

    def add(self, key: K) -> None:
        """Queue the key."""
        if key in self._due:
            return
        self._due.add(key)
        if key not in self._taken:
            self._make_ready(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Queue the key in `seconds` from now. Of several times for one key, the earliest counts."""
        loop = asyncio.get_running_loop()
        due_at = loop.time() + seconds
        alarm = self._alarms.get(key)
        if alarm is not None:
            if alarm.when() <= due_at:
                return
            alarm.cancel()
        self._alarms[key] = loop.call_at(due_at, self._ring, key)

    async def take(self) -> K:
        """The next key, when there is one. `done` must follow."""
        while not self._ready:
            self._changed.clear()
            await self._changed.wait()
        key = self._ready.popleft()
        self._due.discard(key)
        self._taken.add(key)
        return key

    def done(self, key: K) -> None:
        """Mark the work on a taken key as finished, whether it succeeded or not."""
        self._taken.discard(key)
        if key in self._due:
            self._make_ready(key)

    def _ring(self, key: K) -> None:
        del self._alarms[key]
        self.add(key)

    def _make_ready(self, key: K) -> None:
        self._ready.append(key)
        self._changed.set()
