"""Sandboxes that seem to have leaked: their pod is gone but they hold an address. And since when.

A DEL can be lost: the runtime died, the node was rebooted, somebody removed the sandbox by hand. What such a sandbox
held would be held for ever. It is suspected as long as one of these is so, and may be collected after a grace period:

    gone         no pod of the node is its own
    ended        its pod has succeeded or failed, and with that its sandbox has no more to do
    superseded   a newer sandbox of its pod has asked for an address, and a pod has one sandbox at a time

That a pod is gone or has ended is known from a cache, which may be stale: so before a sandbox is collected, the caller
reads its pod from the API server. A sandbox that does not name its pod is never suspected: nothing could prove it dead.
"""

from collections.abc import Iterable
from enum import StrEnum
from itertools import takewhile

from podtide.core.pool.address import Owner
from podtide.core.pool.demand import Demand, reference_of


class Suspicion(StrEnum):
    """Why a sandbox seems to be dead."""

    GONE = "its pod is gone"
    ENDED = "its pod has ended"
    SUPERSEDED = "its pod has a newer sandbox"


def suspicion_of(owner: Owner, demand: Demand) -> Suspicion | None:
    """Why a sandbox may be leaked; None when it is not suspected."""
    reference = reference_of(owner)
    if not reference:
        return None
    if demand.newest_sandbox(reference) != owner.sandbox:
        return Suspicion.SUPERSEDED
    pod = demand.pod(reference)
    if pod is None:
        return Suspicion.GONE
    return Suspicion.ENDED if pod.ended else None


class SuspectedSandboxes:
    """The sandboxes that may be leaked, and since when. A change is checked against the sandboxes of its own pod only."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._suspects: dict[tuple[str, str], tuple[Owner, float]] = {}
        """In the order of time: one that is cleared and suspected again stands last."""

    def reconsider(self, references: Iterable[str], now: float) -> None:
        """Check the sandboxes of these pods again, because a pod or a sandbox changed."""
        for reference in references:
            for owner in self._demand.owners_of(reference):
                key = (owner.sandbox, owner.interface)
                if suspicion_of(owner, self._demand) is None:
                    self._suspects.pop(key, None)
                else:
                    self._suspects.setdefault(key, (owner, now))

    def forget(self, sandbox: str, interface: str) -> None:
        """Clear a sandbox that holds no address any more."""
        self._suspects.pop((sandbox, interface), None)

    def put_off(self, owner: Owner, now: float) -> None:
        """Restart the grace period of a sandbox whose pod was confirmed to be alive."""
        self.forget(owner.sandbox, owner.interface)
        self._suspects[owner.sandbox, owner.interface] = (owner, now)

    def since(self, owner: Owner) -> float | None:
        """The time since which the sandbox has been a suspect; None if it is not one."""
        suspect = self._suspects.get((owner.sandbox, owner.interface))
        return None if suspect is None else suspect[1]

    def due(self, now: float, grace_seconds: float) -> tuple[Owner, ...]:
        """The owners whose grace period is over."""
        suspects = self._suspects.values()
        over = takewhile(lambda suspect: suspect[1] + grace_seconds <= now, suspects)
        return tuple(owner for owner, _since in over)

    @property
    def oldest_since(self) -> float | None:
        """The time since which the oldest suspect has been one; None when there is none."""
        return next(iter(self._suspects.values()))[1] if self._suspects else None
