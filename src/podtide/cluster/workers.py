"""Workers that reconcile the keys of a queue, and decide by the kind of error when to look at a key again.

    Conflict       another writer was first: retried soon, with the state as it is then
    RetryError     transient: retried with back-off, per key
    FixError       an object must be changed, and that change adds the key: retried seldom, and warned of once
    StopError      an invariant is broken: every worker stops, and the error goes to the caller
    anything else  a bug: logged with its traceback, then as if transient

Back-off per key is not enough when the API server is down: five thousand keys that each wait a minute are still
eighty requests a second. So a worker that finds the server unavailable makes every key that has failed wait, and the
server is tried by a worker or two at a time. Keys that did not fail go on: they come from events, and there are few
of them when there is no server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NoReturn

from msgspec import Struct

from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.port import Conflict, Throttled, Unavailable
from podtide.cluster.work_queue import K, WorkQueue
from podtide.core.errors import FixError, PodtideError, StopError
from podtide.runtime.runtime import Runtime

Reconcile = Callable[[K], Awaitable[float | None]]
"""Look at a key and make one move towards the wish. Answers in how many seconds to look again, if at all."""

_SOON = Backoff(floor_seconds=0.02, cap_seconds=5.0)
_PATIENT = Backoff(floor_seconds=0.5, cap_seconds=60.0)
_SELDOM = Backoff(floor_seconds=60.0, cap_seconds=600.0)


class _Failing(Struct, frozen=True):
    """A key's failures in a row, and the last error."""

    count: int
    last: str


class Workers(Generic[K]):
    """Runs a reconciler on the keys of one queue."""

    def __init__(self, queue: WorkQueue[K], *, runtime: Runtime) -> None:
        self.retries = 0
        """How often a failed key was put back, for a chart."""
        self._queue = queue
        self._clock = runtime.clock
        self._randomness = runtime.randomness
        self._log = runtime.log
        self._failing: dict[K, _Failing] = {}
        self._outage = FailureStreak(Backoff(), runtime.clock, runtime.randomness)
        self._outage_until = 0.0

    async def run(self, reconcile: Reconcile[K], *, count: int = 1) -> None:
        """Work until cancelled; then what is being worked on is cancelled, and waited for."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(count):
                    group.create_task(self._work(reconcile))
        except BaseExceptionGroup as errors:
            # A group of one or two equal reasons to stop would only hide them.
            raise errors.exceptions[0] from None

    async def _work(self, reconcile: Reconcile[K]) -> NoReturn:
        while True:
            key = await self._queue.take()
            try:
                await self._attempt(key, reconcile)
            finally:
                self._queue.done(key)

    async def _attempt(self, key: K, reconcile: Reconcile[K]) -> None:
        pause = self._outage_until - self._clock.monotonic()
        if pause > 0 and key in self._failing:
            self._queue.add_after(key, pause)
            return
        try:
            again_in_seconds = await reconcile(key)
        except StopError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This worker was not cancelled, but something the key awaited was. The worker has to go on.
            self._put_back(key, error)
        except Exception as error:  # noqa: BLE001 - whatever a key does, the other keys must go on
            self._put_back(key, error)
        else:
            self._failing.pop(key, None)
            if again_in_seconds is not None:
                self._queue.add_after(key, again_in_seconds)

    def _put_back(self, key: K, error: BaseException) -> None:
        before = self._failing.get(key)
        failing = _Failing(count=before.count + 1 if before else 1, last=f"{type(error).__name__}: {error}")
        self._failing[key] = failing
        if isinstance(error, Unavailable | Throttled) and self._clock.monotonic() >= self._outage_until:
            self._outage_until = self._clock.monotonic() + self._outage.delay_seconds(error)
        delay = _backoff_for(error).delay_seconds(failing.count, self._randomness, error)
        self._report(key, error, delay, is_news=before is None or before.last != failing.last)
        self.retries += 1
        self._queue.add_after(key, delay)

    def _report(self, key: K, error: BaseException, delay: float, *, is_news: bool) -> None:
        about = {"key": str(key), "retry_in_seconds": round(delay, 3)}
        if not isinstance(error, PodtideError):
            self._log.error("reconciler raised an unexpected error", **about, exc_info=error)
        elif isinstance(error, Conflict) or not is_news:
            self._log.debug("reconciling failed", **about, error=str(error))
        else:
            self._log.warning("reconciling failed", **about, error=str(error))


def _backoff_for(error: BaseException) -> Backoff:
    if isinstance(error, Conflict):
        return _SOON
    return _SELDOM if isinstance(error, FixError) else _PATIENT
