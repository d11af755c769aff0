"""The brake on retiring many nodes at once whose deletion was not watched (design R6).

A controller that starts, or lists anew, finds containers whose Nodes it does not see. Mostly they were deleted while no
controller was running. But a wrong kubeconfig, or an API server that was restored from an old backup, looks the same,
and to retire nodes that live gives their addresses to others. So more than a tenth of the nodes, if that is more than
three, are retired only if they are still missing when looked at again ten minutes later. Nodes whose deletion was
watched are not judged here.
"""

from msgspec import Struct

ALWAYS_ALLOWED = 3
ONE_IN = 10
LOOK_AGAIN_SECONDS = 600.0


class HeldRetirement(Struct, frozen=True):
    """Nodes whose retirement waits for a second look, and the time of that."""

    missing: frozenset[str]
    until: float


class RetirementJudgement(Struct, frozen=True):
    """Which nodes may be retired now, and which wait."""

    retire: frozenset[str]
    held: HeldRetirement | None = None


def is_allowed_at_once(missing: int, nodes: int) -> bool:
    """Whether so many of so many nodes may be retired without a second look."""
    return missing <= ALWAYS_ALLOWED or missing * ONE_IN <= nodes


def judge_retirement(
    missing: frozenset[str], nodes: int, now: float, held: HeldRetirement | None
) -> RetirementJudgement:
    """Judge the nodes that are missing now. `nodes` is how many the cluster has, those included."""
    if held is not None and held.missing & missing and now < held.until:
        return RetirementJudgement(frozenset(), HeldRetirement(held.missing & missing, held.until))
    confirmed = held.missing & missing if held is not None else frozenset[str]()
    rest = missing - confirmed
    if is_allowed_at_once(len(rest), nodes):
        return RetirementJudgement(confirmed | rest)
    return RetirementJudgement(confirmed, HeldRetirement(rest, now + LOOK_AGAIN_SECONDS))
