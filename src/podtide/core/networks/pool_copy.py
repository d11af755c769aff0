"""The entries of an IPPool as they were last read or written, and the changes that are about to be written.

The object in the cluster is the truth: a copy whose write failed is dropped, and a new one is made from what is read. The
size of the object is counted entry by entry, so that an ADD that would make it too large is refused with a clear message
before the API server refuses the write (Kubernetes stores no object of more than 1.5 MB).
"""

from collections.abc import Callable, Iterable, Mapping

from podtide.core.errors import RetryError
from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation, Allocations
from podtide.core.ranges import AddressRange, IPAddress, IPNetwork

MOST_BYTES = 1_500_000


class PoolTooLarge(RetryError):
    """One more address, and the IPPool would be larger than what an API server stores."""


class PoolCopy:
    """One version of the pool's entries, with changes upon it."""

    def __init__(
        self,
        network: IPNetwork,
        entries: Mapping[str, Allocation],
        *,
        name: str = "",
        size: int = 0,
        entry_size: Callable[[str, Allocation], int] = lambda _key, _holder: 0,
    ) -> None:
        """`name` and `size` are the object's, `entry_size` tells how many bytes of that an entry takes."""
        self.allocations = Allocations(
            AddressRange(network, (Interval(0, network.num_addresses - 1),)), entries
        )
        self.size = size
        """How large the object is when it is stored, within a few bytes."""
        self._name = name
        self._entry_size = entry_size
        self._before: dict[IPAddress, Allocation | None] = {}

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._before)

    def covers(self, address: IPAddress) -> bool:
        """Whether the address is in the pool's range."""
        return address in self.allocations.range.network

    def holds(self, key: tuple[str, str]) -> bool:
        """Whether the sandbox's interface has an address here."""
        return bool(self.allocations.held_by(*key))

    def give(
        self,
        asking: Allocation,
        bounds: AddressRange,
        *,
        is_ours: Callable[[Allocation], bool],
        is_ghost: Callable[[IPAddress, Allocation], bool],
        preferred: Iterable[IPAddress],
    ) -> tuple[IPAddress, Allocation | None]:
        """Give the asking interface an address within the bounds; answers it, and who had it before.

        `is_ghost` is asked of what the pool had when it was read. RangeFull when there is none, PoolTooLarge when the
        IPPool would become too large.
        """
        address = self.allocations.choose(
            asking,
            bounds,
            is_ours=is_ours,
            is_ghost=lambda address, holder: address not in self._before and is_ghost(address, holder),
            preferred=preferred,
        )
        before = self.allocations.holder(address)
        holder = asking.taking_over(before)
        growth = self._size_of(address, holder) - self._size_of(address, before)
        if growth > 0 and self.size + growth > MOST_BYTES:
            raise PoolTooLarge(
                f"no address of {self.allocations.range} for {asking.podref}: IPPool {self._name} has "
                f"{self.size} bytes for {len(self.allocations)} addresses, and Kubernetes stores no object of more "
                f"than {MOST_BYTES}; cut the range into slices (node_slice_size), or use several networks"
            )
        self.set_holder(address, holder)
        return address, before

    def release(self, sandbox: str, ifname: str) -> dict[IPAddress, Allocation]:
        """Take the sandbox's interface off all that it holds; answers what it had last, free or another sandbox's now.

        Pools written by others may hold several for one interface; all are given up, as nothing else ever would.
        """
        left = {}
        for address in self.allocations.held_by(sandbox, ifname):
            holder = self.allocations.holder(address)
            assert holder is not None
            if holder.id == sandbox:
                left[address] = holder
            self.set_holder(address, holder.without(sandbox))
        return left

    def set_holder(self, address: IPAddress, holder: Allocation | None) -> None:
        """Let this holder have the address; None frees it."""
        before = self.allocations.holder(address)
        if before == holder:
            return
        if self._before.setdefault(address, before) == holder:
            del self._before[address]
        self.size += self._size_of(address, holder) - self._size_of(address, before)
        if before is not None:
            self.allocations.drop(address)
        if holder is not None:
            self.allocations.put(address, holder)

    def withhold(self, addresses: Iterable[IPAddress]) -> None:
        """Offer these to no other interface, as far as they are of the range and free."""
        for address in addresses:
            if self.covers(address) and self.allocations.holder(address) is None:
                self.allocations.withhold(address)

    def restore(self, addresses: Iterable[IPAddress]) -> None:
        """Withhold these no longer, as far as they are of the range."""
        for address in addresses:
            if self.covers(address):
                self.allocations.restore(address)

    def written(self) -> None:
        """The cluster has acknowledged the changes."""
        self._before.clear()

    def _size_of(self, address: IPAddress, holder: Allocation | None) -> int:
        if holder is None:
            return 0
        return self._entry_size(str(self.allocations.range.offset(address)), holder)
