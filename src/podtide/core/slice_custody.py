"""What is to be done with a node's own pool of a slice, given whose it was and who is there now.

A pool carries the uid of the Node it was made for. When that Node is gone its machine may still run, with pods that
have addresses of the slice; so the pool rests for a quarantine, counted from when the Node was found to be gone
(DESIGN.md, "A node deleted while its machine lives"). After that:

    nobody bears the node's name    the pool is collected, once no pod holds an address in it
    another Node bears it now       it takes the pool over; what pods still hold in it stays held

The second is no inheritance in disguise. During the quarantine the new Node has no pool, and after it the old one's
agent has stopped; but pods may have outlived their Node's uid (a kubelet that registers again keeps them), and their
addresses must neither be handed out again nor keep the node without a pool for as long as they run.

A pool that is inert (`podtide.networks.confirmation`) was never anybody's: it waits for nothing, whichever Node it names.
"""

from enum import Enum, auto

from msgspec import Struct


class Step(Enum):
    """What is to be done."""

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
    """To the Node that bears the name now."""
    COLLECT = auto()


class Custody(Struct, frozen=True, kw_only=True):
    """A pool, as far as its fate depends on it."""

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


def next_step(pool: Custody, node_uid: str, *, now: float, quarantine_seconds: float) -> Step:
    """What to do, `node_uid` being the uid of the Node that bears the node's name now, "" for none."""
    if pool.is_inert:
        return Step.CONFIRM if node_uid else Step.COLLECT
    is_its_node = bool(node_uid) and pool.owner_uid == node_uid
    if pool.gone_since is None:
        return _step_in_service(pool, node_uid, is_its_node=is_its_node)
    if is_its_node:
        return Step.HAND_OVER  # it was thought to be gone, and is not
    if now < pool.gone_since + quarantine_seconds:
        return Step.REST
    if node_uid:
        return Step.HAND_OVER
    return Step.HOLD if pool.in_use else Step.COLLECT


def _step_in_service(pool: Custody, node_uid: str, *, is_its_node: bool) -> Step:
    """What to do with a pool that is in no quarantine."""
    if is_its_node:
        return Step.KEEP if pool.is_confirmed else Step.CONFIRM
    return Step.ADOPT if node_uid and not pool.owner_uid else Step.MARK


def is_live(pool: Custody, step: Step) -> bool:
    """Whether its slice may be neither freed nor moved."""
    return pool.in_use or step in {Step.MARK, Step.REST}
