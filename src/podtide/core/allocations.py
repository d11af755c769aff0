"""Who holds which address of a range: the rule of a Whereabouts pool (WIRE.md §5, "Allocation").

An ADD gets the lowest free address, and the same one again when it is repeated for the same pod and interface; a DEL
gives back what the sandbox's interface holds. Entries are indexed both ways, so neither looks at the others.

The pool is built from an IPPool's map and rendered back to one. Keys that are no offset in this network are somebody
else's doing: they hold no address here, and come back out as they went in.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from podtide.core.address_set import AddressSet
from podtide.core.errors import RangeFull
from podtide.core.ranges import AddressRange, IPAddress

Holders: TypeAlias = dict[tuple[str, str], set[int]]

_LONGEST_OFFSET = len(str(2**128))


class Allocation(Struct, frozen=True):
    """Who holds an address: the sandbox (container id), the pod as `namespace/name`, and the interface.

    The pod's uid is "" where it is not known: Whereabouts does not write it.
    """

    id: str
    podref: str
    ifname: str
    pod_uid: str = ""


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
            offset = _offset(key)
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

    def assign(self, id: str, podref: str, ifname: str) -> IPAddress:  # noqa: A002 - the wire's own name for it
        """Give the pod's interface the address it holds, else the lowest free one; RangeFull when there is none.

        A held address is given again even where start, end or an exclude has since put it out of bounds: it is the
        pod's until its DEL.
        """
        held = self._by_pod.get((podref, ifname))
        offset = min(held) if held else self.range.lowest_free(self._taken)
        if offset is None:
            raise RangeFull(
                f"no address of {self.range} is free for {podref}: of {self.range.capacity} that may be handed out, "
                f"pods hold {len(self)} and {len(self._withheld)} are reserved elsewhere; "
                "wait until pods leave, or widen the range"
            )
        self._put(offset, Allocation(id, podref, ifname))
        return self.range.address(offset)

    def release(self, id: str, ifname: str) -> list[IPAddress]:  # noqa: A002 - the wire's own name for it
        """Free what the sandbox's interface holds: one address, or none when it is unknown.

        Pools written by others may hold several for one interface; all are freed, as nothing else ever would.
        """
        held = sorted(self._by_sandbox.get((id, ifname), ()))
        for offset in held:
            self._drop(offset)
        return [self.range.address(offset) for offset in held]

    def withhold(self, address: IPAddress) -> None:
        """Hand the address to nobody new: it is reserved by a pool that overlaps this one."""
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

    def _put(self, offset: int, allocation: Allocation) -> None:
        self._drop(offset)
        self._entries[offset] = allocation
        self._taken.add(offset)
        self._by_pod.setdefault((allocation.podref, allocation.ifname), set()).add(offset)
        self._by_sandbox.setdefault((allocation.id, allocation.ifname), set()).add(offset)

    def _drop(self, offset: int) -> None:
        """Forget who holds the offset, if anybody does."""
        allocation = self._entries.pop(offset, None)
        if allocation is None:
            return
        if offset not in self._withheld:
            self._taken.discard(offset)
        _forget(self._by_pod, (allocation.podref, allocation.ifname), offset)
        _forget(self._by_sandbox, (allocation.id, allocation.ifname), offset)


def _forget(holders: Holders, holder: tuple[str, str], offset: int) -> None:
    holders[holder].discard(offset)
    if not holders[holder]:
        del holders[holder]


def _offset(key: str) -> int | None:
    """The offset a key of an IPPool stands for: a decimal of any size an address can have."""
    return int(key) if len(key) <= _LONGEST_OFFSET and key.isascii() and key.isdigit() else None
