"""What is said of every call to the agent's API: one line in the log, and one count.

A line has all that a person needs who asks what became of a pod's address; what kind of error it was is the outcome,
which is also what is counted.
"""

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType

from msgspec import Struct

from podtide.cni.versions import Verb
from podtide.core.errors import FixError, RetryError
from podtide.core.pool.pool import Owner
from podtide.runtime.clock import Clock
from podtide.runtime.disk import DiskFailed
from podtide.runtime.logging import Logger

OK = "ok"
ABANDONED = "abandoned"
"""Nobody waits for the answer any more: the caller went away, or the agent stops."""

Count = Callable[[str, str, float], None]
"""Told of every call: the verb, the outcome (`ok`, `abandoned`, or the error's name) and how many seconds it took."""

_QUIET = (Verb.CHECK, Verb.STATUS, Verb.VERSION)
"""Runtimes ask these every few seconds and change nothing by it."""


class CallEntry(Struct):
    """One call, filled in as more becomes known of it."""

    verb: str = ""
    owner: Owner | None = None
    addresses: tuple[str, ...] = ()
    error: Exception | None = None
    is_over: bool = True
    """If not, somebody goes on with it, and it is written down then."""


def uncounted(_verb: str, _outcome: str, _seconds: float) -> None:
    """For those who count nothing."""


class CallLog:
    """Where calls are written down."""

    def __init__(self, api: str, *, clock: Clock, log: Logger, count: Count) -> None:
        self._clock = clock
        self._log = log.bind(api=api)
        self._count = count

    def call(self, arrived: float) -> "_Call":
        """A context in which a call is carried out: what it turned out to be is written down at its end."""
        return _Call(self, arrived)

    def write_down(self, entry: CallEntry, arrived: float, *, abandoned: bool) -> None:
        """The call is over."""
        error = entry.error
        outcome = ABANDONED if abandoned else type(error).__name__ if error else OK
        seconds = max(0.0, self._clock.monotonic() - arrived)
        self._count(entry.verb, outcome, seconds)
        if error is not None or self._log.is_enabled_for(logging.INFO):
            self._write(entry, outcome, seconds)

    def _write(self, entry: CallEntry, outcome: str, seconds: float) -> None:
        said: dict[str, object] = {
            "verb": entry.verb,
            "outcome": outcome,
            "milliseconds": round(seconds * 1000, 3),
        }
        if (owner := entry.owner) is not None:
            said |= {
                "pod": owner.name,
                "namespace": owner.namespace,
                "sandbox": owner.sandbox,
                "ifname": owner.interface,
            }
        if entry.addresses:
            said["addresses"] = entry.addresses
        match entry.error:
            case None if entry.verb in _QUIET:
                self._log.debug("call", **said)
            case None:
                self._log.info("call", **said)
            case RetryError() | FixError():
                self._log.warning("call", error=str(entry.error), **said)
            case DiskFailed():  # where in podtide that was noticed helps nobody
                self._log.error("call", error=str(entry.error), **said)
            case error:
                self._log.error("call", error=str(error), exc_info=error, **said)


class _Call:
    """One call that is being carried out."""

    __slots__ = ("_arrived", "_calls", "_entry")

    def __init__(self, calls: CallLog, arrived: float) -> None:
        self._calls = calls
        self._arrived = arrived
        self._entry = CallEntry()

    def __enter__(self) -> CallEntry:
        return self._entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entry.is_over:
            abandoned = isinstance(error, asyncio.CancelledError)
            self._calls.write_down(self._entry, self._arrived, abandoned=abandoned)
