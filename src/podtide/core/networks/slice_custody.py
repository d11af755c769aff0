"""What is to be done with a node's own pool of a slice, given whose it was and who is there now.

A pool carries the uid of the Node it was made for. When that Node is gone its machine may still run, with pods that
have addresses of the slice; so the pool rests for a quarantine, counted from when the Node was found to be gone
(design R5, "A node deleted while its machine lives"). After that:

    no Node has the name now        the pool is collected, once no pod holds an address in it
    another Node has the name       it takes the pool over; what pods still hold in it stays held

The second is safe. During the quarantine the new Node has no pool, and after it the old one's agent has stopped; but
pods may have outlived their Node's uid (a kubelet that registers again keeps them), and their addresses must neither be
handed out again nor keep the node without a pool for as long as they run.

A Node of the same name takes the pool over at once where there is nothing to wait for: it runs on the same machine,
whose one agent wrote the pool and goes on doing so; or no address of the pool is held, and a late write by the old
Node's agent fails with a conflict, because the pool has changed.

A pool that is inert (`podtide.networks.confirmation`) was never used: it waits for nothing, whichever Node it names.
"""

from enum import Enum, auto

from msgspec import Struct

from podtide.core.machine_identity import UNKNOWN_MACHINE, Kinship, MachineIdentity, kinship


class CustodyStep(Enum):
    """The next action on a node's pool."""

    KEEP = auto()
    ADOPT = auto()
    """It says of no Node: let it say so."""
    CONFIRM = auto()
    """Its Node is there, and it was not confirmed yet: it may be used from now on."""
    MARK = auto()
    """Its Node is gone (a fresh read has to confirm it): the quarantine begins."""
    REST = auto()
    """The quarantine lasts."""
    HOLD = auto()
    """The quarantine is over, and pods hold addresses in it."""
    HAND_OVER = auto()
    """To the Node that has the name now."""
    COLLECT = auto()


class Custody(Struct, frozen=True, kw_only=True):
    """The facts about a pool that decide what happens to it."""

    owner_uid: str
    """Of the Node it was made for; "" when it does not say."""
    gone_since: float | None
    """When that Node was found to be gone."""
    in_use: bool
    """Whether any pod holds an address in it."""
    is_confirmed: bool = True
    """Whether it may be used at all."""
    is_inert: bool = False
    """Whether it never could be: it is as it was made."""
    machine: MachineIdentity = UNKNOWN_MACHINE
    """What that Node ran on."""


def next_step(
    pool: Custody,
    node_uid: str,
    machine: MachineIdentity = UNKNOWN_MACHINE,
    *,
    now: float,
    quarantine_seconds: float,
) -> CustodyStep:
    """The next action, given the uid and machine of the Node that has the node's name now; "" for no such Node."""
    if pool.is_inert:
        return CustodyStep.CONFIRM if node_uid else CustodyStep.COLLECT
    if node_uid and pool.owner_uid == node_uid:
        return _step_of_its_node(pool)
    if node_uid and pool.gone_since is None and not pool.owner_uid:
        return CustodyStep.ADOPT
    if node_uid and (not pool.in_use or kinship(pool.machine, machine) is not Kinship.UNPROVEN):
        return CustodyStep.HAND_OVER
    return _step_in_quarantine(pool, node_uid, now, quarantine_seconds)


def _step_of_its_node(pool: Custody) -> CustodyStep:
    if pool.gone_since is not None:
        return CustodyStep.HAND_OVER  # it was thought to be gone, and is not
    return CustodyStep.KEEP if pool.is_confirmed else CustodyStep.CONFIRM


def _step_in_quarantine(pool: Custody, node_uid: str, now: float, quarantine_seconds: float) -> CustodyStep:
    if pool.gone_since is None or pool.gone_since > now:
        return CustodyStep.MARK  # the latter by a clock that was ahead: it must not last until then
    if now < pool.gone_since + quarantine_seconds:
        return CustodyStep.REST
    if node_uid:
        return CustodyStep.HAND_OVER
    return CustodyStep.HOLD if pool.in_use else CustodyStep.COLLECT


def is_live(pool: Custody, step: CustodyStep) -> bool:
    """Whether the pool's slice must be neither freed nor moved."""
    return pool.in_use or step in {CustodyStep.MARK, CustodyStep.REST}
