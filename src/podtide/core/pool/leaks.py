"""Sandboxes that seem to hold an address for nobody, and since when.

A DEL can be lost: the runtime died, the node was rebooted, somebody removed the sandbox by hand. What such a sandbox
held would be held for ever. It is suspected as long as one of these is so, and may be collected after a grace period:

    gone         no pod of the node is its own
    ended        its pod has succeeded or failed, and with that its sandbox has no more to do
    superseded   a newer sandbox of its pod has asked for an address, and a pod has one sandbox at a time

To suspect is not to know. That a pod is gone or has ended is what a cache says, so whoever collects asks the cluster
first. A sandbox that does not say whose it is is never suspected: nothing could prove it dead.
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
    """What speaks against a sandbox, if anything does."""
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
    """Who is suspected since when. Told of each pod and sandbox that changes, it looks at those of that pod alone."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._suspects: dict[tuple[str, str], tuple[Owner, float]] = {}
        """In the order of time: one that is cleared and suspected again stands last."""

    def reconsider(self, references: Iterable[str], now: float) -> None:
        """Something changed about the pod, or the sandboxes, that are referred to so."""
        for reference in references:
            for owner in self._demand.owners_of(reference):
                key = (owner.sandbox, owner.interface)
                if suspicion_of(owner, self._demand) is None:
                    self._suspects.pop(key, None)
                else:
                    self._suspects.setdefault(key, (owner, now))

    def forget(self, sandbox: str, interface: str) -> None:
        """It holds nothing any more."""
        self._suspects.pop((sandbox, interface), None)

    def put_off(self, owner: Owner, now: float) -> None:
        """The cluster says that its pod is alive: the grace begins anew."""
        self.forget(owner.sandbox, owner.interface)
        self._suspects[owner.sandbox, owner.interface] = (owner, now)

    def due(self, now: float, grace_seconds: float) -> tuple[Owner, ...]:
        """Those whose grace is over."""
        suspects = self._suspects.values()
        over = takewhile(lambda suspect: suspect[1] + grace_seconds <= now, suspects)
        return tuple(owner for owner, _since in over)

    @property
    def oldest_since(self) -> float | None:
        """Since when the oldest suspect is one; None when there is none."""
        return next(iter(self._suspects.values()))[1] if self._suspects else None
