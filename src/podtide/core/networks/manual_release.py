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
    QUARANTINED = "the node that it was given by is deleted, and the machine may run on with the pod"
    UNPLACED = (
        "its pod is gone, but nothing tells from which node: if that is deleted, its machine may run on with the pod; "
        "the controller's repair frees the address when the quarantine of such a node would be over"
    )


class NodeOfAddress(StrEnum):
    """The node by which an address was given."""

    THERE = "there"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    """As of a pool that all nodes share, where no reservation names the node."""


_ABSENT = (Orphaned.GONE, Orphaned.REPLACED, Orphaned.NOT_SHOWN)
"""The holder's own pod is not there, so neither is what it says of its node."""


def objections_to_release(
    holder: Allocation,
    pod: PodSeen | None,
    address: IPAddress | None,
    *,
    is_shown: bool,
    node: NodeOfAddress,
) -> tuple[ReleaseObjection, ...]:
    """All that speaks against freeing it; nothing if it may be freed.

    `pod` is the pod of the holder's name; `is_shown` says that any living pod shows the address. Where the node is not
    known, nothing holds a deleted Node's addresses back but the time for which repair waits (`leaks.LeakGrace`), and a
    person concludes from the same absence as repair does.
    """
    reason = why_orphaned(holder, pod, address)
    return tuple(_objections(reason, pod, is_shown=is_shown, node=node))


def _objections(
    reason: Orphaned | None, pod: PodSeen | None, *, is_shown: bool, node: NodeOfAddress
) -> Iterator[ReleaseObjection]:
    if is_shown:
        yield ReleaseObjection.SHOWN
    if reason is None:
        yield ReleaseObjection.UNPROVEN if pod is None else ReleaseObjection.ALIVE
    if reason is Orphaned.STRANDED:
        yield ReleaseObjection.STRANDED
    if node is NodeOfAddress.DELETED:
        yield ReleaseObjection.QUARANTINED
    if node is NodeOfAddress.UNKNOWN and reason in _ABSENT:
        yield ReleaseObjection.UNPLACED
