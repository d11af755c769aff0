"""Whether a person may free an address of a secondary network by hand, without waiting for the repair of leaks.

Repair waits, because it concludes from absence alone. A person may know more, such as that a machine was switched off.
But what the API server shows is not to be overruled by a slip: while anything says that a pod may have the address, freeing
it needs force. The facts have to be read after the entry that is judged, or a pod that came between is overlooked
(design T23).
"""

from collections.abc import Iterator
from enum import StrEnum

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import Orphaned, PodSeen, why_orphaned
from podtide.core.ranges import IPAddress


class ReleaseObjection(StrEnum):
    """Why an address should not be freed."""

    SHOWN = "a living pod shows it"
    ALIVE = "the pod that holds it lives"
    UNPROVEN = "it is held for no pod by name, so nothing proves that it is unused"
    STRANDED = "its pod's node is deleted, and the machine may run on with the pod"
    QUARANTINED = "the node of its slice is deleted, and the machine may run on with the pod"


def objections_to_release(
    holder: Allocation,
    pod: PodSeen | None,
    address: IPAddress | None,
    *,
    is_shown: bool,
    is_in_quarantine: bool,
) -> tuple[ReleaseObjection, ...]:
    """All that speaks against freeing it; nothing if it may be freed.

    `pod` is the pod of the holder's name; `is_shown` says that any living pod shows the address, and `is_in_quarantine`
    that the slice is that of a deleted Node.
    """
    reason = why_orphaned(holder, pod, address)
    return tuple(_objections(reason, pod, is_shown=is_shown, is_in_quarantine=is_in_quarantine))


def _objections(
    reason: Orphaned | None, pod: PodSeen | None, *, is_shown: bool, is_in_quarantine: bool
) -> Iterator[ReleaseObjection]:
    if is_shown:
        yield ReleaseObjection.SHOWN
    if reason is None:
        yield ReleaseObjection.UNPROVEN if pod is None else ReleaseObjection.ALIVE
    if reason is Orphaned.STRANDED:
        yield ReleaseObjection.STRANDED
    if is_in_quarantine:
        yield ReleaseObjection.QUARANTINED
