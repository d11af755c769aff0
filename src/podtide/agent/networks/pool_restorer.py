"""Carries out what `core.networks.restoration` decides: one pool compared with the node's record, and put right by it.

It reads the pods in question, makes the reservations of what is put back, and keeps the record on disk. After a restore of
etcd every node has to be quick with that: all addresses are reserved at once, and one that fails holds up no other.
"""

import asyncio
from collections.abc import Collection

from podtide.agent.networks.address_record import Given, GivenAddresses, PoolKey
from podtide.agent.networks.errors import PASSING
from podtide.agent.networks.pool_object import version_of
from podtide.agent.networks.reservation_objects import ReservationObjects
from podtide.cluster.port import Cluster, NotFound
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import PodSeen, why_orphaned
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.networks.reservations import Key, ReservationRequest, Reservations, ReservationVersion
from podtide.core.networks.restoration import PutBack, RecordedAddress, Restoration
from podtide.core.networks.round import Unanswered
from podtide.core.ranges import IPAddress
from podtide.networks.network import NetworkRange
from podtide.networks.pods import has_ended, uids_of
from podtide.resources.ip_pool import IPPool
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger


class PoolRestorer:
    """One pool beside the record of what sandboxes were given of it."""

    def __init__(  # noqa: PLR0913 - which pool, what is known of it, and what it runs in
        self,
        cluster: Cluster,
        pool: PoolKey,
        given: GivenAddresses,
        objects: ReservationObjects,
        *,
        patience_seconds: float,
        clock: Clock,
        log: Logger,
    ) -> None:
        self.alarms = 0
        """How many addresses were found to be in use twice, perhaps."""
        self._cluster = cluster
        self._pool = pool
        self._given = given
        self.reservations = Reservations()
        self._objects = objects
        self._clock = clock
        self._log = log.bind(pool=pool[1])
        self._put_back: list[RecordedAddress] = []
        """What the copy has and the pool not yet."""
        at = given.went_back_at(pool)
        # Wall clocks are set: by one that was ahead it is just now, and no longer ago than it matters.
        ago = min(max(0.0, clock.wall() - at), patience_seconds) if at is not None else 0.0
        self.state = Restoration(
            is_shared=pool[0],
            patience_seconds=patience_seconds,
            went_back_at=clock.monotonic() - ago if at is not None else None,
        )

    @property
    def has_any(self) -> bool:
        """Whether sandboxes have anything of the pool."""
        return bool(self._given.of(self._pool))

    def recorded(self, sandbox: str, ifname: str) -> list[IPAddress]:
        """What the interface has by the record."""
        return [given.ip for given in self._given.by(self._pool, (sandbox, ifname))]

    # The pool

    async def compare(self, pool: IPPool, copy: PoolCopy) -> None:
        """The pool was read: put into the copy what it lacks of the record."""
        self._hear(version_of(pool))
        recorded = self._given.recorded(self._pool)
        in_question = self.state.pods_in_question(copy, recorded)
        exists = await asyncio.gather(*(self._exists(each.holder) for each in in_question))
        comparison = self.state.compare(
            copy,
            recorded,
            dict(zip((each.place for each in in_question), exists, strict=True)),
            self._clock.monotonic(),
        )
        for each in comparison.confirmed:
            self._given.confirm(self._pool, each.key, each.address)
        self._given.drop(self._pool, [each.key for each in comparison.forgotten])
        self._put_back = []
        await asyncio.gather(*(self._put(copy, each) for each in comparison.put_back))
        if self.state.remove_ghosts(copy, self._clock.monotonic()):
            self._given.note_restored(self._pool)
        self._tell_alarms()

    async def vanished(self) -> None:
        """There is no pool: what can be reserved at least is, so that no other pool gives it."""
        self._hear(0)
        self.state.vanished(has_any=self.has_any)
        for recorded in self._given.recorded(self._pool):
            if (wanted := PutBack(recorded, None).reservation) is not None:
                now = self._clock.monotonic()
                if self.reservations.ask(wanted, now):
                    await self._reserve(wanted)

    def written(self, pool: IPPool) -> None:
        """The copy is what the pool is now."""
        self._given.hear(self._pool, version_of(pool))
        for each in self._put_back:
            self._given.confirm(self._pool, each.key, each.address)
        self._put_back = []

    # The record

    def give(self, holder: Allocation, address: IPAddress, wanted: NetworkRange, *, guarded: bool) -> None:
        """The pool has it for the holder, who is about to be told. Raises what a disk raises."""
        given = Given.of(self._pool, holder, address, wanted, guarded=guarded)
        self._given.note(given)
        self.state.given(given.recorded())

    def release(self, keys: Collection[Key]) -> None:
        """The interfaces have nothing of the pool any more."""
        self._given.drop(self._pool, keys)
        self.state.released(keys)

    # Details

    def _hear(self, version: int) -> None:
        if not self._given.hear(self._pool, version):
            return
        self.reservations.doubt()
        self.state.went_back(self._clock.monotonic())
        self._given.note_back(self._pool, self._clock.wall())
        self._log.warning(
            "a pool went back, as after a restore of etcd: putting back what sandboxes have of it"
        )

    async def _put(self, copy: PoolCopy, put_back: PutBack) -> None:
        recorded, wanted = put_back.recorded, put_back.reservation
        if wanted is not None:
            self.reservations.ask(wanted, self._clock.monotonic(), afresh=True)
            answer = await self._reserve(wanted)
            if answer is None:
                self.state.refused(copy, put_back)
                return
            if isinstance(answer, Unanswered):
                self.state.unanswered(copy, recorded)
                return
        self.state.put(copy, put_back)
        self._put_back.append(recorded)
        self._log.warning(
            "putting back an address that a sandbox has and its pool lacks",
            address=str(recorded.address),
            pod=recorded.holder.podref,
            sandbox=recorded.holder.id,
            instead_of=put_back.instead_of,
        )

    async def _reserve(self, wanted: ReservationRequest) -> ReservationVersion | Unanswered | None:
        try:
            version = await self._objects.reserve(wanted)
        except PASSING as error:
            return Unanswered(error, will_pass=True)
        if version is None:
            self.reservations.refused(wanted, self._clock.monotonic())
        else:
            self.reservations.seen(wanted, version, self._clock.monotonic())
        return version

    async def _exists(self, holder: Allocation) -> bool | None:
        """Whether the holder's pod exists, by a fresh read; None when the cluster does not answer."""
        namespace, _, name = holder.podref.partition("/")
        try:
            pod = await self._cluster.get(Pod, name, namespace)
        except NotFound:
            return why_orphaned(holder, None) is None
        except PASSING:
            return None
        return why_orphaned(holder, PodSeen(uids_of(pod), has_ended(pod))) is None

    def _tell_alarms(self) -> None:
        alarms, self.state.alarms = self.state.alarms, []
        for recorded, reason in alarms:
            self.alarms += 1
            self._log.error(
                "an address of a sandbox may be in use twice: delete one of the two pods",
                address=str(recorded.address),
                pod=recorded.holder.podref,
                sandbox=recorded.holder.id,
                reason=reason,
            )
