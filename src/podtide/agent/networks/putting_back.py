"""What sandboxes of this node have of one pool, put back where the pool lacks it (see `core.networks.recorded_addresses`).

Whenever the pool is read, it is held against the record before anything is decided by it. A pool in an earlier version
than was heard of before went back with the whole cluster. Then all nodes do the same at the same time, and until they
have, what a shared pool shows as free may be somebody's: nothing new is given of it for a moment (`is_held_up`). So every
node hurries: all addresses are reserved at once, and one whose reservation does not come about holds up no other.

Entries of this node's pods that no sandbox has are ghosts: given up since the backup, and back with it. They are not
given again, because another node may have given the address since; and who does puts it back over them. Those that
nobody claimed in as long as repair would wait are struck off.
"""

import asyncio
from collections.abc import Collection

from msgspec import structs

from podtide.agent.networks.address_record import Given, GivenAddresses, Key, PoolKey
from podtide.agent.networks.errors import PASSING
from podtide.agent.networks.pool_copy import PoolCopy
from podtide.agent.networks.reserving import Reserving
from podtide.cluster.port import Cluster, NotFound
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import PodSeen, why_orphaned
from podtide.core.networks.recorded_addresses import Standing, is_of_one_pod, standing_of
from podtide.core.ranges import IPAddress
from podtide.networks.network import NetworkRange
from podtide.networks.pods import has_ended, uids_of
from podtide.resources.ip_pool import IPPool
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_HOLD_SECONDS = 30.0
"""Longer than it takes to find a server again that was away (`OUTAGE_CAP_SECONDS`), and two requests without an answer."""
_LOOK_AGAIN_SECONDS = 20.0
_RETRY_SECONDS = 1.0


