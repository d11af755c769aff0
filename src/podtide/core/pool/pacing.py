"""When a changed target is written: growth at once, shrinking after a while.

Changes of demand are gathered for a moment, so that a burst of pods is one write and not one per pod: as long as pods
keep coming more are to be expected, also while the batch hides it from the target. A smaller target must
stand for `shrink_delay` first: at a batch boundary one pod coming and going moves a whole batch. There is no delay
while others wait for what this node can spare: in a starved subnet, and in an exhausted one as far as
`agent.request.subnets` says. A target that falls further has to stand anew, so that a dip at the end of the delay does not give
a whole batch away.

The state is a value: `pace` takes the last one and returns the next, with what to do now and when to look again.
"""

from msgspec import Struct, structs


class Pace(Struct, frozen=True):
    """How long to wait before a changed target is written."""

    gather_seconds: float = 0.1
    gather_at_most_seconds: float = 0.5
    shrink_delay_seconds: float = 30.0


class WantedTarget(Struct, frozen=True):
    """The target, and the demand it follows from, beside what is requested."""

    target: int
    requested: int
    demand: int
    changed_at: float
    """Neither target nor demand has changed since."""
    is_urgent: bool = False
    """Whether others wait for what this node can spare."""


class Waiting(Struct, frozen=True):
    """A target that differs from what is requested, and since when."""

    target: int
    demand: int
    growing: bool
    since: float
    changed_at: float
    """When it last moved, or the demand behind it."""
    fell_at: float
    """When it last became lower than before."""


class PacingDecision(Struct, frozen=True):
    """Write the target now, or look again at `look_at`; neither when target and request agree."""

    write: bool
    look_at: float | None
    waiting: Waiting | None


_NOTHING_TO_DO = PacingDecision(write=False, look_at=None, waiting=None)


def pace(waiting: Waiting | None, wanted: WantedTarget, now: float, patience: Pace) -> PacingDecision:
    """Whether a target is due. Pass the decision's `waiting` back in next time; a write starts anew with None."""
    target, demand, changed_at = wanted.target, wanted.demand, wanted.changed_at
    if target == wanted.requested:
        return _NOTHING_TO_DO
    growing = target > wanted.requested
    if waiting is None or waiting.growing != growing:
        waiting = Waiting(
            target, demand, growing, since=changed_at, changed_at=changed_at, fell_at=changed_at
        )
    elif (waiting.target, waiting.demand) != (target, demand):
        fell_at = changed_at if target < waiting.target else waiting.fell_at
        waiting = structs.replace(
            waiting, target=target, demand=demand, changed_at=changed_at, fell_at=fell_at
        )
    due = min(
        waiting.changed_at + patience.gather_seconds,
        waiting.since + patience.gather_at_most_seconds,
    )
    if not growing and not wanted.is_urgent:
        due = max(due, waiting.fell_at + patience.shrink_delay_seconds)
    if now >= due:
        return PacingDecision(write=True, look_at=None, waiting=None)
    return PacingDecision(write=False, look_at=due, waiting=waiting)
