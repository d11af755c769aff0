"""One round for one pool: all ADDs and DELs that wait at one moment, decided together and written together.

    copy of the pool, reservations known, requests that wait, time  →  answers, writes, next state

A round decides and does nothing. Its caller makes the reservations that it wants (`wanted`), tells it what came of them
(`take`), until it wants no more; then the pool is written, if the copy was changed, and only after that was acknowledged the
answers leave. What a write came to may be unknown, and a shared pool may have changed: either way the pool is read and
everything is decided anew. That gives the same answers, because an interface that has an address is given it again.

Order of writes, for addresses that are reserved across pools: the reservation first, then the pool; at a DEL the pool
first, then the reservation. So a crash in between leaves a reservation too many, which the next ADD of the pod takes
over, or repair collects; it never leaves an allocation that other pools do not see.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from msgspec import Struct

from podtide.core.errors import PodtideError, RangeFull
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.pool_copy import PoolCopy, PoolTooLarge
from podtide.core.networks.reservations import Key, ReservationRequest, Reservations, ReservationVersion
from podtide.core.networks.restoration import Restoration
from podtide.core.ranges import AddressRange, IPAddress

ReservationName: TypeAlias = Callable[[IPAddress], str]


class Unanswered(Struct, frozen=True):
    """A reservation could not be made."""

    error: Exception
    will_pass: bool
    """Whether a retry may help; otherwise a person has to correct something."""


ReservationAnswer: TypeAlias = ReservationVersion | Unanswered | None
"""What came of a wanted reservation; None when it is another pod's."""


class AddRequest(Struct, frozen=True, eq=False):
    """An interface that is to have an address."""

    holder: Allocation
    bounds: AddressRange
    reservation_name: ReservationName | None
    """None where addresses are not reserved across pools."""
    refusal: PodtideError | None = None
    """Why the pool, as it was read, must not serve this request."""

    @property
    def key(self) -> Key:
        """The sandbox and its interface."""
        return self.holder.id, self.holder.ifname


class DelRequest(Struct, frozen=True, eq=False):
    """An interface that gives back what it has."""

    key: Key
    reservation_name: ReservationName | None


class Placed(Struct, frozen=True):
    """An address that an interface has, and whether it has it by this very call."""

    address: IPAddress
    is_new: bool


class _Offer(Struct, frozen=True):
    """An address for one who adds, not yet reserved."""

    add: AddRequest
    address: IPAddress
    before: Allocation | None
    """Who had it before: the interface itself, or an earlier sandbox of the pod."""


