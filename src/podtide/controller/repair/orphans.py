"""Leaks of secondary networks: allocations whose pod is gone, and reservations that are unneeded, wrong or missing."""

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from podtide.controller.repair.pod_lookup import PodLookup
from podtide.controller.repair.snapshot import PoolEntry, RepairSnapshot
from podtide.controller.repair.writes import RepairWrites
from podtide.core.networks.leaks import (
    LeakGrace,
    Orphaned,
    PodSeen,
    ReservationAction,
    Reserved,
    SuspectTimes,
    is_doubtful,
    judge_reservation,
    why_orphaned,
)
from podtide.core.ranges import IPAddress
from podtide.networks.audit_picture import holder_of
from podtide.networks.ownership import may_be_reservation_of
from podtide.resources.names import reservation_name
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.runtime.logging import Logger


class AllocationRepair:
    """Finds allocations whose pod is gone, and remembers since when."""

    def __init__(self, writes: RepairWrites, *, patience: LeakGrace, log: Logger) -> None:
        self.suspects = SuspectTimes[PoolEntry]()
        self._writes = writes
        self._patience = patience
        self._log = log

    async def repair(
        self, snapshot: RepairSnapshot, pods: Mapping[str, PodSeen], fresh: PodLookup, now: float
    ) -> set[PoolEntry]:
        """Release what is due. Returns the entries whose address is no longer held."""
        orphans = {
            held: self._patience.seconds(reason)
            for held in snapshot.entries()
            if (reason := why_orphaned(held.holder, pods.get(held.holder.podref), snapshot.address_of(held)))
        }
        due: dict[str, list[PoolEntry]] = defaultdict(list)
        reasons: dict[PoolEntry, Orphaned] = {}
        for held in self.suspects.due(orphans, now):
            pod = await fresh.seen(held.holder.podref)
            confirmed = why_orphaned(held.holder, pod, snapshot.address_of(held))
            if confirmed is not None:
                due[held.pool].append(held)
                reasons[held] = confirmed
        released: set[PoolEntry] = set()
        for pool, entries in due.items():
            for held in await self._writes.release(pool, entries):
                released.add(held)
                self._log.warning(
                    "released a leaked address",
                    pool=pool,
                    address=str(snapshot.address_of(held) or held.key),
                    pod=held.holder.podref,
                    reason=reasons[held],
                )
        return released


class _ReservationVersion(Struct, frozen=True):
    """The identity of a reservation, by uid and version: one that was written again is judged again."""

    name: str
    uid: str
    version: str


class _MissingReservation(Struct, frozen=True):
    """A reservation that should exist, and the entry it is for."""

    name: str
    held: PoolEntry


class ReservationRepair:
    """Finds reservations that contradict the pools, and remembers since when."""

    def __init__(self, writes: RepairWrites, *, patience: LeakGrace, log: Logger) -> None:
        self.doubted = SuspectTimes[_ReservationVersion]()
        self.missing = SuspectTimes[_MissingReservation]()
        self._writes = writes
        self._patience = patience
        self._log = log
        self._disputes: set[_ReservationVersion] = set()

    async def repair(
        self,
        snapshot: RepairSnapshot,
        pods: Mapping[str, PodSeen],
        released: AbstractSet[PoolEntry],
        fresh: PodLookup,
        now: float,
    ) -> None:
        """Correct what is due, given the allocations without those that were just released."""
        pools = _HeldAddresses(snapshot, pods, released)
        beside = {_identity(item): (item, pools.beside(item)) for item in snapshot.reservations}
        doubted = {
            identity: self._patience.seconds(why_orphaned(reserved.holder, pod))
            for identity, (_, reserved) in beside.items()
            if is_doubtful(reserved, pod := pods.get(reserved.holder.podref))
        }
        for identity in self.doubted.due(doubted, now):
            await self._settle(identity, *beside[identity], fresh)
        self._disputes &= beside.keys()

        names = {item.metadata.name for item in snapshot.reservations}
        missing = {
            _MissingReservation(name, held): self._patience.seconds(None)
            for name, held in pools.guarded.items()
            if name not in names
        }
        for item in self.missing.due(missing, now):
            if await self._writes.restore_reservation(item.name, item.held):
                self._log.warning("restored a reservation", name=item.name, pod=item.held.holder.podref)

    async def _settle(
        self,
        identity: _ReservationVersion,
        reservation: OverlappingRangeIPReservation,
        reserved: Reserved,
        fresh: PodLookup,
    ) -> None:
        podref = reserved.holder.podref
        shows_it = await fresh.shows(podref, identity.name)
        verdict = judge_reservation(reserved, await fresh.seen(podref), shows_it=shows_it)
        about = {"name": identity.name, "pod": podref, "reason": verdict.reason}
        if verdict.fate is ReservationAction.RELEASE:
            if await self._writes.release_reservation(reservation):
                self._log.warning("released a leaked reservation", **about)
        elif verdict.fate is ReservationAction.CORRECT and reserved.rightful is not None:
            if await self._writes.correct_reservation(reservation, reserved.rightful):
                self._log.warning("corrected a reservation", **about, now_for=reserved.rightful.podref)
        elif verdict.reason is None and reserved.rightful is not None and reserved.is_outdated:
            self._tell_of_dispute(identity, podref, reserved.rightful.podref)

    def _tell_of_dispute(self, identity: _ReservationVersion, reserved_for: str, held_by: str) -> None:
        """Log a contradiction once: which of the two is wrong cannot be told here."""
        if identity not in self._disputes:
            self._disputes.add(identity)
            self._log.error(
                "an address is reserved for one pod and held by another, and both live: delete one of them",
                name=identity.name,
                reserved_for=reserved_for,
                held_by=held_by,
            )


class _HeldAddresses:
    """The allocations, indexed by the names of their reservations.

    Names are compared as they are written. An address has one name in a network, whereas a name can be read as the
    addresses of two networks.
    """

    def __init__(
        self, snapshot: RepairSnapshot, pods: Mapping[str, PodSeen], released: AbstractSet[PoolEntry]
    ) -> None:
        self.guarded: dict[str, PoolEntry] = {}
        """What living pods hold in guarded pools, by the name of the reservation that it needs."""
        self._by_pod = defaultdict[str, list[IPAddress]](list)
        for held in snapshot.entries():
            address = snapshot.address_of(held)
            if address is None or held in released:
                continue
            self._by_pod[held.holder.podref].append(address)
            belonging = snapshot.pools[held.pool].belonging
            lives = why_orphaned(held.holder, pods.get(held.holder.podref)) is None
            if belonging and belonging.guarded and lives:
                self.guarded[reservation_name(belonging.network_name, address)] = held

    def beside(self, reservation: OverlappingRangeIPReservation) -> Reserved:
        """The reservation with what the pools say of its address."""
        name, holder = reservation.metadata.name, holder_of(reservation)
        rightful = self.guarded.get(name)
        return Reserved(
            holder=holder,
            backed=any(
                may_be_reservation_of(name, address) for address in self._by_pod.get(holder.podref, ())
            ),
            rightful=rightful.holder if rightful else None,
        )


def _identity(reservation: OverlappingRangeIPReservation) -> _ReservationVersion:
    metadata = reservation.metadata
    return _ReservationVersion(metadata.name, metadata.uid, metadata.resource_version)
