"""What happened in a simulated cluster, in order: every call of the plugin, every write, every call of the allocator.

Tests and reports count and compare here instead of asking the programs, which could be wrong about themselves. All
entries are in one list, because their order matters most where everything happens at the same virtual instant. Clusters
that share a subnet share the list, too: each entry has the name of its cluster, "" where there is only one.

The moves of addresses in the agents' pools are kept beside the entries. They happen within a program and follow from what
crosses its ports, so they are not entries and not part of a trace's hash: they explain what became of an address.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from msgspec import Struct

from podtide.allocator.containers import AllocatedContainer
from podtide.core.pool.states import State
from podtide.resources.base import Resource
from podtide.simulation.full_names import full_name


class PluginCall(Struct, frozen=True, kw_only=True):
    """A call of the plugin by a kubelet, with its result."""

    at: float
    """When it was answered, in seconds of the simulation's clock."""
    took_seconds: float
    node: str
    verb: str
    pod: str
    """Namespace and name."""
    sandbox: str
    ok: bool
    words: str
    """The addresses of an ADD, or what the error says."""
    network: str = ""
    """Which secondary network it was about; "" for the node's pool."""
    cluster: str = ""

    def __str__(self) -> str:
        outcome = self.words or "done"
        whom = f"{self.pod} in {self.network}" if self.network else self.pod
        node = full_name(self.cluster, self.node)
        return f"{self.verb} for {whom} on {node}: {outcome if self.ok else f'failed: {self.words}'}"


class ClusterWrite(Struct, frozen=True, kw_only=True):
    """A write of an object by a program, which the cluster accepted."""

    at: float
    program: str
    verb: str
    kind: str
    name: str
    item: Resource | None
    """As the cluster answered; None for a delete."""
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.program}: {self.verb} {self.kind} {self.name}"


class ClusterWatch(Struct, frozen=True, kw_only=True):
    """The beginning of a program's watch of a kind."""

    at: float
    program: str
    kind: str
    fields: str
    labels: str

    def __str__(self) -> str:
        return f"{self.program}: watch {self.kind} {self.fields or self.labels}".rstrip()


class AllocatorCall(Struct, frozen=True, kw_only=True):
    """A call of the allocator by a program, which changed something."""

    at: float
    program: str
    call: str
    subject: str
    answer: AllocatedContainer | None = None
    """The node's addresses after the call; None for calls that return none."""
    batch: int = 0
    """The batch in force after `put_in_force`; 0 for other calls."""
    exhausted: bool = False
    """Whether the subnet is exhausted after `put_in_force`."""
    starved: bool = False
    """Whether it is starved then."""
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.program}: {self.call} {self.subject}"


class Trouble(Struct, frozen=True, kw_only=True):
    """A fault that struck."""

    at: float
    fault: str
    words: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.words}"


class PoolMove(Struct, frozen=True, kw_only=True):
    """A change of an address's state in an agent's pool."""

    at: float
    node: str
    """By its full name."""
    ip: str
    name: str
    state: State | None
    """None when the pool no longer contains it."""
    owner: str = ""
    """The pod and the sandbox that have the address then; "" for none."""

    def __str__(self) -> str:
        owner = f" to {self.owner}" if self.owner else ""
        return f"pool of {self.node}: {self.ip} as {self.name} is {self.state or 'gone'}{owner}"


Entry: TypeAlias = PluginCall | ClusterWrite | ClusterWatch | AllocatorCall | Trouble
E = TypeVar("E", PluginCall, ClusterWrite, ClusterWatch, AllocatorCall)


class Trace:
    """The entries, oldest first. Queries cover the entries since the last `mark`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.noted = 0
        """How many entries there ever were."""
        self.is_kept = True
        """Whether entries are kept, or only passed to the listeners, to save memory with thousands of nodes."""
        self.listeners: list[Callable[[Entry], None]] = []
        """Called with every entry."""
        self.move_listeners: list[Callable[[PoolMove], None]] = []
        """Called with every move of an address."""
        self._moves: list[tuple[int, PoolMove]] = []
        """Each with the number of entries there were before it."""
        self._marked_at = 0

    def note(self, entry: Entry) -> None:
        """Add an entry, and call the listeners with it."""
        self.noted += 1
        if self.is_kept:
            self.entries.append(entry)
        for listener in self.listeners:
            listener(entry)

    def note_move(self, move: PoolMove) -> None:
        """Add a move of an address. The listeners of entries are not called: it is none."""
        if self.is_kept:
            self._moves.append((len(self.entries), move))
        for listener in self.move_listeners:
            listener(move)

    def with_moves(self) -> Iterator[Entry | PoolMove]:
        """All entries and moves, in order."""
        told = 0
        for before, move in self._moves:
            yield from self.entries[told:before]
            yield move
            told = before
        yield from self.entries[told:]

    def mark(self) -> None:
        """Begin a new count."""
        self._marked_at = len(self.entries)

    def since_mark(self) -> Iterator[Entry]:
        """The entries since the mark."""
        yield from self.entries[self._marked_at :]

    def plugin_calls(self, verb: str = "", *, ok: bool | None = None) -> list[PluginCall]:
        """Calls of the plugin since the mark."""
        return [
            entry
            for entry in _only(PluginCall, self.since_mark())
            if (not verb or entry.verb == verb) and (ok is None or entry.ok == ok)
        ]

    def writes(self, kind: type[Resource], verb: str = "", *, name: str = "") -> list[ClusterWrite]:
        """Writes of objects of a kind since the mark."""
        return [
            entry
            for entry in _only(ClusterWrite, self.since_mark())
            if entry.kind == kind.api.kind and verb in {"", entry.verb} and name in {"", entry.name}
        ]

    def allocator_calls(self, call: str = "put_container") -> list[AllocatorCall]:
        """Calls of the allocator since the mark."""
        return [entry for entry in _only(AllocatorCall, self.since_mark()) if entry.call == call]


def _only(kind: type[E], entries: Iterable[Entry]) -> Iterator[E]:
    return (entry for entry in entries if isinstance(entry, kind))
