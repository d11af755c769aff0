"""What can become of an address in a node's pool: one table, and nothing that is not in it.

Rule 1: everything that changes an address's state goes through this table, by `Pool._move`. What is not in the table
cannot happen; asked for, it is a StopError, because the next step could give one address to two pods.

    state                 event → next state
    ───────────────────   ─────────────────────────────────────────────────────────────────────────────────────
    (absent)              GRANTED → PendingProgramming     RECOVERED → Quarantined
    PendingProgramming    PROGRAMMED → Available           NAMED → PendingRelease      WITHDRAWN → (absent), alarm
    Available             TAKEN → Assigned                 NAMED → PendingRelease      WITHDRAWN → (absent), alarm
    Assigned              FREED → Available                                            WITHDRAWN → Orphaned, alarm
    PendingRelease                                                                     WITHDRAWN → (absent)
    Quarantined           TAKEN → Assigned                 PROGRAMMED → Available      WITHDRAWN → (absent), alarm
    Orphaned              FREED → (absent)                 GRANTED → Assigned

- PendingRelease is final. It ends when the container comes without the address; until then nobody gets it, whatever
  demand does.
- An address leaves only after this node named it. One that is withdrawn unnamed is an alarm: if a pod has it, it
  stays with the pod (Orphaned) and is not handed on after; if it is free, it is withheld.
- Quarantined is an address found without a journal: a pod may have it. It is neither handed out nor released until
  it is proven taken or free.
- Orphaned counts as Assigned, and Quarantined as PendingProgramming, wherever only the four states of the wire are
  known.
"""

from collections.abc import Mapping
from enum import StrEnum

from podtide.core.errors import StopError


class State(StrEnum):
    """Where an address stands. The first four are the wire's own."""

    PENDING_PROGRAMMING = "PendingProgramming"
    AVAILABLE = "Available"
    ASSIGNED = "Assigned"
    PENDING_RELEASE = "PendingRelease"
    QUARANTINED = "Quarantined"
    ORPHANED = "Orphaned"


class Event(StrEnum):
    """What can befall an address."""

    GRANTED = "granted"
    RECOVERED = "recovered"
    PROGRAMMED = "programmed"
    TAKEN = "taken"
    FREED = "freed"
    NAMED = "named"
    WITHDRAWN = "withdrawn"


TRANSITIONS: Mapping[State | None, Mapping[Event, State | None]] = {
    None: {
        Event.GRANTED: State.PENDING_PROGRAMMING,
        Event.RECOVERED: State.QUARANTINED,
    },
    State.PENDING_PROGRAMMING: {
        Event.PROGRAMMED: State.AVAILABLE,
        Event.NAMED: State.PENDING_RELEASE,
        Event.WITHDRAWN: None,
    },
    State.AVAILABLE: {
        Event.TAKEN: State.ASSIGNED,
        Event.NAMED: State.PENDING_RELEASE,
        Event.WITHDRAWN: None,
    },
    State.ASSIGNED: {
        Event.FREED: State.AVAILABLE,
        Event.WITHDRAWN: State.ORPHANED,
    },
    State.PENDING_RELEASE: {
        Event.WITHDRAWN: None,
    },
    State.QUARANTINED: {
        Event.TAKEN: State.ASSIGNED,
        Event.PROGRAMMED: State.AVAILABLE,
        Event.WITHDRAWN: None,
    },
    State.ORPHANED: {
        Event.FREED: None,
        Event.GRANTED: State.ASSIGNED,
    },
}


class BrokenPool(StopError):
    """Something was asked of an address that its state does not allow."""
