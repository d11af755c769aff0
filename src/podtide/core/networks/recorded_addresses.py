"""What a node gave to its sandboxes, compared with what a pool says of it: which of the two counts, where they differ.

A pool is the truth that all nodes share, and repair removes what is held for pods that are gone. But a pool can go
back, with the whole cluster, when etcd is restored from a backup: then it lacks what was given since, and has again what
was given up. So a node remembers what its sandboxes have (design R7, "A store that went back"), and:

    the pool has it for the sandbox, or its pod    nothing to do
    the cluster went back since it was given       it is put back, also where the pool has it for another,
                                                   unless the sandbox's DEL has come: then the other keeps it
    the pool has it for another                    contested: both may live, and a person has to decide
    the pool has it free, and the pod lives        it is put back: an address in use was removed from the pool
    the pool has it free, and the pod is gone      withheld for as long as its sandbox may take to end, then forgotten

An entry of one of this node's pods that the node does not remember was given up after the backup: it is a ghost.
"""

from enum import StrEnum

from podtide.core.networks.allocations import Allocation


class Standing(StrEnum):
    """What is to be done about an address that a sandbox was given."""

    HELD = "held"
    PUT_BACK = "put back"
    CONTESTED = "contested"
    WITHHELD = "withheld"
    FORGOTTEN = "forgotten"
    LEFT = "left"
    """It stays with the pod that the pool has it for."""


def standing_of(  # noqa: PLR0913 - all that it depends on
    given: Allocation,
    there: Allocation | None,
    *,
    went_back: bool,
    is_alive: bool,
    is_leaving: bool = False,
    missing_seconds: float,
    patience_seconds: float,
) -> Standing:
    """What to do about an address, given who has it by the pool.

    `went_back` is whether the cluster did since the pool last had it for the sandbox, `is_alive` whether its pod is there,
    `is_leaving` whether the sandbox's DEL has come and is not carried out yet.
    """
    if there is not None:
        if there.ifname == given.ifname and given.id in there.sandboxes:
            return Standing.HELD
        if is_leaving:
            return Standing.LEFT
        return Standing.PUT_BACK if went_back or is_of_one_pod(given, there) else Standing.CONTESTED
    if went_back or is_alive:
        return Standing.PUT_BACK
    return Standing.WITHHELD if missing_seconds < patience_seconds else Standing.FORGOTTEN


def is_of_one_pod(one: Allocation, other: Allocation) -> bool:
    """Whether both are that interface of one pod. Where a uid is not known, the name decides."""
    uids = {one.pod_uid, other.pod_uid} - {""}
    return (one.podref, one.ifname) == (other.podref, other.ifname) and len(uids) <= 1
