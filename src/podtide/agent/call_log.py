"""What is said of every call to the agent's API: one line in the log, and one count.

A line has all that a person needs who asks what became of a pod's address; what kind of error it was is the outcome,
which is also what is counted.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from podtide.cni.versions import Verb
from podtide.core.errors import FixError, RetryError
from podtide.core.pool import Owner
from podtide.runtime.clock import Clock
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

    @contextmanager
    def call(self, arrived: float) -> Iterator[CallEntry]:
        """Write down what this call turns out to be, when it is over."""
        entry = CallEntry()
        outcome = OK
        try:
            yield entry
            outcome = type(entry.error).__name__ if entry.error else OK
        except asyncio.CancelledError:
            outcome = ABANDONED
            raise
        finally:
            if entry.is_over:
                seconds = max(0.0, self._clock.monotonic() - arrived)
                self._count(entry.verb, outcome, seconds)
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
            case error:
                self._log.error("call", error=str(error), exc_info=error, **said)
