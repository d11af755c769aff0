"""Rounds of one node on a pool with a bad connection, beside other pools that reserve the same addresses.

The machine is the loop around a round without anything asynchronous: a server with the pool and the reservations, requests
and answers that are lost at every step, an agent that is restarted at any time, and pods with several sandboxes.
"""

from collections import Counter
from ipaddress import ip_network
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec import Struct

from examples import examples
from podtide.core.errors import RangeFull, RetryError
from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation, is_same_holder
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.networks.reservations import (
    Key,
    Reservation,
    ReservationRequest,
    Reservations,
    ReservationVersion,
)
from podtide.core.networks.restoration import Restoration
from podtide.core.networks.round import (
    AddRequest,
    DelRequest,
    Placed,
    ReservationAnswer,
    Round,
    Unanswered,
)
from podtide.core.ranges import AddressRange, IPAddress

NETWORK = ip_network("10.0.0.0/29")
BOUNDS = AddressRange(NETWORK, (Interval(1, 6),))
ADDRESSES = list(NETWORK.hosts())
FATES = st.sampled_from(["done"] * 4 + ["request lost", "answer lost"])
OTHERS = "others/pod"


class Lost(Exception):
    """A request or its answer did not arrive."""


class Reserved(Struct):
    """A reservation as the server has it."""

    holder: Allocation
    version: int


class Server:
    """The pool and the reservations, with versions."""

    def __init__(self) -> None:
        self.version = 0
        self.pool_version = 0
        self.entries: dict[str, Allocation] = {}
        self.reserved: dict[str, Reserved] = {}

    def reserve(self, wanted: ReservationRequest) -> ReservationVersion | None:
        there = self.reserved.get(wanted.name)
        if there is not None:
            is_before = wanted.before is not None and there.holder.podref == wanted.before.podref
            if not is_same_holder(there.holder, wanted.holder) and not is_before:
                return None
        self.version += 1
        self.reserved[wanted.name] = Reserved(wanted.holder, self.version)
        return ReservationVersion("", str(self.version))

    def unreserve(self, reserved: Reservation) -> None:
        there = self.reserved.get(reserved.name)
        if there is None:
            return
        is_as_seen = reserved.version is not None and reserved.version.resource_version == str(there.version)
        is_its_own = there.holder.podref == reserved.holder.podref and there.holder.id == reserved.holder.id
        if is_as_seen or is_its_own:
            del self.reserved[reserved.name]


