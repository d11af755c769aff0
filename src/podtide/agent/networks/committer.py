"""All that waits for one pool at one moment goes into one write of it.

While a write is in the air, further ADDs and DELs gather; then they are decided together and written together. An
answer leaves only after the write was acknowledged. What a write came to may be unknown (the answer was lost), and a
shared pool may have changed: either way the pool is read, and everything is decided anew. That gives the same answers,
because who holds an address already is given it again.

Order of writes, for addresses that are reserved across pools: the reservation first, then the pool; at a DEL the pool
first, then the reservation. So a crash in between leaves a reservation too many, which the next ADD of the pod takes
over, or repair collects; it never leaves an allocation that other pools do not see.
"""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from podtide.agent.networks.counts import Counts
from podtide.agent.networks.errors import PASSING, NoSlice, PoolTooLarge, Reread, StorageFailed
from podtide.agent.networks.pool_copy import PoolCopy
from podtide.agent.networks.pool_lease import PoolLease
from podtide.agent.networks.pool_location import Home
from podtide.agent.networks.putting_back import PuttingBack
from podtide.agent.networks.requests import Adding, Key, Mending, Placed, PoolRequest, Releasing
from podtide.agent.networks.reserving import Reserving
from podtide.agent.port import NotReady, Overtaken
from podtide.cluster.backoff import Backoff
from podtide.cluster.port import Cluster, ClusterError, Conflict, NotFound
from podtide.core.errors import PodtideError, RangeFull
from podtide.core.networks.allocations import Allocation
from podtide.core.ranges import IPAddress
from podtide.networks.network import NetworkRange
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import AGENT_MANAGER, NODE_UID_ANNOTATION
from podtide.runtime.disk import DiskFull
from podtide.runtime.logging import Logger

T = TypeVar("T")

AnyRequest: TypeAlias = PoolRequest[Any]

_WENT_BACK = "the cluster went back, as after a restore of etcd: waiting until every node has put back what its sandboxes have"
_ENDED = "the agent stops before this was carried out: try again when it is back"

_BACKOFF = Backoff(floor_seconds=0.005, cap_seconds=1.0)


