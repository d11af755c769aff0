"""The Lease beside a node's own pool: it tells people and other programs who writes the pool.

Correctness does not depend on it (every write of the pool has the version it was decided from as precondition), so a
Lease that cannot be taken is logged, and nothing waits for it. Its duration is long, because thousands of nodes have
several each: it is renewed along with writes of the pool that assign addresses, and never by itself. Whereabouts' plugin
does wait for it: a node's slice is used by podtide or by Whereabouts, not by both at a time.

It is annotated with the node, so that the controller, when it deletes what a removed node left, can tell a pool's Lease
from one of another program that happens to have the name of a pool.
"""

import math

from msgspec import structs

from podtide.cluster.lease_record import LeaseClaim, held, released
from podtide.cluster.port import AlreadyExists, Cluster, ClusterError
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import AGENT_MANAGER, NODE_ANNOTATION
from podtide.resources.timestamps import InvalidTimestamp, to_micro_time, to_wall_seconds
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

TERM_SECONDS = 3600.0


class PoolLease:
    """The Lease of one pool, for this node."""

    def __init__(
        self, cluster: Cluster, place: ObjectMeta, holder: str, *, clock: Clock, log: Logger
    ) -> None:
        self._cluster = cluster
        self._place = ObjectMeta(
            name=place.name, namespace=place.namespace, annotations={NODE_ANNOTATION: holder}
        )
        self._holder = holder
        self._clock = clock
        self._log = log
        self._held: Lease | None = None
        self._due_at = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether it is to be taken, or renewed because half of its term is over."""
        return self._clock.monotonic() >= self._due_at

    async def keep(self) -> None:
        """Along with a write of the pool that gives an address: take the Lease, or renew it."""
        self._due_at = self._clock.monotonic() + TERM_SECONDS / 2
        try:
            self._held = await self._take()
        except ClusterError as error:
            self._held = None  # whatever it is now, the next time it is read first
            self._log.warning(
                "the Lease of a pool could not be taken", lease=self._place.name, error=str(error)
            )

    async def give_up(self) -> None:
        """Release the Lease: the agent stops, and writes the pool no more."""
        if self._held is None:
            return
        lease, self._held = self._held, None
        self._due_at = -math.inf
        try:
            await self._cluster.replace(
                structs.replace(lease, spec=released(lease.spec)), manager=AGENT_MANAGER
            )
        except ClusterError as error:
            self._log.warning(
                "the Lease of a pool stays until it ends", lease=self._place.name, error=str(error)
            )

    async def _take(self) -> Lease | None:
        if self._held is not None:
            renewed = self._spec(self._held.spec, self._held.spec.acquire_time or "")
            return await self._cluster.replace(
                structs.replace(self._held, spec=renewed), manager=AGENT_MANAGER
            )
        wall = self._clock.wall()
        try:
            fresh = Lease(metadata=self._place, spec=self._spec(LeaseSpec(), to_micro_time(wall)))
            return await self._cluster.create(fresh, manager=AGENT_MANAGER)
        except AlreadyExists:
            there = await self._cluster.get(Lease, self._place.name, self._place.namespace)
        if there.spec.holder_identity not in ("", self._holder) and _ends_at(there.spec) > wall:
            self._log.warning(
                "another writer holds the Lease of a pool; writes test the pool's version all the same",
                lease=self._place.name,
                holder=there.spec.holder_identity,
            )
            return None
        marks = {**there.metadata.annotations, **self._place.annotations}
        taken = structs.replace(
            there,
            metadata=structs.replace(there.metadata, annotations=marks),
            spec=self._spec(there.spec, to_micro_time(wall)),
        )
        return await self._cluster.replace(taken, manager=AGENT_MANAGER)

    def _spec(self, before: LeaseSpec, acquired: str) -> LeaseSpec:
        changes_hands = before.holder_identity != self._holder
        claim = LeaseClaim(self._holder, before.lease_transitions + changes_hands, acquired)
        return held(before, claim, TERM_SECONDS, self._clock.wall())


def _ends_at(spec: LeaseSpec) -> float:
    """When its holder's term ends by the wall clock; long ago when that cannot be told."""
    try:
        return to_wall_seconds(spec.renew_time or "") + (spec.lease_duration_seconds or 0)
    except InvalidTimestamp:
        return -math.inf
