"""Who holds which address of a range: the rule of a Whereabouts pool (design W19, "Allocation").

An ADD gets the lowest free address, and the one it has when it is repeated; a DEL gives back what the sandbox's
interface holds. Entries are indexed both ways, so neither looks at the others.

When a pod comes with a new sandbox, Whereabouts gives it what its name holds. But a name proves nothing: a StatefulSet's
pod that was lost with its node has the name of the one that replaces it, and may still live. So an address is given
again to the same pod by its uid; where a uid is not known, only if the earlier sandbox is one of this node's own, which
the runtime has replaced (design R12, "Reservations").

The calls alone do not tell which of a pod's sandboxes is alive: an ADD that the runtime gave up may arrive minutes after
the ADD of the sandbox that replaced it, and its DEL later still. So an address that was taken over is
free only when a DEL has come for every sandbox that had it. Where one never comes, repair finds the pod gone.

The pool is built from an IPPool's map and rendered back to one. Keys that are not a valid offset in this network
were written by another program: they hold no address here, and are rendered unchanged.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct, structs

from podtide.core.address_set import AddressSet
from podtide.core.errors import RangeFull
from podtide.core.ranges import AddressRange, IPAddress

Holders: TypeAlias = dict[tuple[str, str], set[int]]

_LONGEST_OFFSET = len(str(2**128))
_MOST_EARLIER = 8
"""Entries must not grow without end under a runtime that makes sandbox after sandbox and deletes none."""


class Allocation(Struct, frozen=True):
    """Who holds an address: the sandbox (container id), the pod as `namespace/name`, and the interface.

    The pod's uid is "" where it is not known: Whereabouts does not write it.
    """

    id: str
    podref: str
    ifname: str
    pod_uid: str = ""
    earlier: tuple[str, ...] = ()
    """Sandboxes of the pod that had it before, and of which no DEL has come; the last one last."""
    configuration: str = ""
    """The CNI configuration by which all these sandboxes got it; "" where that is not known, or not one alone."""

    @property
    def sandboxes(self) -> tuple[str, ...]:
        """All that may have it, each once, the one that asked last at the end."""
        return (*dict.fromkeys(each for each in self.earlier if each != self.id), self.id)

    def taking_over(self, before: "Allocation | None") -> "Allocation":
        """This holder in place of the one before, of whose sandboxes any may be the one that lives."""
        others = [each for each in before.sandboxes if each not in {"", self.id}] if before else []
        is_one = not before or not others or before.configuration == self.configuration
        return structs.replace(
            self,
            earlier=tuple(others[-_MOST_EARLIER:]),
            configuration=self.configuration if is_one else "",
        )

    def without(self, sandbox: str) -> "Allocation | None":
        """The entry after the DEL of a sandbox: its other sandboxes', the last one first; None when none is left."""
        others = [each for each in self.sandboxes if each != sandbox]
        return structs.replace(self, id=others[-1], earlier=tuple(others[:-1])) if others else None


def is_same_holder(found: Allocation, asking: Allocation) -> bool:
    """Whether both are one sandbox's interface, or that interface of one pod, by its uid."""
    is_sandbox = bool(found.id) and found.id == asking.id
    is_pod = bool(found.pod_uid) and (found.pod_uid, found.podref) == (asking.pod_uid, asking.podref)
    return found.ifname == asking.ifname and (is_sandbox or is_pod)