class PoolCommitter:
    """One pool: the line of those who want something of it, and the copy it is decided by."""

    def __init__(  # noqa: PLR0913 - which pool, by which rules, and what it runs in
        self,
        cluster: Cluster,
        home: Home,
        wanted: NetworkRange,
        reserving: Reserving,
        putting_back: PuttingBack,
        *,
        lease: Callable[[ObjectMeta], PoolLease] | None,
        is_ours: Callable[[Allocation], bool],
        randomness: Random,
        counts: Counts,
        log: Logger,
    ) -> None:
        self.wanted = wanted
        """A range that the pool is of; of several networks' configurations, the first that was seen."""
        self.trouble = ""
        """Why the last attempt came to nothing, in words; "" when it did not."""
        self._cluster = cluster
        self._home = home
        self._reserving = reserving
        self._putting_back = putting_back
        self._may_have_gone_back = False
        """Whether the cluster may have, since the copy was made."""
        self._make_lease = lease
        self._lease: PoolLease | None = None
        self._is_ours = is_ours
        self._randomness = randomness
        self._counts = counts
        self._log = log.bind(pool=home.name)
        self._copy: PoolCopy | None = None
        self._pool_uid = ""
        """Of the object that was last found."""
        self._is_contended = False
        """Whether others wrote the pool since this node did: then it is read before it is decided by."""
        self._is_fresh = False
        """Whether the copy was read in this round."""
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
        """Free what the interface holds, and answer it. It is written, and nothing is reserved any more."""
        self._putting_back.leave(releasing.key)
        freed = await self._stand_in_line(releasing)
        unreserved = await self._reserving.give_up(releasing.key)
        if self._copy is not None:
            for address in unreserved:
                if (
                    address in self._copy.allocations.range.network
                ):  # else it was of a slice that is another by now
                    self._copy.allocations.restore(address)
        return freed

    async def held_by(self, key: Key, wanted: NetworkRange) -> tuple[IPAddress, ...]:
        """What the interface holds, by the copy if that knows of any, else by the pool."""
        copy = self._copy
        if copy is None or not copy.allocations.held_by(*key):
            copy = await self._look_up(wanted)
        return tuple(copy.allocations.held_by(*key)) if copy is not None else ()

    async def given_by(self, configuration: str, wanted: NetworkRange, node_uid: str) -> set[Key]:
        """The interfaces that have an address by this configuration, as a node's own pool tells.

        Nobody if the pool is not this very Node's, by its uid: what is in it may be of another machine of that name.
        """
        copy = self._copy or await self._look_up(wanted)
        if copy is None or copy.pool.metadata.annotations.get(NODE_UID_ANNOTATION) != node_uid:
            return set()
        return {
            (sandbox, holder.ifname)
            for _, holder in copy.allocations
            if holder.configuration == configuration
            for sandbox in holder.sandboxes
        }

    async def _look_up(self, wanted: NetworkRange) -> PoolCopy | None:
        """The pool as it is now, to look at and not to decide by."""
        pool = await self._home.find(wanted)
        return PoolCopy(pool) if pool is not None else None

    async def mend(self) -> float | None:
        """Put back what sandboxes have and the pool lacks. Answers in how many seconds to look again, if at all."""
        return await self._stand_in_line(Mending(self.wanted))

    def doubt(self) -> None:
        """The cluster may have gone back: the pool is read before it is decided by, and no reservation is believed in."""
        self._may_have_gone_back = True
        self._reserving.doubt()

    def knows(self, key: Key) -> bool:
        """Whether the interface has anything here, as far as memory goes."""
        return (
            self._holds(key)
            or self._reserving.knows(key)
            or bool(self._putting_back.recorded(*key))
            or any(each.key == key for each in self._all())
        )

    def overtake(self, key: Key) -> None:
        """The interface is gone: whoever asks for it asks in vain."""
        for each in self._all():
            if each.key == key and isinstance(each, Adding):
                each.fail(
                    Overtaken(f"sandbox {key[0]} ({key[1]}) was deleted while its ADD waited for an address")
                )

    def abandon(self) -> None:
        """The agent ends: whoever waits is told, and nothing more is written but what `stop` does."""
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

    def _holds(self, key: Key) -> bool:
        return self._copy is not None and bool(self._copy.allocations.held_by(*key))

    async def _stand_in_line(self, request: PoolRequest[T]) -> T:
        if self._has_ended:
            raise NotReady(_ENDED)
        self._line.append(request)
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await request.answer

    async def _work(self) -> None:
        """Carry out what stands in the line, all of it at once, until nobody does."""
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
            except Exception as error:  # noqa: BLE001 - whoever waits must be told, whatever it is
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
            told = StorageFailed(f"IPPool {self._home.name} cannot be kept: {error}")
        for each in self._under_way:
            each.fail(told)

    # One round

    async def _commit(self, requests: list[AnyRequest]) -> list[AnyRequest]:
        """Carry out these requests, and answer those that have to be tried again."""
        addings = [each for each in requests if isinstance(each, Adding)]
        releasings = [each for each in requests if isinstance(each, Releasing)]
        mendings = [each for each in requests if isinstance(each, Mending)]
        copy = await self._current(addings, releasings, mendings)
        if copy is None:
            self._putting_back.release([each.key for each in releasings])
            for releasing in releasings:
                self._reserving.leave(releasing.key, {}, releasing.wanted, guarded=releasing.guarded)
                releasing.succeed(())
            self._answer(mendings)
            return []
        freed = [self._free(copy, releasing) for releasing in releasings]
        held_up: list[AnyRequest] = []
        if self._putting_back.is_held_up:
            held_up, addings = [*addings], []
        placed, again = await self._place(copy, addings)
        if copy.is_changed:
            await self._write(copy)
        if self._may_have_gone_back and placed:
            raise Reread("the cluster may have gone back since the addresses were reserved")
        self.trouble = _WENT_BACK if held_up else ""
        self._putting_back.release([each.key for each in releasings])
        for releasing, addresses in zip(releasings, freed, strict=True):
            releasing.succeed(addresses)
        for adding, given in placed:
            self._reserving.held(adding.key, given.address)
            self._tell(adding, given)
        self._answer(mendings)
        return [*held_up, *again]

    def _tell(self, adding: Adding, given: Placed) -> None:
        """Answer an ADD, once it is on record."""
        try:
            self._putting_back.give(adding.holder, given.address, adding.wanted, guarded=adding.guarded)
        except DiskFull as error:
            adding.fail(StorageFailed(f"{given.address} cannot be written down: {error}"))
        adding.succeed(given)

    def _answer(self, mendings: list[Mending]) -> None:
        for mending in mendings:
            mending.succeed(self._putting_back.look_again_seconds)

    async def _current(
        self, addings: list[Adding], releasings: list[Releasing], mendings: list[Mending]
    ) -> PoolCopy | None:
        """The copy to decide by; None when there is no pool, and then those who want to add have been told why."""
        self._is_fresh = (
            self._copy is None
            or bool(mendings)
            or self._may_have_gone_back
            or self._may_be_old(self._copy, addings, releasings)
        )
        if self._copy is None or self._is_fresh:
            self._may_have_gone_back = False
            return await self._read((addings or releasings or mendings)[0].wanted, addings)
        for address in self._reserving.tried_long_ago():
            self._copy.allocations.restore(address)
        return self._copy

    def _may_be_old(self, copy: PoolCopy, addings: list[Adding], releasings: list[Releasing]) -> bool:
        """Whether something would be answered by the copy that the pool, as it is now, may not bear out.

        What leads to a write is borne out by that. So the question is about what does not: an ADD that is refused or
        has its address already, and a DEL that finds nothing. (That nothing is left for an ADD shows only later.)
        """
        if not all(self._why_unusable(copy, each) is None for each in addings):
            return True
        return self._home.is_shared and (
            self._is_contended
            or any(self._holds(each.key) for each in addings)
            or not all(self._holds(each.key) for each in releasings)
        )

    async def _read(self, wanted: NetworkRange, addings: list[Adding]) -> PoolCopy | None:
        pool = await self._home.find(wanted)
        begins = bool(addings) and (pool is None or not pool.spec.allocations)
        if begins or (pool is None and self._putting_back.has_any):
            try:
                if pool is None:
                    pool = await self._home.make(wanted)
                else:
                    await self._home.require_beginning(wanted)
            except NoSlice as error:
                pool = None  # of which nobody holds anything
                for adding in addings:
                    adding.fail(error)
        self._note_whose(pool.metadata.uid if pool is not None else "")
        if pool is None:
            self._copy = None
            await self._putting_back.vanished()
            return None
        if (
            self._copy is not None
            and self._copy.pool == pool
            and self._putting_back.look_again_seconds is None
        ):
            self._is_contended = False
            return self._copy
        self._copy = copy = PoolCopy(pool)
        await self._putting_back.compare(copy)
        self._reserving.taken_back(
            lambda sandbox, ifname: (
                *copy.allocations.held_by(sandbox, ifname),
                *self._putting_back.recorded(sandbox, ifname),
            )
        )
        self._reserving.tried_long_ago()
        for address in self._reserving.withheld():
            if address in self._copy.allocations.range.network and not self._copy.allocations.holder(address):
                self._copy.allocations.withhold(address)
        return self._copy

    def _note_whose(self, pool_uid: str) -> None:
        """Whoever deletes a pool also collects what is reserved of its addresses: nothing that was seen of that counts."""
        if pool_uid != self._pool_uid:
            self._reserving.doubt()
        self._pool_uid = pool_uid

    def _free(self, copy: PoolCopy, releasing: Releasing) -> tuple[IPAddress, ...]:
        """Take the interface off the pool; answers what nobody has any more."""
        left = copy.release(*releasing.key)
        for address in self._reserving.leave(
            releasing.key, left, releasing.wanted, guarded=releasing.guarded
        ):
            if address not in copy.allocations.range.network:
                continue
            if (holder := copy.allocations.holder(address)) is not None:
                # An earlier sandbox of the pod has it, and may be the one that lives.
                self._reserving.hand_back(releasing.key, address, holder)
            else:
                copy.allocations.withhold(address)
        return tuple(address for address in left if copy.allocations.holder(address) is None)

    def _why_unusable(self, copy: PoolCopy, adding: Adding) -> PodtideError | None:
        try:
            self._home.require_usable(copy.pool, adding.wanted, adding.node_uid)
        except PodtideError as error:
            return error
        return None

    async def _place(
        self, copy: PoolCopy, addings: list[Adding]
    ) -> tuple[list[tuple[Adding, Placed]], list[AnyRequest]]:
        """Give everybody an address, reserved where it has to be; answers who got which, and who has to try again."""
        placed: list[tuple[Adding, Placed]] = []
        again: list[AnyRequest] = []
        while addings:
            first, addings = _one_of_each_pod(addings)
            offers = [offer for adding in first if (offer := self._offer(copy, adding))]
            outcomes = await asyncio.gather(
                *(self._reserve(offer) for offer in offers), return_exceptions=True
            )
            for offer, outcome in zip(offers, outcomes, strict=True):
                if outcome is False:
                    self._note_taken(offer)
                    copy.set_holder(offer.address, None)
                    copy.allocations.withhold(offer.address)
                    addings.append(offer.adding)
                elif isinstance(outcome, BaseException):
                    copy.set_holder(offer.address, offer.before)
                    again += self._try_again(offer, outcome)
                elif offer.adding.is_over and offer.before is None:
                    copy.set_holder(offer.address, None)  # nobody is left to have it
                else:
                    placed.append((offer.adding, Placed(offer.address, offer.before is None)))
        return placed, again

    def _note_taken(self, offer: "_Offer") -> None:
        """Reserved elsewhere, it is not this interface's, even if the pool says so: that is worth a word."""
        if offer.before is not None:
            self._log.warning(
                "an allocated address is reserved for another pod; giving another one",
                address=str(offer.address),
                pod=offer.adding.holder.podref,
            )

    def _try_again(self, offer: "_Offer", error: BaseException) -> list[AnyRequest]:
        """Whether to, after a reservation failed; if not, it has been told."""
        if isinstance(error, PASSING):
            self.trouble = str(error)
            return [offer.adding]
        if not isinstance(error, ClusterError):
            raise error
        offer.adding.fail(StorageFailed(f"{offer.address} cannot be reserved: {error}"))
        return []

    def _offer(self, copy: PoolCopy, adding: Adding) -> "_Offer | None":
        """An address for one who waits; None if there is none, which has been told."""
        if (error := self._why_unusable(copy, adding)) is not None:
            adding.fail(error)
        if adding.is_over:
            return None
        bounds = adding.wanted.addresses
        if not self._home.is_shared:
            bounds = bounds.part(copy.allocations.range.network)
        try:
            address, before = copy.give(
                adding.holder,
                bounds,
                is_ours=self._is_ours,
                is_ghost=self._putting_back.is_ghost,
                preferred=self._reserving.preferred(adding.key),
            )
        except (RangeFull, PoolTooLarge) as error:
            if not self._is_fresh:
                raise Reread(str(error)) from error  # repair, or another node, may have made room since
            adding.fail(error)
            return None
        return _Offer(adding, address, before)

    async def _reserve(self, offer: "_Offer") -> bool:
        adding = offer.adding
        if not adding.guarded:
            return True
        return await self._reserving.reserve(offer.address, adding.holder, adding.wanted, offer.before)

    async def _write(self, copy: PoolCopy) -> None:
        self._keep_lease(copy.pool.metadata)
        try:
            written = await self._cluster.replace(copy.object(), manager=AGENT_MANAGER)
        except Conflict:
            self._is_contended = True
            self._counts.conflicts += 1
            raise
        except NotFound as error:
            raise Reread(str(error)) from error
        self._counts.writes += 1
        copy.written(written)
        self._putting_back.written(written)

    def _keep_lease(self, pool: ObjectMeta) -> None:
        """Side by side with the write: nobody waits for the Lease."""
        if self._make_lease is None:
            return
        if self._lease is None:
            self._lease = self._make_lease(pool)
        if self._lease.is_due and self._leasing is None:
            self._leasing = asyncio.create_task(self._lease.keep())
            self._leasing.add_done_callback(self._leased)

    def _leased(self, _task: "asyncio.Task[None]") -> None:
        self._leasing = None


def _is_twin(request: AnyRequest, adding: Adding) -> bool:
    """Whether this is another call for the same interface: two at once would undo each other's work."""
    return isinstance(request, Adding) and request.key == adding.key and not request.is_over


def _one_of_each_pod(addings: list[Adding]) -> tuple[list[Adding], list[Adding]]:
    """Those who can be given addresses side by side, and the rest: sandboxes of one pod get the same address."""
    first: dict[tuple[str, str], Adding] = {}
    rest = [
        each
        for each in addings
        if first.setdefault((each.holder.podref, each.holder.ifname), each) is not each
    ]
    return list(first.values()), rest


class _Offer(Struct, frozen=True):
    """An address for one who adds, not yet reserved."""

    adding: Adding
    address: IPAddress
    before: Allocation | None
    """Who had it before: the interface itself, or an earlier sandbox of the pod."""
