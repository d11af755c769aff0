"""The secondary networks of a node: carries out the plugin's calls on the pools of a network's ranges.

A pod gets one address from each range of a network, or none at all. Everything is written before it is answered: every
ADD is a write to the cluster, and addresses are chosen from the pools. The addresses of this node's sandboxes are also
recorded on disk (`given`), in case the cluster is restored from a backup: the record is compared with a pool whenever it
is read, and with all pools when the cluster may have gone back. For garbage collection (GC), this process remembers which
network's configuration each sandbox was served by: GC must not free what belongs to an unknown network. In a node's own
pool each entry names its network, so this survives the process.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from msgspec import structs

from podtide.agent.networks.address_record import GivenAddresses
from podtide.agent.networks.counts import Counts
from podtide.agent.networks.errors import StorageFailed
from podtide.agent.networks.node_presence import NodePresence
from podtide.agent.networks.pool_lease import PoolLease
from podtide.agent.networks.pool_location import NodePoolLocation, PoolLocation, SharedPoolLocation
from podtide.agent.networks.pool_loop import PoolLoop
from podtide.agent.networks.pool_restorer import PoolRestorer
from podtide.agent.networks.requests import Adding, Releasing
from podtide.agent.networks.reservation_objects import ReservationObjects
from podtide.agent.port import NoAddress, NotAssigned, Overtaken
from podtide.agent.recent_deletes import RecentDeletes
from podtide.cluster.port import Cluster
from podtide.cni.addresses import interface
from podtide.cni.errors import InvalidEnvironment
from podtide.cni.ipam_config import IpamConfig
from podtide.cni.results import AssignedAddress
from podtide.core.errors import InvalidConfig, InvalidInput, RetryError
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.reservations import Key
from podtide.core.networks.round import Placed
from podtide.core.pool.pool import Owner
from podtide.core.ranges import IPAddress
from podtide.networks.network import Network, NetworkRange, network_of
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.disk import Disk
from podtide.runtime.durations import format_duration
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup

_LEAST_WAIT_SECONDS = 4.0
"""Where ADDs are not to wait for an address that is on its way, a write to the cluster still takes its time."""
_LAST_WORDS_SECONDS = 2.0
_RETRY_SECONDS = 5.0


class SecondaryNetworks:
    """The networks with ranges of their own, on one node. `run` has to run for anything to be handed out."""

    def __init__(
        self,
        cluster: Cluster,
        node_name: str,
        *,
        namespace: str = SYSTEM_NAMESPACE,
        disk: Disk | None = None,
        runtime: Runtime,
    ) -> None:
        self.counts = Counts()
        self._cluster = cluster
        self._node = node_name
        self._namespace = namespace
        self._wait_seconds = max(runtime.settings.add_wait_seconds, _LEAST_WAIT_SECONDS)
        self._runtime = runtime
        self._clock = runtime.clock
        self._log = runtime.log
        self._presence = NodePresence(
            cluster,
            node_name,
            contact_timeout_seconds=runtime.settings.contact_timeout_seconds,
            runtime=runtime,
        )
        self._given = GivenAddresses(disk, runtime.log)
        self._patience_seconds = max(runtime.settings.leak_grace_seconds, runtime.settings.quarantine_seconds)
        self._wakeup = Wakeup(runtime.clock)
        self._presence.on_watch.append(self._doubt)
        self._reservations = ReservationObjects(cluster, namespace, node_name)
        self._pools: dict[tuple[bool, str], PoolLoop] = {}
        self._deletes = RecentDeletes()
        self._served: dict[Key, str] = {}
        """By which network's configuration an interface got what it has."""
        self._adding: list[Key] = []
        """The interfaces of all ADDs under way, as often as there are any of each."""
        for wanted in self._given.pools().values():
            self._presence.follow()
            self._pool(wanted)

    async def run(self) -> NoReturn:
        """Follow this node's Node until cancelled, or until the disk fails; then nothing more is written."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._mend())
                group.create_task(self._presence.run())
                await self._given.failed.wait()
                assert self._given.failure is not None
                raise self._given.failure
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            for pool in self._pools.values():
                pool.abandon()

    def close(self) -> None:
        """Let another agent have the disk."""
        self._given.close()

    async def stop(self) -> None:
        """Give up the Leases of this node's pools: the agent ends, and does not wait long for that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await asyncio.gather(*(pool.stop() for pool in self._pools.values()))

    async def require_ready(self) -> None:
        """Raise NotReady until the Node has been read. Whether a range has free addresses does not matter."""
        await self._presence.known(self._wait_seconds)

    async def add(self, owner: Owner, config: IpamConfig, *, arrived: float) -> tuple[AssignedAddress, ...]:
        """One address from each range, in their order; the same again for the same sandbox and interface.

        `arrived` is when the request reached the agent: a DEL of the same sandbox and interface that came later makes
        it Overtaken. Raises NotReady, OutOfContact, NoAddress, Overtaken, RangeFull, and what `networks.errors` has.
        """
        key = (owner.sandbox, owner.interface)
        self._adding.append(key)
        try:
            return await self._add(owner, config, arrived)
        finally:
            self._adding.remove(key)

    async def _add(self, owner: Owner, config: IpamConfig, arrived: float) -> tuple[AssignedAddress, ...]:
        network = _network(config)
        holder = _holder(owner)
        key = (owner.sandbox, owner.interface)
        await self._presence.known(self._patience(arrived))
        node_uid = self._presence.require_uid()
        if self._deletes.happened_after(arrived, key):
            raise Overtaken(
                f"sandbox {owner.sandbox} ({owner.interface}) was deleted before its ADD was carried out"
            )
        addings = {
            self._pool(each): Adding(
                _recorded(holder, owner, each), each, guarded=network.guarded, node_uid=node_uid
            )
            for each in network.ranges
        }
        try:
            async with asyncio.timeout(self._patience(arrived)):
                outcomes = await asyncio.gather(
                    *(pool.add(adding) for pool, adding in addings.items()), return_exceptions=True
                )
        except TimeoutError:
            raise NoAddress(
                f"no address of network {network.key} for pod {holder.podref} within {self._waited}: "
                f"{_troubles(addings)}"
            ) from None
        failures = [each for each in outcomes if isinstance(each, BaseException)]
        if failures:
            await self._undo(
                {
                    pool: Releasing(key, adding.wanted, guarded=network.guarded)
                    for (pool, adding), outcome in zip(addings.items(), outcomes, strict=True)
                    if isinstance(outcome, Placed) and outcome.is_new
                }
            )
            raise failures[0]
        self._served[key] = owner.network
        return tuple(
            AssignedAddress(interface(placed.address, wanted.addresses.network.prefixlen))
            for placed, wanted in zip(outcomes, network.ranges, strict=True)
            if isinstance(placed, Placed)
        )

    async def delete(self, owner: Owner, config: IpamConfig | None) -> tuple[IPAddress, ...]:
        """The sandbox's interface is gone; what it held, in any range, is free. Nothing for what is not known.

        Cancels an ADD of it that waits. Besides the ranges of the configuration, which may have changed or be unusable
        (None), whatever memory knows of the interface is freed. A RetryError when anything could not be read or
        written: then it is to be asked again, and nothing is forgotten.
        """
        key = (owner.sandbox, owner.interface)
        self._deletes.remember(key, self._clock.monotonic())
        for pool in self._pools.values():
            pool.overtake(key)
        releasings = self._releasings(key, config)
        try:
            async with asyncio.timeout(self._wait_seconds):
                outcomes = await asyncio.gather(
                    *(pool.release(releasing) for pool, releasing in releasings.items()),
                    return_exceptions=True,
                )
        except TimeoutError:
            raise StorageFailed(
                f"what sandbox {owner.sandbox} has on {owner.interface} could not be freed within "
                f"{self._waited}: {_troubles(releasings)}"
            ) from None
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        self._served.pop(key, None)
        return tuple(address for freed in outcomes if isinstance(freed, tuple) for address in freed)

    def knows(self, owner: Owner) -> bool:
        """Whether the sandbox's interface has anything of a secondary network, as far as memory goes."""
        key = (owner.sandbox, owner.interface)
        return any(pool.knows(key) for pool in self._pools.values())

    async def check(self, owner: Owner, config: IpamConfig) -> tuple[IPAddress, ...]:
        """What the sandbox's interface holds, range by range; NotAssigned when a range has nothing of it."""
        key = (owner.sandbox, owner.interface)
        held: list[IPAddress] = []
        for wanted in _network(config).ranges:
            addresses = await self._pool(wanted).held_by(key, wanted)
            if not addresses:
                raise NotAssigned(
                    f"sandbox {owner.sandbox} has no address of {wanted.addresses} on {owner.interface}: "
                    "create the sandbox again"
                )
            held += addresses
        self._served[key] = owner.network
        return tuple(held)

    async def collect_garbage(self, config: IpamConfig, alive: frozenset[Key]) -> int:
        """Free what dead sandboxes of this node hold by that configuration. Returns how many sandboxes that were.

        A sandbox's configuration is known if this process served it, or if an entry in the node's own pool names it,
        whichever process wrote that. All else is left to leak repair, which checks the pods: entries in a pool that all
        nodes share, and entries without a configuration, such as Whereabouts', or with several. Sandboxes added since
        this began, and ADDs in flight, are newer than the list `alive`, and are not garbage.
        """
        before = dict(self._served)
        served = {key for key, name in before.items() if name == config.name}
        recorded = await self._given_by(config)
        young = {*self._adding, *(self._served.keys() - before.keys())}
        dead = (served | recorded) - young - alive
        await asyncio.gather(*(self.delete(Owner(sandbox, ifname), config) for sandbox, ifname in dead))
        return len(dead)

    # What went back

    def _doubt(self) -> None:
        """A watch began: before, the cluster may have gone back, and the pools with it."""
        for pool in self._pools.values():
            pool.doubt()
        self._wakeup.wake()

    async def _mend(self) -> NoReturn:
        """Put back what sandboxes have and pools lack, whenever the cluster may have gone back."""
        look_at: float | None = None
        while True:
            await self._wakeup.wait(look_at)
            outcomes = await asyncio.gather(
                *(pool.mend() for pool in self._pools.values()), return_exceptions=True
            )
            seconds = [_RETRY_SECONDS if isinstance(each, BaseException) else each for each in outcomes]
            again = min((each for each in seconds if each is not None), default=None)
            look_at = None if again is None else self._clock.monotonic() + again

    # Details

    async def _given_by(self, config: IpamConfig) -> set[Key]:
        """The interfaces that have something of this node's own pools by that configuration."""
        sliced = [each for each in _network(config).ranges if each.slice_size is not None]
        if not sliced:
            return set()
        await self._presence.known(self._wait_seconds)
        node_uid = self._presence.require_uid()
        found = await asyncio.gather(
            *(self._pool(each).given_by(config.name, each, node_uid) for each in sliced)
        )
        return set().union(*found)

    @property
    def _waited(self) -> str:
        return format_duration(self._wait_seconds)

    def _patience(self, arrived: float) -> float:
        return max(0.0, arrived + self._wait_seconds - self._clock.monotonic())

    async def _undo(self, given: dict[PoolLoop, Releasing]) -> None:
        """An ADD that failed in one range keeps nothing of the others. If that fails too, the runtime's DEL frees it."""
        with suppress(TimeoutError, RetryError):
            async with asyncio.timeout(self._wait_seconds):
                await asyncio.gather(*(pool.release(releasing) for pool, releasing in given.items()))

    def _releasings(self, key: Key, config: IpamConfig | None) -> dict[PoolLoop, Releasing]:
        """What to free where: in the ranges of the configuration, and wherever the interface is known to have anything."""
        found = {
            pool: Releasing(key, pool.wanted, guarded=True)
            for pool in self._pools.values()
            if pool.knows(key)
        }
        if config is None:
            return found
        try:
            network = _network(config)
            return found | {
                self._pool(each): Releasing(key, each, guarded=network.guarded) for each in network.ranges
            }
        except InvalidInput:
            return found  # no ADD can have been carried out by it

    def _pool(self, wanted: NetworkRange) -> PoolLoop:
        location: PoolLocation
        if wanted.slice_size is None:
            location = SharedPoolLocation(self._cluster, self._namespace, wanted)
        else:
            location = NodePoolLocation(self._cluster, self._namespace, self._node, wanted, clock=self._clock)
        key = (location.is_shared, location.name)
        if key not in self._pools:
            restorer = PoolRestorer(
                self._cluster,
                key,
                self._given,
                self._reservations,
                patience_seconds=self._patience_seconds,
                clock=self._clock,
                log=self._log,
            )
            self._pools[key] = PoolLoop(
                self._cluster,
                location,
                wanted,
                self._reservations,
                restorer,
                lease=None if location.is_shared else self._lease,
                is_watching=self._presence.is_watching,
                is_ours=self._was_served if location.is_shared else _is_of_this_node,
                runtime=self._runtime,
                counts=self.counts,
            )
        return self._pools[key]

    def _lease(self, pool: ObjectMeta) -> PoolLease:
        return PoolLease(self._cluster, pool, self._node, clock=self._clock, log=self._log)

    def _was_served(self, found: Allocation) -> bool:
        return (found.id, found.ifname) in self._served


