"""Whether a person may free an address of a node's pool by hand, before the agent does so by itself.

The agent frees what a DEL names, what the runtime's garbage collection leaves out, and what leaked sandboxes hold
(`leaks`). What remains is a sandbox that names no pod, whose DEL was lost: nothing could prove it dead, but a person may
know. As for secondary networks (`core.networks.manual_release`), freeing an address needs force while anything says that
a pod may have it. A pod that was deleted by force runs on until its kubelet has stopped it, which takes as long as the
pod's own grace period: so for the time that the agent waits before it collects leaks, that a pod is gone proves nothing.
"""

from collections.abc import Iterator
from enum import StrEnum

from podtide.core.pool.address import Owner
from podtide.core.pool.demand import PodOnNode, reference_of


class FreeingObjection(StrEnum):
    """Why an address of a node's pool should not be freed."""

    UNREADABLE = "the API server cannot be asked whether its pod lives"
    SHOWN = "a living pod shows it"
    ALIVE = "the pod of the sandbox that has it lives"
    UNPROVEN = "the sandbox that has it names no pod, so nothing proves that it is gone"
    RECENT = "its pod is gone for less than the agent's leak_grace, and may still be stopping"


def objections_to_freeing(
    owner: Owner,
    pods: tuple[PodOnNode, ...] | None,
    *,
    is_shown: bool,
    suspected_seconds: float,
    grace_seconds: float,
) -> tuple[FreeingObjection, ...]:
    """All that speaks against freeing what the sandbox has; nothing if it may be freed.

    `pods` are those of the node, read after the address was found to be the sandbox's; None if they could not be read.
    `is_shown` says that one of them shows the address, and `suspected_seconds` for how long the agent has taken the
    sandbox for leaked.
    """
    return tuple(_objections(owner, pods, is_shown=is_shown, is_recent=suspected_seconds < grace_seconds))


def _objections(
    owner: Owner, pods: tuple[PodOnNode, ...] | None, *, is_shown: bool, is_recent: bool
) -> Iterator[FreeingObjection]:
    if pods is None:
        yield FreeingObjection.UNREADABLE
        return
    if is_shown:
        yield FreeingObjection.SHOWN
    reference = reference_of(owner)
    own = next((pod for pod in pods if reference in pod.references), None)
    if not reference:
        yield FreeingObjection.UNPROVEN
    elif own is not None and not own.ended:
        yield FreeingObjection.ALIVE
    elif own is None and is_recent:
        yield FreeingObjection.RECENT