class RoundMachine(RuleBasedStateMachine):
    """One node."""

    sandboxes = Bundle("sandboxes")

    @initialize()
    def begin(self) -> None:
        self.server = Server()
        self.now = 0.0
        self.number = 0
        self.sandboxes_of = Counter[str]()
        self.waiting: dict[Key, Allocation] = {}
        self.leaving: set[Key] = set()
        self.has: dict[Key, tuple[Allocation, IPAddress]] = {}
        """What sandboxes were answered, until their DEL comes."""
        self.restart()
        self.was_restarted = False

    # What others do

    @rule(target=sandboxes, pod=st.sampled_from(["a", "b", "c", "d"]))
    def pod_asks(self, pod: str) -> Allocation:
        self.number += 1
        self.sandboxes_of[f"default/{pod}"] += 1
        holder = Allocation(f"c{self.number}", f"default/{pod}", "net1", f"uid-{pod}")
        self.waiting[holder.id, holder.ifname] = holder
        return holder

    @rule(target=sandboxes, sandbox=consumes(sandboxes))
    def pod_asks_again(self, sandbox: Allocation) -> Allocation:
        if (sandbox.id, sandbox.ifname) not in self.leaving:
            self.waiting[sandbox.id, sandbox.ifname] = sandbox
        return sandbox

    @rule(sandbox=consumes(sandboxes))
    def pod_leaves(self, sandbox: Allocation) -> None:
        key = sandbox.id, sandbox.ifname
        self.waiting.pop(key, None)
        self.has.pop(key, None)
        self.leaving.add(key)

    @rule(address=st.sampled_from(ADDRESSES))
    def another_pool_reserves(self, address: IPAddress) -> None:
        holder = Allocation("x", OTHERS, "net1", "other")
        self.server.reserve(ReservationRequest(address, str(address), holder, None))

    @rule(address=st.sampled_from(ADDRESSES))
    def another_pool_gives_back(self, address: IPAddress) -> None:
        there = self.server.reserved.get(str(address))
        if there is not None and there.holder.podref == OTHERS:
            del self.server.reserved[str(address)]

    @rule(seconds=st.sampled_from([1.0, 30.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.was_restarted = True
        self.reservations = Reservations()
        self.restoration = Restoration(is_shared=True, patience_seconds=360.0)
        self.copy: PoolCopy | None = None
        self.copy_version = -1

    @rule()
    def connection_is_new(self) -> None:
        self.reservations.doubt()
        self.copy = None

    # The loop

    @rule(data=st.data())
    def round(self, data: st.DataObject) -> None:
        self.carry_out(lambda: data.draw(FATES))

    def carry_out(self, fate: Any) -> None:
        adds = {
            AddRequest(holder, BOUNDS, str): key
            for key, holder in self.waiting.items()
            if key not in self.leaving
        }
        dels = [DelRequest(key, str) for key in sorted(self.leaving)]
        try:
            is_fresh = self.copy is None or any(self.copy.holds(key) for key in adds.values())
            if is_fresh or not all(self.copy is not None and self.copy.holds(each.key) for each in dels):
                is_fresh = True
                self.read()
            copy = self.copy
            assert copy is not None
            decided = Round(
                copy,
                self.reservations,
                self.restoration,
                list(adds),
                dels,
                is_ours=lambda _: False,
                is_fresh=is_fresh,
                now=self.now,
            )
            while decided.wanted:
                answers = [self.reserve(each, fate()) for each in decided.wanted]
                decided.take(answers, over=self.leaving, now=self.now)
            if decided.reread:
                raise Lost  # noqa: TRY301 - as a lost write does
            if copy.is_changed:
                self.write(copy, fate())
        except Lost:
            self.copy = None
            return
        self.conclude(decided, adds, dels, fate)

    def conclude(
        self, decided: Round, adds: dict[AddRequest, Key], dels: list[DelRequest], fate: Any
    ) -> None:
        for add, error in decided.failed:
            assert isinstance(error, RangeFull)
            del self.waiting[adds[add]]
        for add, placed in decided.placed:
            self.answer(add, placed)
            del self.waiting[adds[add]]
        for each in dels:
            self.give_up(each.key, fate)

    def answer(self, add: AddRequest, placed: Placed) -> None:
        self.reservations.written(add.key, placed.address)
        if add.key in self.has:
            assert self.has[add.key][1] == placed.address, "the same again for the same sandbox"
        self.has[add.key] = add.holder, placed.address

    def read(self) -> None:
        self.copy = copy = PoolCopy(NETWORK, self.server.entries)
        self.copy_version = self.server.pool_version
        self.reservations.pool_read(copy.allocations.held_by)
        self.reservations.expire_refusals(self.now)
        copy.withhold(self.reservations.withheld())

    def reserve(self, wanted: ReservationRequest, fate: str) -> ReservationAnswer:
        lost = Unanswered(RetryError(fate), will_pass=True)
        if fate == "request lost":
            return lost
        answer = self.server.reserve(wanted)
        return lost if fate == "answer lost" else answer

    def write(self, copy: PoolCopy, fate: str) -> None:
        if fate == "request lost" or self.copy_version != self.server.pool_version:
            raise Lost
        self.server.entries = dict(copy.allocations.render())
        self.server.pool_version += 1
        if fate == "answer lost":
            raise Lost
        self.copy_version = self.server.pool_version
        copy.written()

    def give_up(self, key: Key, fate: Any) -> None:
        for address, reserved in self.reservations.leaving(key).items():
            if (lot := fate()) == "request lost":
                continue
            self.server.unreserve(reserved)
            if lot == "done" and self.reservations.given_up(key, address, reserved) and self.copy:
                self.copy.restore([address])
        if not self.reservations.leaving(key):
            self.leaving.discard(key)

    # What must be so

    @invariant()
    def what_was_answered_is_held_and_reserved(self) -> None:
        by_address: dict[IPAddress, str] = {}
        for (sandbox, _), (holder, address) in self.has.items():
            assert by_address.setdefault(address, holder.podref) == holder.podref, "one address, two pods"
            entry = self.server.entries.get(str(ADDRESSES.index(address) + 1))
            assert entry is not None
            assert sandbox in entry.sandboxes
            assert self.server.reserved[str(address)].holder.podref == holder.podref

    def teardown(self) -> None:
        """When all sandboxes are deleted and nothing is lost any more, nothing is left."""
        if not hasattr(self, "server"):
            return
        self.leaving |= {*self.waiting, *self.has}
        self.has.clear()
        for entry in self.server.entries.values():
            self.leaving |= {(sandbox, entry.ifname) for sandbox in entry.sandboxes}
        self.waiting.clear()
        for _ in range(3):
            self.carry_out(lambda: "done")
        assert self.server.entries == {}
        assert self.leaving == set()
        if (
            not self.was_restarted
        ):  # else repair finds what is left, and so where sandboxes of one pod took turns
            left = {each.holder.podref for each in self.server.reserved.values()} - {OTHERS}
            assert not [pod for pod in left if self.sandboxes_of[pod] == 1]


def test_what_was_answered_is_held_and_reserved_whatever_is_lost() -> None:
    run_state_machine_as_test(RoundMachine, settings=examples(300, stateful_step_count=40))