def _is_of_this_node(found: Allocation) -> bool:
    """True: a node's own pool holds addresses of this node's sandboxes alone."""
    del found
    return True


def _troubles(pools: Iterable[PoolLoop]) -> str:
    troubles = dict.fromkeys(pool.trouble for pool in pools if pool.trouble)
    return "; ".join(troubles) or "the API server has not answered"


def _network(config: IpamConfig) -> Network:
    network = network_of(config)
    if network is None:
        raise InvalidConfig(f"network {config.name!r} has no range: its addresses come from the node's pool")
    seen = set()
    for each in network.ranges:
        if each.addresses.network in seen:
            raise InvalidConfig(
                f"network {config.name!r} has the range {each.addresses} twice: a pod gets one address from each range"
            )
        seen.add(each.addresses.network)
    return network


def _recorded(holder: Allocation, owner: Owner, wanted: NetworkRange) -> Allocation:
    """The holder as the range's pool has it: one that all nodes share is long enough without what only this node uses."""
    return holder if wanted.slice_size is None else structs.replace(holder, configuration=owner.network)


def _holder(owner: Owner) -> Allocation:
    if not owner.namespace or not owner.name:
        raise InvalidEnvironment(
            "CNI_ARGS lacks K8S_POD_NAMESPACE or K8S_POD_NAME: who has an address of a secondary network "
            "is written down by its pod's name"
        )
    return Allocation(owner.sandbox, f"{owner.namespace}/{owner.name}", owner.interface, owner.pod)
