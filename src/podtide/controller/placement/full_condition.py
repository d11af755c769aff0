"""The condition of a ClusterSubnet that no address can be had, for people and programs that scale clusters out.

A new node in such a subnet brings no address, and pods that wait for one do not fit there either. Every agent watches the object,
and in a full subnet each pod that ends makes it not full for a moment: so the condition changes once the other state has lasted.
"""

from msgspec import Struct, structs

from podtide.resources.conditions import Condition, ConditionStatus

FULL = "Full"
"""The condition."""
LASTING_SECONDS = 30.0
"""For so long a subnet must be full, or not, before the condition says so."""


class Fullness(Struct, frozen=True):
    """Whether a subnet is full, since when, and what the condition says; None before it says anything."""

    is_full: bool
    since: float
    told: bool | None = None

    def seen(self, *, is_full: bool, now: float) -> "Fullness":
        """The state after another look."""
        state = self if is_full == self.is_full else structs.replace(self, is_full=is_full, since=now)
        if now - state.since >= LASTING_SECONDS:
            return structs.replace(state, told=is_full)
        return state


def first_look(*, is_full: bool, now: float, shown: Condition | None) -> Fullness:
    """The state after the first look of a term: what the condition says stays until the other has lasted.

    A subnet without the condition that is not full is told to be so at once.
    """
    told = None if is_full else False
    if shown is not None:
        told = shown.status == ConditionStatus.TRUE
    return Fullness(is_full, now, told)


def full_condition(fullness: Fullness, generation: int, now: str) -> Condition | None:
    """The condition. It quotes no numbers: they would cause a write to every agent with each pod."""
    if fullness.told is None:
        return None
    if fullness.told:
        reason, message = (
            "NoAddresses",
            (
                "no address can be had, even if nodes keep none in reserve: more nodes or pods do not fit until pods end or "
                "the subnet grows (`podtide subnet grow`)"
            ),
        )
    else:
        reason, message = "AddressesAvailable", "addresses can be had for more pods"
    return Condition(
        type=FULL,
        status=ConditionStatus.TRUE if fullness.told else ConditionStatus.FALSE,
        last_transition_time=now,
        reason=reason,
        message=message,
        observed_generation=generation,
    )
