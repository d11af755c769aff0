"""When the addresses of a removed Node may go to others, and to which node (design R5).

Time alone does not end a quarantine: a machine may run on without its Node, with pods that have these addresses. The
controller looks which Node has the name now, and at a fresh list of the pods bound to it, and then decides:

    the same machine, same boot    its pods may live: the addresses move to its new container, and to no other
    the same machine, booted since nothing of before lives: they are free at once, if it is certain which boot was the
                                   Node's last (a Node can be booted, and removed, while no controller runs)
    another machine, or none       they are free once the quarantine has passed, unless they are held for a person
    shown by a living pod          never: it is looked at again later

Times are those left by the allocator's clock. A clock that was ahead when a quarantine began, and is right again, would
make it last until then: so one that began in the future begins now.
"""

from collections.abc import Collection, Iterable
from enum import Enum, auto

from msgspec import Struct

from podtide.core.machine_identity import Kinship


class QuarantineAction(Enum):
    """What to do with the addresses that a removed Node left."""

    MOVE = auto()
    """To the container of the Node that bears the name now."""
    END = auto()
    """Let it be free, but for what living pods show."""
    WAIT = auto()
    """The quarantine lasts."""
    HOLD = auto()
    """Until the machine returns or is booted, or a person says so."""


class QuarantineEnd(Struct, frozen=True):
    """Which addresses become free, and which are still shown by living pods."""

    free: tuple[str, ...]
    shown: tuple[str, ...]


def is_from_the_future(began: float, now: float) -> bool:
    """Whether a quarantine began by a clock that was ahead: then it begins now, with its full duration."""
    return began > now


def course_of(kin: Kinship, seconds_left: float, *, hold: bool, witnessed: bool) -> QuarantineAction:
    """The action, given how the machine that has the node's name now relates to the removed one's.

    `hold` keeps what a machine may have that has not come back. `witnessed` says that the removed Node was watched to
    its end, so that the boot it is known by was its last.
    """
    if kin is Kinship.SAME_BOOT:
        return QuarantineAction.MOVE
    if kin is Kinship.UNPROVEN and hold:
        return QuarantineAction.HOLD
    if seconds_left <= 0 or (kin is Kinship.BOOTED_SINCE and witnessed):
        return QuarantineAction.END
    return QuarantineAction.WAIT


def ending_of(addresses: Iterable[str], shown_by_living_pods: Collection[str]) -> QuarantineEnd:
    """Which of the addresses may be released now."""
    listed = tuple(addresses)
    return QuarantineEnd(
        tuple(address for address in listed if address not in shown_by_living_pods),
        tuple(address for address in listed if address in shown_by_living_pods),
    )