class Allocations:
    """The allocations in one range."""

    def __init__(self, address_range: AddressRange, entries: Mapping[str, Allocation] | None = None) -> None:
        self.range = address_range
        self._entries: dict[int, Allocation] = {}
        self._elsewhere: dict[str, Allocation] = {}
        self._withheld: set[int] = set()
        self._taken = AddressSet(address_range.size)
        self._by_pod: Holders = {}
        self._by_sandbox: Holders = {}
        for key, allocation in (entries or {}).items():
            offset = parse_offset(key)
            if offset is None or offset >= address_range.size:
                self._elsewhere[key] = allocation
            else:
                self._put(offset, allocation)

    def __len__(self) -> int:
        """How many addresses of the network are held."""
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[IPAddress, Allocation]]:
        """Each held address with its holder, in address order."""
        return ((self.range.address(offset), self._entries[offset]) for offset in sorted(self._entries))

    def holder(self, address: IPAddress) -> Allocation | None:
        """The holder of the address, if it has one."""
        return self._entries.get(self.range.offset(address))

    def held_by(self, id: str, ifname: str) -> list[IPAddress]:  # noqa: A002 - the wire's own name for it
        """What the sandbox's interface holds, in address order; also what another sandbox of its pod took over."""
        return [self.range.address(offset) for offset in sorted(self._by_sandbox.get((id, ifname), ()))]

    def of_its_pod(self, asking: Allocation, is_ours: Callable[[Allocation], bool]) -> Iterator[int]:
        """The offsets that sandboxes of the asking interface's pod hold. `is_ours` decides where a uid is not known."""
        for offset in self._by_pod.get((asking.podref, asking.ifname), ()):
            found = self._entries[offset]
            is_known = found.pod_uid and asking.pod_uid
            if found.pod_uid == asking.pod_uid if is_known else is_ours(found):
                yield offset

    def choose(
        self,
        asking: Allocation,
        bounds: AddressRange,
        *,
        is_ours: Callable[[Allocation], bool],
        is_ghost: Callable[[IPAddress, Allocation], bool] = lambda _address, _holder: False,
        preferred: Iterable[IPAddress] = (),
    ) -> IPAddress:
        """The address for `asking`: the one it holds, else a preferred or the lowest free one within the bounds.

        A held address is given again even where start, end or an exclude has since put it out of bounds: it is the
        pod's until its DEL. `is_ours` says of an earlier sandbox of the pod whether it was this node's, `is_ghost`
        of what its pod holds whether that was given up and came back with a backup. What is preferred may be
        withheld, but must be free. RangeFull when there is none.
        """
        offset = self._given_before(asking, is_ours, is_ghost)
        if offset is None:
            free = (self.range.offset(each) for each in preferred if each in bounds)
            offset = next((each for each in free if each not in self._entries), None)
        if offset is None:
            offset = bounds.lowest_free(self._taken)
        if offset is None:
            raise RangeFull(
                f"no address of {self.range} is free for {asking.podref}: of {bounds.capacity} that may be handed out, "
                f"pods hold {len(self)} and {len(self._withheld)} are reserved elsewhere; "
                "wait until pods leave, or widen the range"
            )
        return self.range.address(offset)

    def put(self, address: IPAddress, allocation: Allocation) -> None:
        """Let this holder have the address, in place of any before."""
        self._put(self.range.offset(address), allocation)

    def drop(self, address: IPAddress) -> None:
        """Free the address."""
        self._drop(self.range.offset(address))

    def withhold(self, address: IPAddress) -> None:
        """Give the address to no other interface: it is reserved by a pool that overlaps this one."""
        offset = self.range.offset(address)
        self._withheld.add(offset)
        self._taken.add(offset)

    def restore(self, address: IPAddress) -> None:
        """Withhold the address no longer."""
        offset = self.range.offset(address)
        self._withheld.discard(offset)
        if offset not in self._entries:
            self._taken.discard(offset)

    def render(self) -> dict[str, Allocation]:
        """The map as an IPPool carries it: decimal offsets, and the keys that are not ours."""
        return self._elsewhere | {str(offset): allocation for offset, allocation in self._entries.items()}

    def _given_before(
        self,
        asking: Allocation,
        is_ours: Callable[[Allocation], bool],
        is_ghost: Callable[[IPAddress, Allocation], bool],
    ) -> int | None:
        """The lowest offset that is the asking interface's already."""
        own = self._by_sandbox.get((asking.id, asking.ifname))
        if own:
            return min(own)
        of_its_pod = self.of_its_pod(asking, is_ours)
        return min(
            (each for each in of_its_pod if not is_ghost(self.range.address(each), self._entries[each])),
            default=None,
        )

    def _put(self, offset: int, allocation: Allocation) -> None:
        self._drop(offset)
        self._entries[offset] = allocation
        self._taken.add(offset)
        self._by_pod.setdefault((allocation.podref, allocation.ifname), set()).add(offset)
        for sandbox in allocation.sandboxes:
            self._by_sandbox.setdefault((sandbox, allocation.ifname), set()).add(offset)

    def _drop(self, offset: int) -> None:
        """Forget the holder of the offset, if it has one."""
        allocation = self._entries.pop(offset, None)
        if allocation is None:
            return
        if offset not in self._withheld:
            self._taken.discard(offset)
        _forget(self._by_pod, (allocation.podref, allocation.ifname), offset)
        for sandbox in allocation.sandboxes:
            _forget(self._by_sandbox, (sandbox, allocation.ifname), offset)


def _forget(holders: Holders, holder: tuple[str, str], offset: int) -> None:
    holders[holder].discard(offset)
    if not holders[holder]:
        del holders[holder]


def parse_offset(key: str) -> int | None:
    """The offset that a key of an IPPool stands for, a decimal of any size an address can have; None for other keys."""
    return int(key) if len(key) <= _LONGEST_OFFSET and key.isascii() and key.isdigit() else None
