"""An IPPool as it was last read or written, and what is about to be written of it.

The object is the only truth: a copy whose write failed is thrown away, and made anew from what is read. How large the
object is follows along entry by entry, because it is better to say that a pool is full of bytes before an API server
does (Kubernetes stores no object of more than 1.5 MB).
"""

from collections.abc import Callable, Iterable

import msgspec
from msgspec import structs

from podtide.agent.networks.errors import PoolTooLarge
from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation, Allocations
from podtide.core.ranges import AddressRange, IPAddress, parse_network
from podtide.networks.audit_picture import allocation_of
from podtide.resources.codec import encode
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec

MOST_BYTES = 1_500_000

_OWNED = '"f:":{".":{},"f:id":{},"f:ifname":{},"f:podref":{},"f:poduid":{}},'
"""What an API server keeps beside each entry, to know who wrote it."""
_OWNED_CONFIGURATION = '"f:configuration":{},'
_OWNED_EARLIER = '"f:earlier":{},'


class PoolCopy:
    """One version of the pool, with changes upon it."""

    def __init__(self, pool: IPPool) -> None:
        self.pool = pool
        self._before: dict[IPAddress, Allocation | None] = {}
        network = parse_network(pool.spec.range)
        whole = AddressRange(network, (Interval(0, network.num_addresses - 1),))
        entries = {key: allocation_of(entry) for key, entry in pool.spec.allocations.items()}
        self.allocations = Allocations(whole, entries)
        self.bytes = len(encode(pool)) + sum(_ownership_bytes(key, entry) for key, entry in entries.items())
        """How large the object is when it is stored, within a few bytes."""

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._before)

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

        `is_ghost` is asked of what the pool had when it was read. RangeFull when there is none, PoolTooLarge when there
        is no room to write it down.
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
        growth = self._cost(address, holder) - self._cost(address, before)
        if growth > 0 and self.bytes + growth > MOST_BYTES:
            raise PoolTooLarge(
                f"no address of {self.allocations.range} for {asking.podref}: IPPool {self.pool.key} has "
                f"{self.bytes} bytes for {len(self.allocations)} addresses, and Kubernetes stores no object of more "
                f"than {MOST_BYTES}; cut the range into slices (node_slice_size), or use several networks"
            )
        self.set_holder(address, holder)
        return address, before

    def release(self, sandbox: str, ifname: str) -> dict[IPAddress, Allocation]:
        """Take the sandbox's interface off all that it holds; answers what it had last, free or another sandbox's now."""
        left = {}
        for address in self.allocations.held_by(sandbox, ifname):
            holder = self.allocations.holder(address)
            assert holder is not None
            if holder.id == sandbox:
                left[address] = holder
            self.set_holder(address, holder.without(sandbox))
        return left

    def set_holder(self, address: IPAddress, holder: Allocation | None) -> None:
        """From now on it is theirs, or nobody's."""
        before = self.allocations.holder(address)
        if before == holder:
            return
        if self._before.setdefault(address, before) == holder:
            del self._before[address]
        self.bytes += self._cost(address, holder) - self._cost(address, before)
        if before is not None:
            self.allocations.drop(address)
        if holder is not None:
            self.allocations.put(address, holder)

    def object(self) -> IPPool:
        """The pool to write: it replaces exactly the version that was read."""
        entries = {key: _written(entry) for key, entry in self.allocations.render().items()}
        return structs.replace(self.pool, spec=IPPoolSpec(range=self.pool.spec.range, allocations=entries))

    def written(self, pool: IPPool) -> None:
        """The cluster has acknowledged it, as this version."""
        self.pool = pool
        self._before.clear()

    def _cost(self, address: IPAddress, holder: Allocation | None) -> int:
        if holder is None:
            return 0
        key = str(self.allocations.range.offset(address))
        own = len(key) + len('"":,') + len(msgspec.json.encode(_written(holder)))
        return own + _ownership_bytes(key, holder)


def _ownership_bytes(key: str, holder: Allocation) -> int:
    owned = len(key) + len(_OWNED)
    owned += len(_OWNED_CONFIGURATION) if holder.configuration else 0
    return owned + (len(_OWNED_EARLIER) if holder.earlier else 0)


def _written(holder: Allocation) -> IPAllocation:
    return IPAllocation(
        id=holder.id,
        podref=holder.podref,
        ifname=holder.ifname,
        pod_uid=holder.pod_uid,
        earlier=list(holder.earlier),
        configuration=holder.configuration,
    )
