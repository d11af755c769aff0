"""The node's addresses and who needs them, kept in step: the pool, the demand for it, and who seems to hold for nobody.

Whatever changes one of them goes through here, and listeners are told: they ring a bell or serve who waits. The pool
writes its journal first, so what cannot be written down does not happen. Once an invariant is broken (StopError)
nothing more is done to the pool: `failed` ends the program, and every later call is refused with the same words.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType

from podtide.agent.pool.journaled_pool import RECORDS_LOST, Identity, JournaledPool
from podtide.core.errors import StopError
from podtide.core.pool.demand import Demand, PodOnNode, reference_of
from podtide.core.pool.leaks import Suspects
from podtide.core.pool.pool import Address, Applied, Container, Owner, Pool
from podtide.core.pool.states import State
from podtide.core.ranges import IPNetwork
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

Listener = Callable[[], None]


class Holdings:
    """What the node holds. `pool`, `demand` and `suspects` are to read; to change them there are the methods."""

    def __init__(self, kept: JournaledPool, *, clock: Clock, log: Logger) -> None:
        self.pool: Pool = kept.pool
        self.demand = Demand()
        self.suspects = Suspects(self.demand)
        self.alarms = 0
        """How often the cluster took or gave what it must not."""
        self.failure: StopError | None = None
        self.failed = asyncio.Event()
        self.on_change: list[Listener] = []
        """Told when somebody took or gave back an address, or needs one, or no longer does."""
        self.on_supply: list[Listener] = []
        """Told when there may be more free addresses than before."""
        self._kept = kept
        self._present: Identity | None = None
        self._clock = clock
        self._log = log
        self._stopping_at_contradictions = _Stop(self)
        self._restore()

    def _restore(self) -> None:
        """Take in who held what when the program last ran; the order tells which of a pod's sandboxes is newer."""
        held = sorted(self.pool.owners().values(), key=lambda addresses: addresses[0].turn)
        for owner in (addresses[0].owner for addresses in held):
            assert owner is not None, "who holds addresses is written on each of them"
            self.demand.taken(owner)
        now = self._clock.monotonic()
        for owner in self.demand.owners():
            self.suspects.reconsider((reference_of(owner),), now)

    def confirm(self, identity: Identity) -> None:
        """Whose node this is, as the cluster says. The records may be another's."""
        self._present = identity

    # What is so

    @property
    def identity(self) -> Identity | None:
        """Whose addresses these are; None when nothing is known of that."""
        return self._kept.identity

    @property
    def lost(self) -> str:
        """Why the records of this node cannot be believed; "" when they can."""
        return self._kept.lost

    @property
    def doubt(self) -> str:
        """The mark of the question whether the NodeNetworkConfig is of the present; "" when there is none."""
        return self._kept.doubt

    def is_former(self, config_uid: str) -> bool:
        """Whether it is a NodeNetworkConfig that another one came after."""
        return self._kept.is_former(config_uid)

    def held_by(self, owner: Owner) -> tuple[Address, ...]:
        """What the sandbox's interface has."""
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
        """U: the demand, less the sandboxes that live by addresses of a former Node."""
        return self.demand.total - self.pool.outlived()

    # What pods do

    def pod_seen(self, pod: PodOnNode) -> None:
        """A pod of this node is now like this."""
        if self.demand.pod_seen(pod):
            self.suspects.reconsider(pod.references, self._clock.monotonic())
            self._tell(self.on_change)

    def pod_gone(self, pod: PodOnNode) -> None:
        """A pod of this node is no more."""
        if self.demand.pod_gone(pod.uid):
            self.suspects.reconsider(pod.references, self._clock.monotonic())
            self._tell(self.on_change)

    def asked(self, owner: Owner) -> None:
        """A sandbox has to wait for an address. `gave_up` must follow."""
        self.demand.asked(owner)
        self._reconsider(owner)

    def gave_up(self, owner: Owner) -> None:
        """A sandbox waits no longer, whether it got an address or not."""
        self.demand.gave_up(owner)
        self._reconsider(owner)

    def assign(self, owner: Owner, wanted: tuple[str, ...] = ()) -> tuple[Address, ...] | None:
        """One free address per family for the owner, or None when there is none."""
        with self._stopping_at_contradictions:
            addresses = self._kept.assign(owner, wanted)
        if addresses is not None:
            self._took(owner)
        return addresses

    def deleted(self, sandbox: str) -> None:
        """The runtime deleted the sandbox: an ADD of it that is still on its way comes too late."""
        self.demand.deleted(sandbox)

    def lives(self, owner: Owner) -> None:
        """The cluster says that the pod lives in this sandbox: its grace begins anew, and others of the pod are suspects."""
        self.suspects.put_off(owner, self._clock.monotonic())
        self.demand.lives(owner)
        self._reconsider(owner)

    def free(self, sandbox: str, interface: str) -> tuple[Address, ...]:
        """The sandbox's interface is gone. Answers what it had."""
        with self._stopping_at_contradictions:
            addresses = self._kept.free(sandbox, interface)
        owner = self.demand.freed(sandbox, interface)
        if owner is not None:
            self.suspects.forget(sandbox, interface)
            self._reconsider(owner)
            self._tell(self.on_supply)
        return addresses

    def adopt(self, ip: str, owner: Owner) -> None:
        """A pod shows that it has an address of which nobody knew who has it."""
        with self._stopping_at_contradictions:
            adopted = self._kept.adopt(ip, owner)
        if adopted:
            self._took(owner)

    def prove_free(self, contested: Collection[str] = ()) -> int:
        """Nobody has what is still in quarantine, but for what is contested. Answers how many that were."""
        with self._stopping_at_contradictions:
            proven = self._kept.prove_free(contested)
        self._tell(self.on_change)
        self._tell(self.on_supply)
        return proven

    # What the cluster does

    def bind(self, identity: Identity) -> None:
        """These are the addresses of this Node."""
        with self._stopping_at_contradictions:
            self._kept.bind(identity)

    def doubt_it(self, mark: str) -> None:
        """The NodeNetworkConfig went: should it be back, it may be of the past."""
        with self._stopping_at_contradictions:
            self._kept.doubt_it(mark)

    def believe(self) -> None:
        """The NodeNetworkConfig is of the present, and what it shows was taken in."""
        with self._stopping_at_contradictions:
            self._kept.believe()

    def apply(self, container: Container) -> None:
        """A container is now like this; its addresses can be used at once."""
        with self._stopping_at_contradictions:
            applied = self._kept.apply(container)
            if self.pool.counts(container.id).pending_programming:
                # Asked of the pool, not of what was just granted: the program may have died before this step.
                self._kept.programmed(container.addresses)
        self._sound(applied)
        self._tell(self.on_supply)

    def carry_over(self, container: Container, former: Collection[str]) -> None:
        """The machine is another Node by now: what the container grants of former ones goes on under new names."""
        with self._stopping_at_contradictions:
            names = self._kept.carry_over(container, former)
        if names:
            self._log.info("addresses go on under a new Node", container=container.id, addresses=len(names))

    def recover(self, container: Container, named: Iterable[str]) -> None:
        """A container of which the records are lost: nothing in it is known to be free."""
        with self._stopping_at_contradictions:
            applied = self._kept.recover(container, named)
        if applied.granted:
            self._log.warning(
                RECORDS_LOST, reason=self.lost, container=container.id, addresses=len(applied.granted)
            )
        self._sound(applied)

    def withdraw(self, container_id: str) -> None:
        """A container is no longer the node's. What pods have of it stays theirs."""
        former, present = self.identity, self._present
        with self._stopping_at_contradictions:
            applied = self._kept.withdraw(container_id)
        if former is None or present is None or former.node_uid == present.node_uid:
            self._sound(applied)
        elif applied.alarms:
            kept = self.pool.counts(container_id).orphaned if container_id in self.pool.containers() else 0
            self._alarm(
                len(applied.alarms),
                f"the journal is that of the Node with uid {former.node_uid}, and this one's is {present.node_uid}: of "
                f"the {len(applied.alarms)} addresses of container {container_id} none is handed out any more, and {kept} "
                "stay with the sandboxes that have them; if this machine never was that Node, stop the agent and empty "
                "its state directory",
            )

    def name_for_release(self, container_id: str, count: int) -> tuple[str, ...]:
        """Give up that many of a container's free addresses, for good."""
        with self._stopping_at_contradictions:
            return self._kept.name_for_release(container_id, count)

    def give_up_what_drains(self, container_id: str, cidrs: Sequence[IPNetwork]) -> tuple[str, ...]:
        """Give up those of a container's free addresses that are in CIDRs that drain, for good."""
        with self._stopping_at_contradictions:
            return self._kept.name_idle_in(container_id, cidrs)

    # How it is kept

    def _took(self, owner: Owner) -> None:
        self.demand.taken(owner)
        self._reconsider(owner)

    def _reconsider(self, owner: Owner) -> None:
        """Something changed about one of a pod's sandboxes."""
        self.suspects.reconsider((reference_of(owner),), self._clock.monotonic())
        self._tell(self.on_change)

    def _sound(self, applied: Applied) -> None:
        if applied.alarms:
            first, others = applied.alarms[0], len(applied.alarms) - 1
            self._alarm(len(applied.alarms), f"{first}; and so of {others} others" if others else first)

    def _alarm(self, count: int, words: str) -> None:
        """One line, of however many addresses it is true."""
        self.alarms += count
        self._log.error("the cluster contradicts the pool", alarm=words)

    def _tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener()


class _Stop:
    """The context of every change to the pool: the first that breaks an invariant is the last."""

    __slots__ = ("_holdings",)

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings

    def __enter__(self) -> None:
        if self._holdings.failure is not None:
            raise self._holdings.failure

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, StopError):
            self._holdings.failure = error
            self._holdings.failed.set()
