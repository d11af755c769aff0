"""Leaked addresses of secondary networks, whose pods are gone, and when they may be freed.

A DEL can be lost: the runtime died, the machine is gone, Whereabouts swallowed an error. What such a pod held would be
held for ever. A holder names its pod by uid, or where that is not known (Whereabouts does not write it) by name alone:

    gone       there is no pod of its name
    replaced   there is one, but another: a StatefulSet's pod comes back under its name with a new uid
    ended      its pod has succeeded or failed, and needs no address any more
    stranded   its pod is bound to a node that is not there
    not shown  it has no uid, and the pod of its name runs and shows other addresses: it is an earlier one's

A pod that is Pending is alive: it holds addresses before it runs. A holder that names no pod is never suspected, since
nothing could prove it dead. A cache may be stale, so suspicion is not enough: a holder has to be suspected by two checks
some time apart (`LeakGrace`), and before its address is freed, the caller reads the pod from the API server once more.
"""

from collections.abc import Hashable, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from podtide.core.networks.allocations import Allocation
from podtide.core.ranges import IPAddress

S = TypeVar("S", bound=Hashable)


class Orphaned(StrEnum):
    """Why an allocation seems to be held for no living pod."""

    GONE = "its pod is gone"
    REPLACED = "another pod has its name"
    ENDED = "its pod has ended"
    STRANDED = "its pod's node is gone"
    NOT_SHOWN = "the pod of its name shows other addresses"


class PodSeen(Struct, frozen=True):
    """The facts about a pod that decide whether it still has its addresses."""

    uids: frozenset[str]
    """Those that its sandboxes know it by."""
    ended: bool = False
    stranded: bool = False
    """Whether its node is gone."""
    shown: frozenset[IPAddress] = frozenset()
    """The addresses that its own network status has. Empty when that tells of none, or while it does not run: the status
    may be that of an earlier sandbox then."""


def why_orphaned(
    holder: Allocation, pod: PodSeen | None, address: IPAddress | None = None
) -> Orphaned | None:
    """Why a holder seems to be leaked, given the pod of its name; None when it does not.

    The address decides too, where it is known.
    """
    namespace, slash, name = holder.podref.partition("/")
    if not (namespace and slash and name):
        return None
    if pod is None:
        return Orphaned.GONE
    if holder.pod_uid and holder.pod_uid not in pod.uids:
        return Orphaned.REPLACED
    if pod.stranded:
        return Orphaned.STRANDED
    if pod.ended:
        return Orphaned.ENDED
    is_another = address is not None and pod.shown and address not in pod.shown
    return Orphaned.NOT_SHOWN if is_another and not holder.pod_uid else None


class LeakGrace(Struct, frozen=True, kw_only=True):
    """How long an allocation must be suspected without a break before it is taken back."""

    leak_grace_seconds: float
    quarantine_seconds: float

    def seconds(self, reason: Orphaned | None) -> float:
        """The grace period for this reason; None stands for a reason that has nothing to do with the pod.

        A pod that has ended did so on a node that exists. Of any other pod it is unknown which node it was on,
        because a cluster removes a Node's pods soon after the Node: perhaps on one that was deleted while its machine
        lives. An agent there may go on until its `contact_timeout`, and people have until the quarantine ends to
        fence it (design R5, "A node deleted while its machine lives").
        """
        if reason in {None, Orphaned.ENDED}:
            return self.leak_grace_seconds
        return max(self.leak_grace_seconds, self.quarantine_seconds)


class Spare(StrEnum):
    """Why a reservation without an allocation is not in use, although its pod lives."""

    NEVER_HELD = "no pool has the address for it"
    NOT_SHOWN = "its pod shows other addresses"


class Reserved(Struct, frozen=True, kw_only=True):
    """A reservation, compared with what the pools say of its address."""

    holder: Allocation
    """Who it is for."""
    backed: bool
    """Whether a pool has the address for a pod of that name, dead or alive: then it is removed last."""
    rightful: Allocation | None = None
    """The living pod that a guarded pool has the address for."""

    @property
    def is_outdated(self) -> bool:
        """Whether it names another pod than the one that has the address. Where a uid is not known, the name decides."""
        if self.rightful is None:
            return False
        one, other = self.holder, self.rightful
        uids = {one.pod_uid, other.pod_uid} - {""}
        return one.podref != other.podref or len(uids) > 1


class ReservationAction(StrEnum):
    """What to do with a reservation."""

    KEEP = "keep"
    CORRECT = "correct"
    """Let it say who has the address."""
    RELEASE = "release"


class ReservationVerdict(Struct, frozen=True):
    """What to do with a reservation, and why."""

    fate: ReservationAction
    reason: Orphaned | Spare | None = None


def is_doubtful(reserved: Reserved, pod: PodSeen | None) -> bool:
    """Whether a reservation must be checked again after the grace period, given the pod of its holder's name."""
    return not reserved.backed or reserved.is_outdated or why_orphaned(reserved.holder, pod) is not None


def judge_reservation(
    reserved: Reserved, pod: PodSeen | None, *, shows_it: bool | None
) -> ReservationVerdict:
    """What to do with a reservation that stayed doubtful, given a fresh read of its holder's pod.

    `shows_it` is whether the pod's own network status has the address, None when it tells nothing.
    """
    reason = why_orphaned(reserved.holder, pod) or (
        None if reserved.backed else _why_spare(reserved.holder, shows_it=shows_it)
    )
    if reason is None:
        return ReservationVerdict(ReservationAction.KEEP)
    if reserved.is_outdated or (reserved.rightful is not None and reason is Orphaned.REPLACED):
        return ReservationVerdict(ReservationAction.CORRECT, reason)
    return ReservationVerdict(
        ReservationAction.KEEP if reserved.backed else ReservationAction.RELEASE, reason
    )


def _why_spare(holder: Allocation, *, shows_it: bool | None) -> Spare | None:
    """Why a reservation that has no allocation, and whose pod lives, is not in use; None when it may be.

    Podtide writes the pod's uid, and answers an ADD only after the pool's write: its reservation is what is left of
    an ADD or a DEL that broke off. Whereabouts answers even when its write of the pool failed (design T15), so the
    pod may have the address, and its own network status has to tell.
    """
    if holder.pod_uid:
        return Spare.NEVER_HELD
    return Spare.NOT_SHOWN if shows_it is False else None


class SuspectTimes(Generic[S]):
    """The suspects, and since when each has been suspected without a break."""

    def __init__(self) -> None:
        self._since: dict[S, float] = {}
        self._seconds: dict[S, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def due(self, suspects: Mapping[S, float], now: float) -> list[S]:
        """The suspects whose grace period, given in seconds for each, is over. Any not in `suspects` is cleared."""
        self._since = {suspect: self._since.get(suspect, now) for suspect in suspects}
        self._seconds = dict(suspects)
        return [suspect for suspect, since in self._since.items() if now - since >= suspects[suspect]]

    def next_due_seconds(self, now: float) -> float | None:
        """The seconds until the next suspect is due; None when there is none."""
        ahead = (since + self._seconds[suspect] - now for suspect, since in self._since.items())
        return min((seconds for seconds in ahead if seconds > 0), default=None)
