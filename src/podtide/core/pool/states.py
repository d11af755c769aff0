"""What can become of an address in a node's pool: one table, and nothing that is not in it.

Rule 1: everything that changes an address's state goes through this table, by `PoolRecords.move`. What is not in the table
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

- PendingRelease is final. It ends when the container comes without the address; until then no pod gets it, whatever
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
    """The state of an address. The first four are those of the wire."""

    PENDING_PROGRAMMING = "PendingProgramming"
    AVAILABLE = "Available"
    ASSIGNED = "Assigned"
    PENDING_RELEASE = "PendingRelease"
    QUARANTINED = "Quarantined"
    ORPHANED = "Orphaned"


class AddressEvent(StrEnum):
    """An event that changes an address's state."""

    GRANTED = "granted"
    RECOVERED = "recovered"
    PROGRAMMED = "programmed"
    TAKEN = "taken"
    FREED = "freed"
    NAMED = "named"
    WITHDRAWN = "withdrawn"


TRANSITIONS: Mapping[State | None, Mapping[AddressEvent, State | None]] = {
    None: {
        AddressEvent.GRANTED: State.PENDING_PROGRAMMING,
        AddressEvent.RECOVERED: State.QUARANTINED,
    },
    State.PENDING_PROGRAMMING: {
        AddressEvent.PROGRAMMED: State.AVAILABLE,
        AddressEvent.NAMED: State.PENDING_RELEASE,
        AddressEvent.WITHDRAWN: None,
    },
    State.AVAILABLE: {
        AddressEvent.TAKEN: State.ASSIGNED,
        AddressEvent.NAMED: State.PENDING_RELEASE,
        AddressEvent.WITHDRAWN: None,
    },
    State.ASSIGNED: {
        AddressEvent.FREED: State.AVAILABLE,
        AddressEvent.WITHDRAWN: State.ORPHANED,
    },
    State.PENDING_RELEASE: {
        AddressEvent.WITHDRAWN: None,
    },
    State.QUARANTINED: {
        AddressEvent.TAKEN: State.ASSIGNED,
        AddressEvent.PROGRAMMED: State.AVAILABLE,
        AddressEvent.WITHDRAWN: None,
    },
    State.ORPHANED: {
        AddressEvent.FREED: None,
        AddressEvent.GRANTED: State.ASSIGNED,
    },
}


class BrokenPool(StopError):
    """An event that the address's state does not allow."""
