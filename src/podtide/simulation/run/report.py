"""The result of a simulated run: nothing in it differs between two runs of one plan."""

from hashlib import sha256

from msgspec import Struct

from podtide.resources.codec import encode
from podtide.simulation.run.fault_plan import FaultPlan
from podtide.simulation.run.placement_tally import PlacementCounts
from podtide.simulation.trace import ClusterWrite, Entry


class RunReport(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    plan: FaultPlan
    trace_hash: str
    """The hash of every entry of the trace, in order: two runs of one plan have the same."""
    entries: int
    simulated_seconds: float
    pods: int
    steps: int
    """How many steps there were; the invariants were checked after each."""
    faults: dict[str, int]
    """How often each fault struck."""
    batch_moves: int = 0
    """How often the batch in force changed."""
    placement: PlacementCounts | None = None
    """How pods were placed; None where they are created for a node."""
    reached: dict[str, int] = {}
    """How often which states were visited (see `checks.reach`)."""
    failure: str = ""
    """What was broken, in a sentence; "" if nothing was."""
    last_states: tuple[str, ...] = ()
    """The trace's entries about the address in the failure, the newest last."""
    last_entries: tuple[str, ...] = ()
    """The last entries of a failed run's trace, the newest last."""

    @property
    def is_good(self) -> bool:
        """Whether every invariant held."""
        return not self.failure


class TraceHash:
    """The hash of a trace, taken as it grows."""

    def __init__(self) -> None:
        self._hash = sha256()

    def take(self, entry: Entry) -> None:
        """Add an entry."""
        self._hash.update(f"{line(entry)}\n".encode())

    def hexdigest(self) -> str:
        """The hash of all entries so far."""
        return self._hash.hexdigest()


def line(entry: Entry) -> str:
    """An entry with all its fields, in one line."""
    words = f"{entry.at:.6f} {entry}"
    if isinstance(entry, ClusterWrite) and entry.item is not None:
        return f"{words} {encode(entry.item).decode()}"
    return words