class PuttingBack:
    """The record of one pool's addresses, held against the pool."""

    def __init__(  # noqa: PLR0913 - which pool, what of it is on record, and what it runs in
        self,
        cluster: Cluster,
        pool: PoolKey,
        given: GivenAddresses,
        reserving: Reserving,
        *,
        patience_seconds: float,
        clock: Clock,
        log: Logger,
    ) -> None:
        self.alarms = 0
        self._cluster = cluster
        self._pool = pool
        self._given = given
        self._reserving = reserving
        self._patience_seconds = patience_seconds
        self._clock = clock
        self._log = log.bind(pool=pool[1])
        self._put_back: list[Given] = []
        """What the copy has and the pool not yet."""
        self._missing_since: dict[tuple[Key, str], float] = {}
        self._said: set[tuple[Key, str]] = set()
        self._leaving: set[Key] = set()
        """The interfaces whose DEL has come, and is not carried out yet."""
        self._went_back_at = self._known_to_have_gone_back_at()
        """Since when there may be ghosts; None when there are none."""
        self._asked: set[tuple[str, str]] = set()
        """Pods, and their interfaces, that asked while there were."""
        self._is_settled = True
        self._has_failed = False
        """Whether something could not be found out, or reserved, when the pool was last read."""

    @property
    def has_any(self) -> bool:
        """Whether sandboxes have anything of the pool."""
        return bool(self._given.of(self._pool))

    @property
    def is_held_up(self) -> bool:
        """Whether other nodes may not have put back yet what their sandboxes have."""
        at = self._went_back_at
        return at is not None and self._pool[0] and self._clock.monotonic() < at + _HOLD_SECONDS

    @property
    def look_again_seconds(self) -> float | None:
        """In how many seconds the pool has to be held against the record again; None when there is no need."""
        if self._has_failed:
            return _RETRY_SECONDS
        return None if self._is_settled and self._went_back_at is None else _LOOK_AGAIN_SECONDS

    async def compare(self, copy: PoolCopy) -> None:
        """The pool was read: put into the copy what it lacks of the record."""
        self._hear(copy.pool)
        self._put_back, self._is_settled, self._has_failed = [], True, False
        given = self._given.of(self._pool)
        outcomes = await asyncio.gather(*(self._settle(copy, each) for each in given), return_exceptions=True)
        for each, outcome in zip(given, outcomes, strict=True):
            if isinstance(outcome, PASSING):
                self._has_failed = True
                if copy.allocations.holder(each.ip) is None:
                    copy.allocations.withhold(each.ip)
            elif outcome is not None:
                raise outcome
        self._strike_off_ghosts(copy)

    async def vanished(self) -> None:
        """There is no pool: at least what can be reserved is, so that no other pool gives it."""
        self._note_if_back(self._given.hear(self._pool, 0))
        self._is_settled = not self.has_any
        for given in self._given.of(self._pool):
            if given.guarded:
                await self._reserving.reserve(given.ip, given.holder, given.wanted, None)

    def written(self, pool: IPPool) -> None:
        """The copy is what the pool is now."""
        self._given.hear(self._pool, _version(pool))
        for given in self._put_back:
            self._given.confirm(given)
        self._put_back = []

    def give(self, holder: Allocation, address: IPAddress, wanted: NetworkRange, *, guarded: bool) -> None:
        """The pool has it for the holder, who is about to be told. Raises what a disk raises."""
        self._leaving.discard((holder.id, holder.ifname))
        self._given.note(
            Given(
                pool=self._pool,
                address=str(address),
                holder=structs.replace(holder, earlier=()),
                guarded=guarded,
                network_name=wanted.network_name,
                configuration_name=wanted.configuration_name,
                range=str(wanted.addresses.network),
                slice_size=wanted.slice_size,
                further=wanted.further,
            )
        )

    def leave(self, key: Key) -> None:
        """The interface's DEL has come. However long it takes to be carried out, nothing is taken from others for it."""
        self._leaving.add(key)

    def release(self, keys: Collection[Key]) -> None:
        """The interfaces have nothing of the pool any more."""
        self._given.drop(self._pool, keys)
        self._leaving.difference_update(keys)

    def recorded(self, sandbox: str, ifname: str) -> list[IPAddress]:
        """What the interface has by the record."""
        return [given.ip for given in self._given.by(self._pool, (sandbox, ifname))]

    def is_ghost(self, address: IPAddress, there: Allocation) -> bool:
        """Whether the pool has this for a pod of this node that gave it up after the backup."""
        if self._went_back_at is None:
            return False
        self._asked.add((there.podref, there.ifname))
        return not self._is_recorded(address, there)

    # Details

    def _known_to_have_gone_back_at(self) -> float | None:
        """When an agent before this one saw the pool go back, by the monotonic clock; None if that is over."""
        at = self._given.went_back_at(self._pool)
        ago = self._clock.wall() - at if at is not None else -1.0
        return self._clock.monotonic() - ago if 0.0 <= ago < self._patience_seconds else None

    def _hear(self, pool: IPPool) -> None:
        self._note_if_back(self._given.hear(self._pool, _version(pool)))

    def _note_if_back(self, went_back: bool) -> None:  # noqa: FBT001 - what `hear` answered
        if not went_back:
            return
        self._reserving.doubt()
        self._went_back_at = self._clock.monotonic()
        self._given.note_back(self._pool, self._clock.wall())
        self._missing_since.clear()
        self._log.warning(
            "a pool went back, as after a restore of etcd: putting back what sandboxes have of it"
        )

    async def _settle(self, copy: PoolCopy, given: Given) -> None:
        address, place = given.ip, (given.key, given.address)
        if address not in copy.allocations.range.network:
            self._alarm(given, f"is no part of the node's slice {copy.allocations.range} any more")
            return
        there = copy.allocations.holder(address)
        went_back = self._given.is_from_before(given)
        is_alive = there is not None or went_back or await self._is_alive(given.holder)
        now = self._clock.monotonic()
        since = self._missing_since.setdefault(place, now) if there is None else now
        standing = standing_of(
            given.holder,
            there,
            went_back=went_back,
            is_alive=is_alive,
            is_leaving=given.key in self._leaving,
            missing_seconds=now - since,
            patience_seconds=self._patience_seconds,
        )
        if there is not None or standing is not Standing.WITHHELD:
            self._missing_since.pop(place, None)
        match standing:
            case Standing.HELD:
                self._given.confirm(given)
            case Standing.PUT_BACK:
                await self._put(copy, given, there)
            case Standing.CONTESTED:
                assert there is not None
                self._alarm(given, f"is held for {there.podref} by the pool")
            case Standing.WITHHELD:
                self._is_settled = False
                copy.allocations.withhold(address)
            case Standing.FORGOTTEN:
                self._given.drop(self._pool, [given.key])
            case Standing.LEFT:
                pass

    async def _put(self, copy: PoolCopy, given: Given, there: Allocation | None) -> None:
        address = given.ip
        # Whatever took the entry from the pool, a restore of etcd or repair, has taken the reservation too.
        if given.guarded and not await self._reserving.reserve(
            address, given.holder, given.wanted, there, afresh=True
        ):
            self._alarm(given, "is reserved for another pod")
            if there is None:
                copy.allocations.withhold(address)
            return
        before = there if there is not None and is_of_one_pod(given.holder, there) else None
        copy.set_holder(address, given.holder.taking_over(before))
        self._put_back.append(given)
        self._log.warning(
            "putting back an address that a sandbox has and its pool lacks",
            address=given.address,
            pod=given.holder.podref,
            sandbox=given.holder.id,
            instead_of=there.podref if there is not None and before is None else "",
        )

    def _alarm(self, given: Given, words: str) -> None:
        """Say it once, however long it lasts."""
        self._is_settled = False
        if (given.key, given.address) in self._said:
            return
        self._said.add((given.key, given.address))
        self.alarms += 1
        self._log.error(
            "an address of a sandbox may be had twice: delete the pod of one of them",
            address=given.address,
            pod=given.holder.podref,
            sandbox=given.holder.id,
            reason=words,
        )

    async def _is_alive(self, holder: Allocation) -> bool:
        """Whether the holder's pod is there, by a fresh read."""
        namespace, _, name = holder.podref.partition("/")
        try:
            pod = await self._cluster.get(Pod, name, namespace)
        except NotFound:
            return why_orphaned(holder, None) is None
        return why_orphaned(holder, PodSeen(uids_of(pod), has_ended(pod))) is None

    def _strike_off_ghosts(self, copy: PoolCopy) -> None:
        at = self._went_back_at
        if at is None or self._clock.monotonic() < at + self._patience_seconds:
            return
        pods = self._asked | {
            (given.holder.podref, given.holder.ifname) for given in self._given.of(self._pool)
        }
        for address, there in tuple(copy.allocations):
            if (there.podref, there.ifname) in pods and not self._is_recorded(address, there):
                copy.set_holder(address, None)
        self._went_back_at = None
        self._asked.clear()

    def _is_recorded(self, address: IPAddress, there: Allocation) -> bool:
        return any(
            given.ip == address and is_of_one_pod(given.holder, there) for given in self._given.of(self._pool)
        )


def _version(pool: IPPool) -> int:
    version = pool.metadata.resource_version
    return int(version) if version.isdecimal() else 0
