"""The record of every call to the agent's API: one line in the log, and one count.

The line has what a person needs who asks what became of a pod's address. The outcome is the kind of error; it is also
what is counted.
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
"""The call was not answered: its caller has disconnected, or the agent stops."""

Count = Callable[[str, str, float], None]
"""Called for every call: the verb, the outcome (`ok`, `abandoned`, or the error's name) and the seconds it took."""

_QUIET = (Verb.CHECK, Verb.STATUS, Verb.VERSION)
"""Runtimes call these every few seconds, and they change nothing."""


class CallEntry(Struct):
    """What is known of one call so far."""

    verb: str = ""
    owner: Owner | None = None
    addresses: tuple[str, ...] = ()
    error: Exception | None = None
    is_pending: bool = False
    """Whether it goes on after the present context, and is logged later."""


def uncounted(_verb: str, _outcome: str, _seconds: float) -> None:
    """A Count that counts nothing."""


class CallLog:
    """Writes calls to the log and counts them."""

    def __init__(self, api: str, *, clock: Clock, log: Logger, count: Count) -> None:
        self._clock = clock
        self._log = log.bind(api=api)
        self._count = count

    def call(self, arrived: float) -> "LoggedCall":
        """The context in which a call is carried out. It is logged when the context ends."""
        return LoggedCall(self, arrived)

    def write(self, entry: CallEntry, arrived: float, *, abandoned: bool) -> None:
        """Log and count a call that has ended."""
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
            case DiskFailed():  # a traceback would say nothing about the disk
                self._log.error("call", error=str(entry.error), **said)
            case error:
                self._log.error("call", error=str(error), exc_info=error, **said)


class LoggedCall:
    """One call as a context. It is entered again to finish a call that is pending."""

    __slots__ = ("_arrived", "_entry", "_log")

    def __init__(self, log: CallLog, arrived: float) -> None:
        self._log = log
        self._arrived = arrived
        self._entry = CallEntry()

    def __enter__(self) -> CallEntry:
        self._entry.is_pending = False
        return self._entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._entry.is_pending:
            abandoned = isinstance(error, asyncio.CancelledError)
            self._log.write(self._entry, self._arrived, abandoned=abandoned)

    def abandon(self) -> None:
        """Log the call as abandoned if it is still pending."""
        if self._entry.is_pending:
            self._entry.is_pending = False
            self._log.write(self._entry, self._arrived, abandoned=True)
