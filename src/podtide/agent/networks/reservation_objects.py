"""One address reserved across all pools: an OverlappingRangeIPReservation, whose name is the address.

Creating it is the reservation. An object that exists already belongs to another pod, unless it names the same sandbox, or
the same pod by uid: then it was left by a call whose answer was lost, or by a crash, and is taken over.

Each is annotated with the node. No program reads that; admission rules of the API server use it to refuse writes by other
nodes' agents.
"""

import asyncio

from msgspec import structs

from podtide.cluster.listing import get_if_there
from podtide.cluster.port import AlreadyExists, Cluster, Conflict, NotFound
from podtide.core.networks.allocations import Allocation, is_same_holder
from podtide.core.networks.reservations import Reservation, ReservationRequest, ReservationVersion
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import AGENT_MANAGER, NODE_ANNOTATION
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)

_MOST_IN_FLIGHT = 16
"""Of one node. More make no API server quicker, and each takes a connection, whose TLS handshake costs more than the call."""


class ReservationObjects:
    """The reservations of one namespace, written by one node. What the cluster raises is the caller's to handle."""

    def __init__(self, cluster: Cluster, namespace: str, node: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._node = node
        self._in_flight = asyncio.Semaphore(_MOST_IN_FLIGHT)

    async def reserve(self, wanted: ReservationRequest) -> ReservationVersion | None:
        """Create the object, or take it over from an earlier sandbox of the pod; None when it is another pod's."""
        async with self._in_flight:
            try:
                made = await self._cluster.create(
                    self._reservation(wanted.name, wanted.holder), manager=AGENT_MANAGER
                )
            except AlreadyExists:
                return await self._take_over(wanted.name, wanted.holder, wanted.before)
            return _version(made)

    async def delete(self, reserved: Reservation) -> None:
        """Delete the object, if it is as it was seen; if it is not, or was not seen, if it is still the holder's."""
        async with self._in_flight:
            await self._give_up(reserved.name, reserved.version, reserved.holder)

    async def _give_up(self, name: str, seen: ReservationVersion | None, holder: Allocation) -> None:
        if seen is not None and await self._delete(name, seen):
            return
        there = await self._find(name)
        if there is None or not _is_allocated_to(there, holder):
            return
        if there.spec.container_id not in ("", holder.id):
            return  # a newer sandbox of the pod has taken it over: it goes with that one
        if not await self._delete(name, _version(there)):
            raise Conflict(f"reservation {name} is being changed by another writer: try again")

    async def _delete(self, name: str, seen: ReservationVersion) -> bool:
        """Delete it in the version that was seen. Returns whether it is gone; False when another writer changed it since."""
        place = (OverlappingRangeIPReservation, name, self._namespace)
        try:
            await self._cluster.delete(*place, uid=seen.uid, resource_version=seen.resource_version)
        except NotFound:
            return True
        except Conflict:
            return False
        return True

    async def _take_over(
        self, name: str, holder: Allocation, before: Allocation | None
    ) -> ReservationVersion | None:
        there = await self._find(name)
        if there is None:
            raise Conflict(f"reservation {name} was there a moment ago, and is gone: try again")
        if not is_same_holder(_holder_of(there), holder) and not (
            before is not None and _is_allocated_to(there, before)
        ):
            return None
        wanted = self._reservation(name, holder).spec
        if there.spec != wanted:
            # It names an earlier sandbox, and leak repair and people rely on what it names.
            there = await self._cluster.replace(structs.replace(there, spec=wanted), manager=AGENT_MANAGER)
        return _version(there)

    async def _find(self, name: str) -> OverlappingRangeIPReservation | None:
        return await get_if_there(self._cluster, OverlappingRangeIPReservation, name, self._namespace)

    def _reservation(self, name: str, holder: Allocation) -> OverlappingRangeIPReservation:
        return OverlappingRangeIPReservation(
            metadata=ObjectMeta(
                name=name, namespace=self._namespace, annotations={NODE_ANNOTATION: self._node}
            ),
            spec=OverlappingRangeIPReservationSpec(
                podref=holder.podref, ifname=holder.ifname, container_id=holder.id, pod_uid=holder.pod_uid
            ),
        )


def _version(reservation: OverlappingRangeIPReservation) -> ReservationVersion:
    return ReservationVersion(reservation.metadata.uid, reservation.metadata.resource_version)


def _holder_of(reservation: OverlappingRangeIPReservation) -> Allocation:
    spec = reservation.spec
    return Allocation(spec.container_id, spec.podref, spec.ifname, spec.pod_uid)


def _is_allocated_to(reservation: OverlappingRangeIPReservation, holder: Allocation) -> bool:
    """Whether it goes with an allocation to this holder. Whereabouts names no more than the pod in it."""
    found = _holder_of(reservation)
    names_the_pod_alone = not found.id and not found.pod_uid and found.ifname in ("", holder.ifname)
    return is_same_holder(found, holder) or (names_the_pod_alone and found.podref == holder.podref)
