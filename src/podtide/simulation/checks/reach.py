"""What a run has visited: a search that never comes near a state proves nothing about it ("sometimes" assertions).

States are read from the trace and from the moves of addresses, and counted under names that people can read:

    address Available → Assigned       a transition of an address in a node's pool; what is not in a pool is "absent"
    batch lowered, exhausted, …        a step of what is in force in a subnet
    Granted SubnetFull                 a condition's type and reason
    event RetirementHeld               the reason of an Event
    ADD answers 11                     an error code of the plugin
    allocator move_container           a call of the allocator that changed something
    delete IPPool                      a write of an object
"""

import re
from collections import Counter

from podtide.cni.errors import ErrorCode
from podtide.core.pool.states import TRANSITIONS, State
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.event import Event
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.trace import AllocatorCall, ClusterWrite, Entry, PluginCall, PoolMove

_CODE = re.compile(r"code (\d+):")
_ABSENT = "absent"


def _transition(before: State | None, after: State | None) -> str:
    return f"address {before or _ABSENT} → {after or _ABSENT}"


TRANSITIONS_OF_ADDRESSES = frozenset(
    _transition(before, after) for before, events in TRANSITIONS.items() for after in events.values()
)
SELDOM = frozenset(
    {
        # An agent programs in the same step what it was granted: only a disk that fails in between leaves time for these.
        _transition(State.PENDING_PROGRAMMING, State.PENDING_RELEASE),
        _transition(State.PENDING_PROGRAMMING, None),
        # A container that is withdrawn, or records that are lost, while pods have addresses of it.
        _transition(State.AVAILABLE, None),
        _transition(State.ASSIGNED, State.ORPHANED),
        _transition(State.ORPHANED, State.ASSIGNED),
        _transition(State.ORPHANED, None),
        _transition(State.QUARANTINED, State.ASSIGNED),
        _transition(State.QUARANTINED, None),
    }
)
"""What is told when it was not visited, and does not fail a soak."""
STEPS_OF_A_SUBNET = frozenset(
    {"batch lowered", "batch raised", "exhausted", "not exhausted", "starved", "not starved"}
)
ANSWERS = frozenset({f"ADD answers {ErrorCode.TRY_AGAIN_LATER.value}"})
"""Of all error codes, the one that a call in good order can get: the others are for calls that are not."""
CALLS_OF_THE_ALLOCATOR = frozenset(
    f"allocator {call}"
    for call in ("put_container", "delete_container", "move_container", "end_quarantine", "put_in_force")
)
SOMETIMES = (TRANSITIONS_OF_ADDRESSES - SELDOM) | STEPS_OF_A_SUBNET | ANSWERS | CALLS_OF_THE_ALLOCATOR
"""What a good soak has visited. Reasons, Events and writes are counted as they come."""


class Reach:
    """Counts visits of states."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._states: dict[tuple[str, str], State | None] = {}
        """The state of each address, by node and the name of the address."""
        self._in_force: dict[str, tuple[int, bool, bool]] = {}
        """Batch, exhausted and starved, by subnet."""

    def move(self, move: PoolMove) -> None:
        """An address moved."""
        place = move.node, move.name
        before = self._states.get(place)
        if before is not move.state:
            self.counts[_transition(before, move.state)] += 1
        self._states[place] = move.state

    def hear(self, entry: Entry) -> None:
        """An entry of the trace."""
        match entry:
            case PluginCall(ok=False):
                if (code := _CODE.match(entry.words)) is not None:
                    self.counts[f"{entry.verb} answers {code[1]}"] += 1
            case AllocatorCall():
                self.counts[f"allocator {entry.call}"] += 1
                if entry.call == "put_in_force":
                    self._of_subnet(entry)
            case ClusterWrite():
                self.counts[f"{entry.verb} {entry.kind}"] += 1
                self._of_object(entry)
            case _:
                return

    def _of_subnet(self, entry: AllocatorCall) -> None:
        now = entry.batch, entry.exhausted, entry.starved
        before = self._in_force.get(entry.subject)
        self._in_force[entry.subject] = now
        if before is None:
            return
        if now[0] != before[0]:
            self.counts["batch lowered" if now[0] < before[0] else "batch raised"] += 1
        for word, was, is_so in zip(("exhausted", "starved"), before[1:], now[1:], strict=True):
            if was != is_so:
                self.counts[word if is_so else f"not {word}"] += 1

    def _of_object(self, entry: ClusterWrite) -> None:
        match entry.item:
            case NodeNetworkConfig() | ClusterSubnet() as shown:
                for condition in shown.status.conditions:
                    self.counts[f"{condition.type} {condition.reason}"] += 1
            case Event() as event:
                self.counts[f"event {event.reason}"] += 1
            case _:
                return


def never(counts: Counter[str], states: frozenset[str] = SOMETIMES) -> list[str]:
    """Which of the states were not visited."""
    return sorted(state for state in states if not counts[state])
