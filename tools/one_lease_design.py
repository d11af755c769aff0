"""The design that slices replace: one Lease for the whole cluster, which every ADD of every network takes in turn.

It is a model of Whereabouts in classic mode, with its calls, terms and pauses; `tests/tools/test_one_lease_design.py`
holds the calls to those that were recorded of the real program. Where it simplifies it is in that design's favour: no
process has to start, and a pod that was given up is neither taken down, which is a turn at the Lease for every network,
nor tried again.
"""

import asyncio
from random import Random

from msgspec import structs

from podtide.cluster.lease_record import LeaseClaim, ObservedLease, held, released, see
from podtide.cluster.port import AlreadyExists, Cluster, Conflict, NotFound
from podtide.core.networks.allocations import Allocation, Allocations
from podtide.core.ranges import IPAddress
from podtide.networks.network import NetworkRange
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.timestamps import to_micro_time
from podtide.runtime.clock import Clock

LEASE = "whereabouts"
TERM_SECONDS, RETRY_SECONDS, JITTER = 1.5, 0.5, 1.2
ADD_SECONDS = 120.0
"""How long an ADD waits for its turn before it fails by itself."""


class OneLease:
    """One node's plugin: each ADD is a process of its own, which knows of the Lease only what it reads."""

    def __init__(self, line: Cluster, clock: Clock, randomness: Random) -> None:
        self._line = line
        self._clock = clock
        self._randomness = randomness

    async def add(self, range_: NetworkRange, asking: Allocation) -> IPAddress:
        """Take the Lease, find and record an address of a range, and give the Lease up; TimeoutError if it is never its turn."""
        async with asyncio.timeout(ADD_SECONDS):
            lease = await self._acquire(asking.podref)
        renewing = asyncio.create_task(self._keep(lease))
        try:
            address = await asyncio.create_task(self._allocate(range_, asking))  # side by side with renewing
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
        await self._release(asking.podref)
        return address

    async def _acquire(self, identity: str) -> Lease:
        seen: ObservedLease | None = None
        while True:
            try:
                there = await self._line.get(Lease, LEASE, SYSTEM_NAMESPACE)
            except NotFound:
                there = Lease(
                    metadata=ObjectMeta(name=LEASE, namespace=SYSTEM_NAMESPACE), spec=released(LeaseSpec())
                )
            now = self._clock.monotonic()
            seen = see(seen, there.spec, there.metadata.resource_version, now)
            if now >= seen.free_at(TERM_SECONDS):
                claim = LeaseClaim(
                    identity, there.spec.lease_transitions + 1, to_micro_time(self._clock.wall())
                )
                try:
                    return await self._hold(there, claim)
                except (Conflict, AlreadyExists):
                    pass  # somebody was quicker
            await asyncio.sleep(RETRY_SECONDS * (1 + JITTER * self._randomness.random()))

    async def _keep(self, lease: Lease) -> None:
        """Renew the Lease: at once, as its holder's library does, and then from time to time."""
        claim = LeaseClaim(
            lease.spec.holder_identity, lease.spec.lease_transitions, lease.spec.acquire_time or ""
        )
        while True:
            lease = await self._hold(lease, claim)
            await asyncio.sleep(RETRY_SECONDS)

    async def _hold(self, lease: Lease, claim: LeaseClaim) -> Lease:
        spec = held(lease.spec, claim, TERM_SECONDS, self._clock.wall())
        wanted = structs.replace(lease, spec=spec)
        if lease.metadata.resource_version:
            return await self._line.replace(wanted, manager=LEASE)
        return await self._line.create(wanted, manager=LEASE)

    async def _release(self, identity: str) -> None:
        lease = await self._line.get(Lease, LEASE, SYSTEM_NAMESPACE)
        if lease.spec.holder_identity == identity:
            await self._line.replace(structs.replace(lease, spec=released(lease.spec)), manager=LEASE)

    async def _allocate(self, range_: NetworkRange, asking: Allocation) -> IPAddress:
        await self._line.list(IPPool, SYSTEM_NAMESPACE)  # it looks whether it may speak to the API server
        pool = await self._pool(range_)
        entries = {
            offset: Allocation(each.id, each.podref, each.ifname)
            for offset, each in pool.spec.allocations.items()
        }
        allocations = Allocations(range_.addresses, entries)
        address = allocations.choose(asking, range_.addresses, is_ours=lambda _: False)
        while await self._is_reserved(range_, address):
            allocations.withhold(address)
            address = allocations.choose(asking, range_.addresses, is_ours=lambda _: False)
        taken = IPAllocation(id=asking.id, podref=asking.podref, ifname=asking.ifname)
        offset = str(range_.addresses.offset(address))
        spec = structs.replace(pool.spec, allocations=pool.spec.allocations | {offset: taken})
        await self._line.replace(structs.replace(pool, spec=spec), manager=LEASE)
        await self._reserve(range_, address, asking)
        return address

    async def _pool(self, range_: NetworkRange) -> IPPool:
        name = range_.classic_pool_name()
        try:
            return await self._line.get(IPPool, name, SYSTEM_NAMESPACE)
        except NotFound:
            place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
            spec = IPPoolSpec(range=str(range_.addresses.network), allocations={})
            await self._line.create(IPPool(metadata=place, spec=spec), manager=LEASE)
            return await self._line.get(IPPool, name, SYSTEM_NAMESPACE)

    async def _is_reserved(self, range_: NetworkRange, address: IPAddress) -> bool:
        try:
            await self._line.get(
                OverlappingRangeIPReservation, range_.reservation_name(address), SYSTEM_NAMESPACE
            )
        except NotFound:
            return False
        return True

    async def _reserve(self, range_: NetworkRange, address: IPAddress, asking: Allocation) -> None:
        place = ObjectMeta(name=range_.reservation_name(address), namespace=SYSTEM_NAMESPACE)
        spec = OverlappingRangeIPReservationSpec(
            podref=asking.podref, ifname=asking.ifname, container_id=asking.id
        )
        await self._line.create(OverlappingRangeIPReservation(metadata=place, spec=spec), manager=LEASE)