class Round:
    """The decisions of one round."""

    def __init__(  # noqa: PLR0913 - all that the decisions depend on
        self,
        copy: PoolCopy,
        reservations: Reservations,
        restoration: Restoration,
        adds: Sequence[AddRequest],
        dels: Sequence[DelRequest],
        *,
        is_ours: Callable[[Allocation], bool],
        is_fresh: bool,
        now: float,
    ) -> None:
        """`is_fresh` is whether the copy was read for this round, so that what it lacks is lacking."""
        self.placed: list[tuple[AddRequest, Placed]] = []
        self.failed: list[tuple[AddRequest, Exception]] = []
        self.again: list[AddRequest] = []
        """To be decided anew in the next round."""
        self.contested: list[tuple[AddRequest, IPAddress]] = []
        """What the pool had for an interface, and is reserved for another pod: it got another address."""
        self.trouble = ""
        """Why something has to be tried again."""
        self.reread = ""
        """Why all of it has to be decided by a pool that is read anew."""
        self.wanted: list[ReservationRequest] = []
        """Reservations to make before the round can go on."""
        self._copy = copy
        self._reservations = reservations
        self._restoration = restoration
        self._is_ours = is_ours
        self._is_fresh = is_fresh
        self._offers: list[_Offer] = []
        self._waiting: list[AddRequest] = []
        self.freed = [self._free(each) for each in dels]
        if restoration.is_held_up(now):
            self.again += adds
        else:
            self._waiting = list(adds)
            self._go_on((), now)

    def take(self, answers: Sequence[ReservationAnswer], *, over: Collection[Key], now: float) -> None:
        """What came of each wanted reservation. `over` are interfaces that ask no longer."""
        offers = dict(zip((wanted.key for wanted in self.wanted), answers, strict=True))
        for wanted, answer in zip(self.wanted, answers, strict=True):
            if isinstance(answer, ReservationVersion):
                self._reservations.seen(wanted, answer, now)
            elif answer is None:
                self._reservations.refused(wanted, now)
        for offer in self._offers:
            self._settle(offer, offers[offer.add.key], is_over=offer.add.key in over)
        self.wanted, self._offers = [], []
        self._go_on(over, now)

    def _free(self, request: DelRequest) -> tuple[IPAddress, ...]:
        """Take the interface off the pool; answers what is free now."""
        left = self._copy.release(*request.key)
        name = request.reservation_name
        had = {address: (name(address), holder) for address, holder in left.items()} if name else {}
        for address in self._reservations.leave(request.key, had):
            if not self._copy.covers(address):
                continue
            if (holder := self._copy.allocations.holder(address)) is not None:
                # An earlier sandbox of the pod has it, and may be the one that lives.
                self._reservations.hand_back(request.key, address, holder)
            else:
                self._copy.withhold([address])
        return tuple(address for address in left if self._copy.allocations.holder(address) is None)

    def _go_on(self, over: Collection[Key], now: float) -> None:
        """Offer addresses until reservations are wanted, or everything is decided."""
        while self._waiting and not self.wanted and not self.reread:
            first, self._waiting = _one_of_each_pod(self._waiting)
            for add in first:
                if (offer := self._offer(add, over)) is None:
                    continue
                wanted = self._reservation(offer)
                if wanted is not None and self._reservations.ask(wanted, now):
                    self.wanted.append(wanted)
                    self._offers.append(offer)
                else:
                    self._place(offer)

    def _offer(self, add: AddRequest, over: Collection[Key]) -> _Offer | None:
        """An address for one who waits; None if there is none, or it waits no longer."""
        if add.key in over:
            return None
        if add.refusal is not None:
            self.failed.append((add, add.refusal))
            return None
        self._restoration.asks(self._copy, add.holder, self._is_ours)
        try:
            address, before = self._copy.give(
                add.holder,
                add.bounds,
                is_ours=self._is_ours,
                is_ghost=self._restoration.is_ghost,
                preferred=self._reservations.preferred(add.key),
            )
        except (RangeFull, PoolTooLarge) as error:
            if self._is_fresh:
                self.failed.append((add, error))
            else:  # repair, or another node, may have made room since
                self.reread = str(error)
            return None
        return _Offer(add, address, before)

    def _reservation(self, offer: _Offer) -> ReservationRequest | None:
        add = offer.add
        if add.reservation_name is None:
            return None
        return ReservationRequest(
            offer.address, add.reservation_name(offer.address), add.holder, offer.before
        )

    def _settle(self, offer: _Offer, answer: ReservationAnswer, *, is_over: bool) -> None:
        if answer is None:
            if offer.before is not None:
                self.contested.append((offer.add, offer.address))
            self._copy.set_holder(offer.address, None)
            self._copy.withhold([offer.address])
            self._waiting.append(offer.add)
        elif isinstance(answer, Unanswered):
            self._copy.set_holder(offer.address, offer.before)
            if answer.will_pass:
                self.trouble = str(answer.error)
                self.again.append(offer.add)
            else:
                self.failed.append((offer.add, answer.error))
        elif is_over and offer.before is None:
            self._copy.set_holder(offer.address, None)  # the interface is gone: nothing is to have it
        else:
            self._place(offer)

    def _place(self, offer: _Offer) -> None:
        self.placed.append((offer.add, Placed(offer.address, offer.before is None)))


def _one_of_each_pod(adds: Sequence[AddRequest]) -> tuple[list[AddRequest], list[AddRequest]]:
    """Those that can be served side by side, and the rest: sandboxes of one pod get the same address."""
    first: dict[tuple[str, str], AddRequest] = {}
    rest = [
        each for each in adds if first.setdefault((each.holder.podref, each.holder.ifname), each) is not each
    ]
    return list(first.values()), rest
