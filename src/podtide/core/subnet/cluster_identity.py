"""Who a cluster is: whose a container is, and whether a controller may have a term (design R6).

A name is chosen by people, and two clusters can be given the same one; the uid of the namespace kube-system is each
cluster's own. So a name at the allocator belongs to the uid that used it first, and every container records the uid of
the cluster it is of. A cluster that was cloned from a backup has its original's uid, too: of those only one can have a
term at a time.
"""

from enum import Enum

from msgspec import Struct

TERM_SECONDS = 10.0
"""How long a term lasts that nobody renews: less than the leader's Lease, so that the next leader need not wait for it."""


class ContainerOwner(Enum):
    """Whose a container is, as far as its record tells."""

    THIS_CLUSTER = "this cluster"
    ANOTHER_CLUSTER = "another cluster"
    UNKNOWN = "unknown"
    """Recorded before clusters had uids: a Node of its uid, seen here, is the only proof that it is ours."""


def owner_of(recorded_uid: str, own_uid: str) -> ContainerOwner:
    """Whose a container is that records this uid. Absence of its Node here is a reason to retire it only if it is ours."""
    if not recorded_uid:
        return ContainerOwner.UNKNOWN
    return ContainerOwner.THIS_CLUSTER if recorded_uid == own_uid else ContainerOwner.ANOTHER_CLUSTER


def is_anothers(bound_uid: str, uid: str) -> bool:
    """Whether a name that is bound to one uid, "" for none, is refused to this one."""
    return bool(bound_uid) and bound_uid != uid


class HeldTerm(Struct, frozen=True):
    """A term as the allocator keeps it; a holder "" is none."""

    holder: str
    until: float

    def is_live(self, now: float) -> bool:
        """Whether it was renewed lately. One that ends further ahead than any can was written by another clock."""
        return bool(self.holder) and 0.0 < self.until - now <= TERM_SECONDS


def may_open_term(holder: str, others: "list[HeldTerm]", now: float) -> bool:
    """Whether `holder` may have a term, next to those kept for the same uid. Its own it may renew."""
    return not any(each.holder != holder and each.is_live(now) for each in others)
