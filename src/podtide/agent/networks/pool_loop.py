"""The loop of one pool: it reads the pool, has a round decided, and writes.

While a write is under way, further ADDs and DELs gather; then they are decided together (`core.networks.round`) and written
together. An answer leaves only after the write was acknowledged.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from podtide.agent.networks.counts import Counts
from podtide.agent.networks.errors import PASSING, NoSlice, Reread, StorageFailed
from podtide.agent.networks.pool_lease import PoolLease
from podtide.agent.networks.pool_location import PoolLocation
from podtide.agent.networks.pool_object import copy_of, with_entries
from podtide.agent.networks.pool_restorer import PoolRestorer
from podtide.agent.networks.requests import Adding, Mending, PoolRequest, Releasing
from podtide.agent.networks.reservation_objects import ReservationObjects
from podtide.agent.port import NotReady, Overtaken
from podtide.cluster.backoff import Backoff
from podtide.cluster.port import Cluster, ClusterError, Conflict, NotFound
from podtide.core.errors import PodtideError
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.networks.reservations import Key, Reservation, ReservationRequest, ReservationVersion
from podtide.core.networks.round import AddRequest, DelRequest, Placed, ReservationAnswer, Round, Unanswered
from podtide.core.ranges import AddressRange, IPAddress
from podtide.networks.network import NetworkRange
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import AGENT_MANAGER, NODE_UID_ANNOTATION
from podtide.runtime.disk import DiskFull
from podtide.runtime.runtime import Runtime

T = TypeVar("T")

AnyRequest: TypeAlias = PoolRequest[Any]

_WENT_BACK = "the cluster went back, as after a restore of etcd: waiting until every node has put back what its sandboxes have"
_ENDED = "the agent stops before this was carried out: try again when it is back"

_BACKOFF = Backoff(floor_seconds=0.005, cap_seconds=1.0)


class PoolLoop:
    """One pool: the requests that wait for it, and the copy that they are decided on."""

    def __init__(  # noqa: PLR0913 - which pool, what is known of it, and what it runs in
        self,
        cluster: Cluster,
        location: PoolLocation,
        wanted: NetworkRange,
        objects: ReservationObjects,
        restorer: PoolRestorer,
        *,
        lease: Callable[[ObjectMeta], PoolLease] | None,
        is_ours: Callable[[Allocation], bool],
        is_watching: Callable[[], bool],
        runtime: Runtime,
        counts: Counts,
    ) -> None:
        self.wanted = wanted
        """A range that the pool is of; of several networks' configurations, the first that was seen."""
        self.trouble = ""
        """Why the last attempt failed; "" when it did not."""
        self._cluster = cluster
        self._location = location
        self._reservations = restorer.reservations
        self._objects = objects
        self._restorer = restorer
        self._make_lease = lease
        self._lease: PoolLease | None = None
        self._is_ours = is_ours
        self._is_watching = is_watching
        self._clock = runtime.clock
        self._randomness = runtime.randomness
        self._counts = counts
        self._log = runtime.log.bind(pool=location.name)
        self._pool: IPPool | None = None
        """The object that the copy is of."""
        self._copy: PoolCopy | None = None
        self._pool_uid = ""
        """Of the object that was last found."""
        self._may_have_gone_back = False
        """Whether the cluster may have, since the copy was made."""
        self._is_contended = False
        """Whether others wrote the pool since this node did: then it is read before it is decided by."""
        self._line: list[AnyRequest] = []
        self._under_way: list[AnyRequest] = []
        self._has_ended = False
        self._working: asyncio.Task[None] | None = None
        self._leasing: asyncio.Task[None] | None = None

    async def add(self, adding: Adding) -> Placed:
        """The address that the interface has from now on. It is written when this returns."""
        while twin := next((each for each in self._all() if _is_twin(each, adding)), None):
            await asyncio.wait({twin.answer})
        return await self._stand_in_line(adding)

    async def release(self, releasing: Releasing) -> tuple[IPAddress, ...]:
        """Free what the interface holds, and answer it. It is written, and its reservations are deleted."""
        self._restorer.state.leave(releasing.key)
        freed = await self._stand_in_line(releasing)
        await self._give_up_reservations(releasing.key)
        return freed

    async def held_by(self, key: Key, wanted: NetworkRange) -> tuple[IPAddress, ...]:
        """What the interface holds, by the copy if that knows of any, else by the pool."""
        copy = self._copy
        if copy is None or not copy.holds(key):
            pool = await self._location.find(wanted)
            copy = copy_of(pool) if pool is not None else None
        return tuple(copy.allocations.held_by(*key)) if copy is not None else ()

    async def given_by(self, configuration: str, wanted: NetworkRange, node_uid: str) -> set[Key]:
        """The interfaces that have an address by this configuration, as a node's own pool tells.

        None if the pool is not this very Node's, by its uid: what is in it may be of another machine of that name.
        """
        pool, copy = self._pool, self._copy
        if pool is None or copy is None:
            pool = await self._location.find(wanted)
            copy = copy_of(pool) if pool is not None else None
        if pool is None or copy is None or pool.metadata.annotations.get(NODE_UID_ANNOTATION) != node_uid:
            return set()
        return {
            (sandbox, holder.ifname)
            for _, holder in copy.allocations
            if holder.configuration == configuration
            for sandbox in holder.sandboxes
        }

    async def mend(self) -> float | None:
        """Put back what sandboxes have and the pool lacks. Answers in how many seconds to look again, if at all."""
        return await self._stand_in_line(Mending(self.wanted))

    def doubt(self) -> None:
        """The cluster may have gone back: the pool is read before it is decided by, and no reservation counts as seen."""
        self._may_have_gone_back = True
        self._reservations.doubt()

    def knows(self, key: Key) -> bool:
        """Whether the interface has anything here, as far as memory goes."""
        return (
            (self._copy is not None and self._copy.holds(key))
            or self._reservations.knows(key)
            or bool(self._restorer.recorded(*key))
            or any(each.key == key for each in self._all())
        )

    def overtake(self, key: Key) -> None:
        """The interface is gone: ADDs that wait for it fail."""
        for each in self._all():
            if each.key == key and isinstance(each, Adding):
                each.fail(
                    Overtaken(f"sandbox {key[0]} ({key[1]}) was deleted while its ADD waited for an address")
                )

    def abandon(self) -> None:
        """The agent ends: requests that wait are told, and nothing more is written but what `stop` does."""
        self._has_ended = True
        for task in (self._working, self._leasing):
            if task is not None:
                task.cancel()
        for each in self._all():
            each.fail(NotReady(_ENDED))

    async def stop(self) -> None:
        """Say that this node writes the pool no longer."""
        if self._lease is not None:
            await self._lease.give_up()

    # The line

    def _all(self) -> Iterable[AnyRequest]:
        return (*self._under_way, *self._line)

    async def _stand_in_line(self, request: PoolRequest[T]) -> T:
        if self._has_ended:
            raise NotReady(_ENDED)
        self._line.append(request)
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await request.answer

    async def _work(self) -> None:
        """Carry out what stands in the line, all of it at once, until it is empty."""
        failures = 0
        while self._line:
            self._under_way, self._line = [each for each in self._line if not each.is_over], []
            again: list[AnyRequest] = []
            trouble: Exception | None = None
            try:
                if self._under_way:
                    again = await self._commit(self._under_way)
            except PASSING as error:
                again, trouble = self._under_way, error
                self.trouble = str(error)
                self._copy = None
            except Exception as error:  # noqa: BLE001 - requests that wait must be told, whatever it is
                self._copy = None
                self._fail_all(error)
            self._line = [*again, *self._line]
            self._under_way = []
            failures = failures + 1 if again else 0
            if again:
                self._counts.retries += 1
                await asyncio.sleep(_BACKOFF.delay_seconds(failures, self._randomness, trouble))
        self._working = None

    def _fail_all(self, error: Exception) -> None:
        told = error
        if isinstance(error, ClusterError):
            told = StorageFailed(f"IPPool {self._location.name} could not be read or written: {error}")
        for each in self._under_way:
            each.fail(told)

    # One round

    async def _commit(self, requests: list[AnyRequest]) -> list[AnyRequest]:
        """Carry out these requests, and answer those that have to be tried again."""
        addings = [each for each in requests if isinstance(each, Adding)]
        releasings = [each for each in requests if isinstance(each, Releasing)]
        mendings = [each for each in requests if isinstance(each, Mending)]
        is_fresh = bool(mendings) or self._must_read(addings, releasings)
        if is_fresh:
            await self._read((addings or releasings or mendings)[0].wanted, addings)
        elif self._copy is not None:
            self._copy.restore(self._reservations.expire_refusals(self._clock.monotonic()))
        pool, copy = self._pool, self._copy
        if pool is None or copy is None:
            for releasing in releasings:
                self._reservations.leave(releasing.key, {})
            self._answer(releasings, [() for _ in releasings], mendings)
            return []
        asked = {self._add_request(pool, copy, each): each for each in addings if not each.is_over}
        decided = Round(
            copy,
            self._reservations,
            self._restorer.state,
            list(asked),
            [DelRequest(each.key, _naming(each)) for each in releasings],
            is_ours=self._is_ours,
            is_fresh=is_fresh,
            now=self._clock.monotonic(),
        )
        while decided.wanted:
            answers = await self._reserve(decided.wanted)
            over = {each.key for each in addings if each.is_over}
            decided.take(answers, over=over, now=self._clock.monotonic())
        if decided.reread:
            raise Reread(decided.reread)
        self._tell_failed(decided, asked)
        if copy.is_changed:
            await self._write(pool, copy, gives_addresses=bool(decided.placed))
        if decided.placed and (self._may_have_gone_back or not self._is_watching()):
            # An API server that is stopped for a restore ends its watches: the reservations may be lost by now.
            raise Reread("the cluster may have gone back since the addresses were reserved")
        is_held_up = self._restorer.state.is_held_up(self._clock.monotonic())
        self.trouble = decided.trouble or (_WENT_BACK if is_held_up and decided.again else "")
        self._answer(releasings, decided.freed, mendings)
        for add, placed in decided.placed:
            self._tell(asked[add], placed)
        return [asked[add] for add in decided.again]

    def _add_request(self, pool: IPPool, copy: PoolCopy, adding: Adding) -> AddRequest:
        refusal = self._why_unusable(pool, adding)
        bounds = adding.wanted.addresses if refusal else self._bounds(copy, adding.wanted)
        return AddRequest(adding.holder, bounds, _naming(adding), refusal)

    def _bounds(self, copy: PoolCopy, wanted: NetworkRange) -> AddressRange:
        """The addresses of the pool that may be handed out by a configuration."""
        addresses = wanted.addresses
        return addresses if self._location.is_shared else addresses.part(copy.allocations.range.network)

    def _capacity(self, copy: PoolCopy) -> int | None:
        """How many addresses pods could have of the pool; None if its range is not of the configuration any more."""
        is_of_it = copy.allocations.range.network.network_address in self.wanted.addresses.network
        return self._bounds(copy, self.wanted).capacity if is_of_it else None

    async def _reserve(self, wanted: Sequence[ReservationRequest]) -> list[ReservationAnswer]:
        outcomes = await asyncio.gather(
            *(self._objects.reserve(each) for each in wanted), return_exceptions=True
        )
        return [_answer(each, outcome) for each, outcome in zip(wanted, outcomes, strict=True)]

    def _tell_failed(self, decided: Round, asked: dict[AddRequest, Adding]) -> None:
        for add, error in decided.failed:
            asked[add].fail(error)
        for add, address in decided.contested:
            self._log.warning(
                "an allocated address is reserved for another pod; giving another one",
                address=str(address),
                pod=add.holder.podref,
            )

    def _tell(self, adding: Adding, placed: Placed) -> None:
        """Answer an ADD, once it is on record."""
        self._reservations.written(adding.key, placed.address)
        try:
            self._restorer.give(adding.holder, placed.address, adding.wanted, guarded=adding.guarded)
        except DiskFull as error:
            adding.fail(StorageFailed(f"{placed.address} could not be recorded on the node: {error}"))
        adding.succeed(placed)

    def _answer(
        self,
        releasings: Sequence[Releasing],
        freed: Sequence[tuple[IPAddress, ...]],
        mendings: Sequence[Mending],
    ) -> None:
        self._restorer.release([each.key for each in releasings])
        for releasing, addresses in zip(releasings, freed, strict=True):
            releasing.succeed(addresses)
        for mending in mendings:
            mending.succeed(self._restorer.state.look_again_seconds)

    # Reading and writing

    def _must_read(self, addings: list[Adding], releasings: list[Releasing]) -> bool:
        """Whether a request would be answered from the cached copy without a write that proves the copy is not stale.

        A write fails with a conflict if the copy is stale. No write follows for an ADD that is refused or has its
        address already, nor for a DEL that finds nothing. (That nothing is left for an ADD shows only later.)
        """
        pool, copy = self._pool, self._copy
        if pool is None or copy is None or self._may_have_gone_back:
            return True
        if not all(self._why_unusable(pool, each) is None for each in addings):
            return True
        return self._location.is_shared and (
            self._is_contended
            or any(copy.holds(each.key) for each in addings)
            or not all(copy.holds(each.key) for each in releasings)
        )

    async def _read(self, wanted: NetworkRange, addings: list[Adding]) -> None:
        """Read the pool, and compare it with the record. Without one, `_copy` is None and ADDs have been told why."""
        self._may_have_gone_back = False
        pool = await self._find_or_make(wanted, addings)
        uid = pool.metadata.uid if pool is not None else ""
        if uid != self._pool_uid:
            # With a deleted pool go the reservations of its addresses: what was seen of these does not count.
            self._reservations.doubt()
        self._pool_uid = uid
        if pool is None:
            self._pool = self._copy = None
            await self._restorer.vanished()
            return
        if self._copy is not None and self._pool == pool and self._restorer.state.look_again_seconds is None:
            self._is_contended = False
            return
        self._pool, self._copy = pool, copy_of(pool)
        copy = self._copy
        await self._restorer.compare(pool, copy)
        self._reservations.pool_read(
            lambda sandbox, ifname: (
                *copy.allocations.held_by(sandbox, ifname),
                *self._restorer.recorded(sandbox, ifname),
            )
        )
        self._reservations.expire_refusals(self._clock.monotonic())
        copy.withhold(self._reservations.withheld())

    async def _find_or_make(self, wanted: NetworkRange, addings: list[Adding]) -> IPPool | None:
        pool = await self._location.find(wanted)
        begins = bool(addings) and (pool is None or not pool.spec.allocations)
        if not begins and (pool is not None or not self._restorer.has_any):
            return pool
        try:
            if pool is None:
                return await self._location.make(wanted)
            await self._location.require_beginning(wanted)
        except NoSlice as error:
            for adding in addings:
                adding.fail(error)
            return None  # of which no interface holds anything
        return pool

    def _why_unusable(self, pool: IPPool, adding: Adding) -> PodtideError | None:
        try:
            self._location.require_usable(pool, adding.wanted, adding.node_uid)
        except PodtideError as error:
            return error
        return None

    async def _write(self, pool: IPPool, copy: PoolCopy, *, gives_addresses: bool) -> None:
        if gives_addresses:
            self._keep_lease(pool.metadata)
        try:
            written = await self._cluster.replace(
                with_entries(pool, copy, self._capacity(copy)), manager=AGENT_MANAGER
            )
        except Conflict:
            self._is_contended = True
            self._counts.conflicts += 1
            raise
        except NotFound as error:
            raise Reread(str(error)) from error
        self._counts.writes += 1
        self._pool = written
        copy.written()
        self._restorer.written(written)

    async def _give_up_reservations(self, key: Key) -> None:
        """Delete what the interface left reserved. StorageFailed when that fails: the DEL is to be repeated."""
        leaving = self._reservations.leaving(key)
        outcomes = await asyncio.gather(
            *(self._give_up(key, address, each) for address, each in leaving.items()), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, ClusterError):
                raise StorageFailed(f"a reservation could not be deleted: {outcome}") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def _give_up(self, key: Key, address: IPAddress, reserved: Reservation) -> None:
        if self._reservations.leaving(key).get(address) is not reserved:
            return  # another DEL of the interface was quicker, or its pod's ADD has it again
        await self._objects.delete(reserved)
        if self._reservations.given_up(key, address, reserved) and self._copy is not None:
            self._copy.restore([address])

    def _keep_lease(self, pool: ObjectMeta) -> None:
        """Take or renew the Lease, concurrently with a write that assigns addresses: nothing waits for the Lease.

        A write that only frees addresses does not take it. A network that was given back to Whereabouts still has pods
        with podtide's addresses, and Whereabouts' plugin on this node would wait for the Lease in vain.
        """
        if self._make_lease is None:
            return
        if self._lease is None:
            self._lease = self._make_lease(pool)
        if self._lease.is_due and self._leasing is None:
            self._leasing = asyncio.create_task(self._lease.keep())
            self._leasing.add_done_callback(self._leased)

    def _leased(self, _task: "asyncio.Task[None]") -> None:
        self._leasing = None


def _naming(request: AnyRequest) -> Callable[[IPAddress], str] | None:
    return request.wanted.reservation_name if request.guarded else None


def _answer(
    wanted: ReservationRequest, outcome: ReservationVersion | BaseException | None
) -> ReservationAnswer:
    if isinstance(outcome, PASSING):
        return Unanswered(outcome, will_pass=True)
    if isinstance(outcome, ClusterError):
        return Unanswered(StorageFailed(f"{wanted.address} cannot be reserved: {outcome}"), will_pass=False)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _is_twin(request: AnyRequest, adding: Adding) -> bool:
    """Whether this is another call for the same interface: two at once would undo each other's work."""
    return isinstance(request, Adding) and request.key == adding.key and not request.is_over
