"""The node's pool of addresses with the demand for it: every change is in the journal before it takes effect.

`pool` says which sandbox has which address, `demand` which pods need one, `suspects` which sandboxes may be leaked. They
are changed here and nowhere else, so they agree with each other, and listeners are called after each change. What is
not news is neither journaled nor applied.

Once an invariant is broken or the disk has failed (StopError), the pool is not changed any more: `failed` ends the
program, and every later change is refused with the same error.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from podtide.agent.pool.journal import (
    Adopted,
    Assigned,
    Believed,
    CarriedOver,
    ContainerApplied,
    Doubted,
    Freed,
    Identity,
    Named,
    NodeBound,
    PoolChange,
    Programmed,
    ProvenFree,
    Recovered,
    Withdrawn,
)
from podtide.agent.pool.pool_storage import RECORDS_LOST, PoolStorage
from podtide.core.errors import StopError
from podtide.core.pool.demand import Demand, PodOnNode, reference_of
from podtide.core.pool.leaks import SuspectedSandboxes
from podtide.core.pool.pool import Address, AppliedContainer, GrantedContainer, Owner, Pool
from podtide.core.pool.states import State
from podtide.core.ranges import IPNetwork
from podtide.runtime.clock import Clock
from podtide.runtime.disk import Disk
from podtide.runtime.logging import Logger

Listener = Callable[[], None]
T = TypeVar("T")


class JournaledPool:
    """The addresses of one node. Every method that changes them may raise a DiskError, and then nothing has changed."""

    def __init__(self, storage: PoolStorage, *, clock: Clock, log: Logger) -> None:
        self.pool: Pool = storage.state.pool
        """The addresses and who has them. To read."""
        self.demand = Demand()
        """The pods and sandboxes that need an address. To read."""
        self.suspects = SuspectedSandboxes(self.demand)
        """The sandboxes that may be leaked. To read."""
        self.alarms = 0
        """For how many addresses the cluster contradicted this pool."""
        self.failure: StopError | None = None
        """Why nothing can be changed any more; None while all is well."""
        self.failed = asyncio.Event()
        """Set along with `failure`."""
        self.on_change: list[Listener] = []
        """Called when an address was assigned or freed, or when the demand changed."""
        self.on_supply: list[Listener] = []
        """Called when there may be more free addresses than before."""
        self._storage = storage
        self._state = storage.state
        self._present: Identity | None = None
        self._clock = clock
        self._log = log
        self._restore_demand()

    @classmethod
    def open(cls, disk: Disk, *, cooldown_seconds: float, clock: Clock, log: Logger) -> "JournaledPool":
        """The pool of this directory, as its journal has it. Locked when another agent has the directory."""
        storage = PoolStorage.open(disk, cooldown_seconds=cooldown_seconds, clock=clock, log=log)
        return cls(storage, clock=clock, log=log)

    def close(self) -> None:
        """Stop writing, and let another agent have the directory."""
        self._storage.close()

    def shorten_after(self, slack_bytes: int) -> None:
        """Rewrite the journal when it has grown by so many bytes, besides a few times the size of its state."""
        self._storage.shorten_after(slack_bytes)

    # The state

    @property
    def identity(self) -> Identity | None:
        """The Node and the NodeNetworkConfig that the records belong to; None before `bind`."""
        return self._state.identity

    @property
    def lost(self) -> str:
        """Why earlier records cannot be trusted; "" when they can, and again after `prove_free`."""
        return self._state.lost

    @property
    def doubt(self) -> str:
        """The mark of the question whether the NodeNetworkConfig is up to date; "" when there is no question."""
        return self._state.doubt

    def is_former(self, config_uid: str) -> bool:
        """Whether this NodeNetworkConfig was replaced by a later one."""
        return config_uid in self._state.former

    def held_by(self, owner: Owner) -> tuple[Address, ...]:
        """The addresses of the sandbox's interface."""
        return self.pool.held_by(owner.sandbox, owner.interface)

    def counts(self) -> dict[State, int]:
        """How many addresses of all containers are in each state."""
        totals = dict.fromkeys(State, 0)
        for container in self.pool.containers():
            counts = self.pool.counts(container)
            totals[State.PENDING_PROGRAMMING] += counts.pending_programming
            totals[State.AVAILABLE] += counts.available
            totals[State.ASSIGNED] += counts.assigned
            totals[State.PENDING_RELEASE] += counts.pending_release
            totals[State.QUARANTINED] += counts.quarantined
            totals[State.ORPHANED] += counts.orphaned
        return totals

    @property
    def needed(self) -> int:
        """U: the demand, less the sandboxes that still use addresses of a former Node and need no others."""
        return self.demand.total - self.pool.outlived()

    # What pods and the runtime do

    def pod_seen(self, pod: PodOnNode) -> None:
        """A pod of this node was added or changed."""
        if self.demand.pod_seen(pod):
            self.suspects.reconsider(pod.references, self._clock.monotonic())
            self._call(self.on_change)

    def pod_gone(self, pod: PodOnNode) -> None:
        """A pod of this node was deleted."""
        if self.demand.pod_gone(pod.uid):
            self.suspects.reconsider(pod.references, self._clock.monotonic())
            self._call(self.on_change)

    def asked(self, owner: Owner) -> None:
        """A sandbox waits for an address. `gave_up` must follow."""
        self.demand.asked(owner)
        self._reconsider(owner)

    def gave_up(self, owner: Owner) -> None:
        """A sandbox waits no longer, with or without an address."""
        self.demand.gave_up(owner)
        self._reconsider(owner)

    def deleted(self, sandbox: str) -> None:
        """The runtime deleted the sandbox: an ADD for it that is still in flight comes too late."""
        self.demand.deleted(sandbox)

    def lives(self, owner: Owner) -> None:
        """The pod lives in this sandbox, as the cluster says: its grace starts again, the pod's others are suspects."""
        self.suspects.put_off(owner, self._clock.monotonic())
        self.demand.lives(owner)
        self._reconsider(owner)

    def assign(self, owner: Owner, wanted: Iterable[str] = ()) -> tuple[Address, ...] | None:
        """One free address per family for the owner; the same addresses for the same owner.

        None when no address is free, or one of those `wanted` is not.
        """
        if self.failure is not None:
            raise self.failure
        addresses = self.pool.held_by(owner.sandbox, owner.interface)
        if not addresses:
            chosen = self.pool.choose(self._clock.monotonic(), wanted)
            if chosen is None:
                return None
            addresses = self._record(Assigned(owner, tuple(address.ip for address in chosen)))
        self._took(owner)
        return addresses

    def free(self, sandbox: str, interface: str) -> tuple[Address, ...]:
        """The sandbox's interface is gone. Returns the addresses that it had; none for an unknown sandbox."""
        if self.failure is not None:
            raise self.failure
        held = self.pool.held_by(sandbox, interface)
        addresses = self._record(Freed(sandbox, interface)) if held else ()
        owner = self.demand.freed(sandbox, interface)
        if owner is not None:
            self.suspects.forget(sandbox, interface)
            self._reconsider(owner)
            self._call(self.on_supply)
        return addresses

    def adopt(self, ip: str, owner: Owner) -> bool:
        """A pod's status shows a quarantined address, which is the pod's from now on. False if it is not quarantined."""
        address = self.pool.find(ip)
        if address is None or address.state is not State.QUARANTINED:
            return False
        self._record(Adopted(ip, owner))
        self._took(owner)
        return True

    def prove_free(self, contested: Collection[str] = ()) -> int:
        """Every pod has shown its addresses: the quarantined ones are free, except those that several pods show.

        Returns how many became free. The records are not `lost` any more, unless an address is contested.
        """
        quarantined = {address.ip for address in self._in(State.QUARANTINED)}
        still = tuple(sorted(quarantined.intersection(contested)))
        is_news = quarantined != set(still) or (self.lost and not still)
        proven = self._record(ProvenFree(still)) if is_news else 0
        self._call(self.on_change)
        self._call(self.on_supply)
        return proven

    def contradicted(self, words: str) -> None:
        """Records of another program's contradict the cluster: an alarm for a person."""
        self._alarm(1, words, "what another program recorded contradicts the cluster")

    # What the cluster says

    def confirm(self, identity: Identity) -> None:
        """The present Node and NodeNetworkConfig, as the cluster says. The records may belong to others until `bind`."""
        self._present = identity

    def bind(self, identity: Identity) -> None:
        """The records belong to this Node from now on; durable. First withdraw the containers of the former one."""
        if identity != self.identity:
            self._record(NodeBound(identity))

    def doubt_it(self, mark: str) -> None:
        """The NodeNetworkConfig was deleted; if it returns, it may be from a backup. Durable; an earlier mark stays."""
        if not self.doubt:
            self._record(Doubted(mark))

    def believe(self) -> None:
        """The NodeNetworkConfig was confirmed as present, and its containers were applied."""
        if self.doubt:
            self._record(Believed())

    def apply(self, container: GrantedContainer) -> AppliedContainer:
        """Take in a version of a network container (`Pool.apply`). Its new addresses are usable after `programmed`."""
        if not self.pool.is_news(container):
            return AppliedContainer()
        applied = self._record(ContainerApplied(container))
        self._report(applied)
        return applied

    def programmed(self, names: Iterable[str]) -> None:
        """The network carries these addresses. Names that are not pending are ignored."""
        names = frozenset(names)
        if pending := tuple(each.name for each in self._in(State.PENDING_PROGRAMMING) if each.name in names):
            self._record(Programmed(pending))
        self._call(self.on_supply)

    def carry_over(self, container: GrantedContainer, former: Collection[str]) -> tuple[str, ...]:
        """The machine is another Node by now: keep what the container grants of former containers, under new names."""
        if not self.pool.carried_over(container, former):
            return ()
        names = self._record(CarriedOver(container, tuple(former)))
        self._log.info("kept addresses of a former Node", container=container.id, addresses=len(names))
        return names

    def recover(self, container: GrantedContainer, named: Iterable[str]) -> AppliedContainer:
        """Take in a container while the records are lost: its addresses are quarantined, those `named` are given up."""
        if not self.pool.is_news(container):
            return AppliedContainer()
        applied = self._record(Recovered(container, tuple(named)))
        if applied.granted:
            self._log.warning(
                RECORDS_LOST, reason=self.lost, container=container.id, addresses=len(applied.granted)
            )
        self._report(applied)
        return applied

    def withdraw(self, container_id: str) -> AppliedContainer:
        """The node no longer has this container. Pods keep the addresses that they have of it."""
        former, present = self.identity, self._present
        if not self.pool.is_granted(container_id):
            return AppliedContainer()
        applied = self._record(Withdrawn(container_id))
        if former is None or present is None or former.node_uid == present.node_uid:
            self._report(applied)
        elif applied.alarms:
            kept = self.pool.counts(container_id).orphaned if container_id in self.pool.containers() else 0
            self._alarm(
                len(applied.alarms),
                f"the journal is that of the Node with uid {former.node_uid}, and this one's is {present.node_uid}: of "
                f"the {len(applied.alarms)} addresses of container {container_id} none is handed out any more, and {kept} "
                "stay with the sandboxes that have them; if this machine never was that Node, stop the agent and empty "
                "its state directory",
            )
        return applied

    def name_for_release(self, container_id: str, count: int) -> tuple[str, ...]:
        """Give up so many of a container's free addresses for good. Durable: the names may be written to the cluster."""
        return self._name(container_id, self.pool.choose_releases(container_id, count))

    def name_draining(self, container_id: str, cidrs: Sequence[IPNetwork]) -> tuple[str, ...]:
        """Give up a container's free addresses in these CIDRs for good. Durable, as `name_for_release`."""
        return self._name(container_id, self.pool.idle_in(container_id, cidrs))

    # Internals

    def _record(self, change: PoolChange[T]) -> T:
        """Journal the change, then apply it. The first StopError is the end of all changes."""
        if self.failure is not None:
            raise self.failure
        try:
            return self._storage.record(change)
        except StopError as error:
            self.failure = error
            self.failed.set()
            raise

    def _restore_demand(self) -> None:
        """Rebuild the demand from the replayed owners, in order: it decides which of a pod's sandboxes is the newest."""
        held = sorted(self.pool.owners().values(), key=lambda addresses: addresses[0].turn)
        for owner in (addresses[0].owner for addresses in held):
            assert owner is not None, "an address that is held has an owner"
            self.demand.taken(owner)
        now = self._clock.monotonic()
        for owner in self.demand.owners():
            self.suspects.reconsider((reference_of(owner),), now)

    def _name(self, container_id: str, names: tuple[str, ...]) -> tuple[str, ...]:
        if names:
            self._record(Named(container_id, names))
        return names

    def _in(self, state: State) -> Iterable[Address]:
        return (address for address in self.pool.addresses() if address.state is state)

    def _took(self, owner: Owner) -> None:
        self.demand.taken(owner)
        self._reconsider(owner)

    def _reconsider(self, owner: Owner) -> None:
        """One of a pod's sandboxes changed."""
        self.suspects.reconsider((reference_of(owner),), self._clock.monotonic())
        self._call(self.on_change)

    def _report(self, applied: AppliedContainer) -> None:
        if applied.alarms:
            first, others = applied.alarms[0], len(applied.alarms) - 1
            self._alarm(len(applied.alarms), f"{first}; and the same for {others} more" if others else first)

    def _alarm(self, count: int, words: str, event: str = "the cluster contradicts the pool") -> None:
        """Log one line for however many addresses."""
        self.alarms += count
        self._log.error(event, alarm=words)

    def _call(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener()
