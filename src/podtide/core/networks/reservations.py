"""The reservations of one pool's addresses, as far as this node knows: one table of what can become of each.

A reservation keeps an address from pods of other pools that overlap this one. It is made before the pool is written, and
deleted after; so between the two there is a reservation without an allocation, and never an allocation without one.

    event          none      made      held      leaving
    ASKED          made      made      held      made       an ADD, or a put-back, wants the address reserved
    WRITTEN        -         held      held      -          the pool was written: it has the address for the interface
    LOST           -         -         none      -          the pool was read, and has it no more: repair took it back
    LEFT           leaving   leaving   leaving   leaving    the interface goes: the reservation is to be deleted
    HANDED_ON      none      none      none      none       another sandbox of the pod has the address, and this with it
    REFUSED        -         none      none      -          it is another pod's
    GIVEN_UP       -         -         -         none       it is deleted

Whatever is not in the table cannot happen. Addresses with an entry here, and those that were refused a short while ago, are
withheld: the pool offers them to no other interface.

Reservations are also other programs' to delete: repair deletes one that no pool has an entry for, and so may people. So
what was seen of one, that it is ours or another's, expires after a while and is then asked again.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from enum import Enum, auto

from msgspec import Struct

from podtide.core.networks.allocations import Allocation
from podtide.core.ranges import IPAddress

Key = tuple[str, str]
"""A sandbox and its interface."""

SEEN_SECONDS = 60.0
"""How long what was seen of a reservation counts. Less than repair lets pass before it collects one."""


class Life(Enum):
    """Where a reservation is in its life."""

    MADE = auto()
    """Wanted for an interface; the pool does not have the address for it yet."""
    HELD = auto()
    """The pool has the address for the interface."""
    LEAVING = auto()
    """To be deleted."""


class Turn(Enum):
    """What happens to a reservation."""

    ASKED = auto()
    WRITTEN = auto()
    LOST = auto()
    LEFT = auto()
    HANDED_ON = auto()
    REFUSED = auto()
    GIVEN_UP = auto()


TURNS: Mapping[tuple[Life | None, Turn], Life | None] = {
    (None, Turn.ASKED): Life.MADE,
    (None, Turn.LEFT): Life.LEAVING,
    (None, Turn.HANDED_ON): None,
    (Life.MADE, Turn.ASKED): Life.MADE,
    (Life.MADE, Turn.WRITTEN): Life.HELD,
    (Life.MADE, Turn.LEFT): Life.LEAVING,
    (Life.MADE, Turn.HANDED_ON): None,
    (Life.MADE, Turn.REFUSED): None,
    (Life.HELD, Turn.ASKED): Life.HELD,
    (Life.HELD, Turn.WRITTEN): Life.HELD,
    (Life.HELD, Turn.LOST): None,
    (Life.HELD, Turn.LEFT): Life.LEAVING,
    (Life.HELD, Turn.HANDED_ON): None,
    (Life.HELD, Turn.REFUSED): None,
    (Life.LEAVING, Turn.ASKED): Life.MADE,
    (Life.LEAVING, Turn.LEFT): Life.LEAVING,
    (Life.LEAVING, Turn.HANDED_ON): None,
    (Life.LEAVING, Turn.GIVEN_UP): None,
}


class ReservationVersion(Struct, frozen=True):
    """The object as it was last seen: another writer since may have made it another pod's."""

    uid: str
    resource_version: str


class Reservation(Struct):
    """One address reserved for one interface."""

    name: str
    """Of the object."""
    holder: Allocation
    life: Life
    version: ReservationVersion | None = None
    """None while it is not known whether the object exists."""
    seen_at: float = 0.0


class ReservationRequest(Struct, frozen=True):
    """The object to create, or to take over."""

    address: IPAddress
    name: str
    holder: Allocation
    before: Allocation | None
    """Who had the address by the pool, if the holder has it from there: an earlier sandbox of its pod."""

    @property
    def key(self) -> Key:
        """The interface that it is for."""
        return self.holder.id, self.holder.ifname


class Reservations:
    """What this node has reserved, or is about to, of one pool."""

    def __init__(self) -> None:
        self._by_key: dict[Key, dict[IPAddress, Reservation]] = {}
        self._refused_at: dict[IPAddress, float] = {}

    def knows(self, key: Key) -> bool:
        """Whether anything is reserved for the interface, or still to be deleted."""
        return key in self._by_key

    def preferred(self, key: Key) -> tuple[IPAddress, ...]:
        """What is reserved for the interface already: an earlier attempt of its ADD came that far."""
        there = self._by_key.get(key, {})
        return tuple(address for address, each in there.items() if each.life is not Life.LEAVING)

    def leaving(self, key: Key) -> dict[IPAddress, Reservation]:
        """What is to be deleted of the interface."""
        there = self._by_key.get(key, {})
        return {address: each for address, each in there.items() if each.life is Life.LEAVING}

    def withheld(self) -> Iterator[IPAddress]:
        """The addresses that must not be offered to other interfaces."""
        for there in self._by_key.values():
            yield from there
        yield from self._refused_at

    def expire_refusals(self, now: float) -> list[IPAddress]:
        """Forget refusals of a while ago, because the address may be free by now; answers those addresses."""
        expired = [address for address, at in self._refused_at.items() if at + SEEN_SECONDS <= now]
        for address in expired:
            del self._refused_at[address]
        return expired

    def doubt(self) -> None:
        """Whether the objects exist is unknown from now on: each is asked for again before it counts."""
        for there in self._by_key.values():
            for each in there.values():
                if each.life is not Life.LEAVING:
                    each.version = None

    # What happens to one

    def ask(self, wanted: ReservationRequest, now: float, *, afresh: bool = False) -> bool:
        """An interface is to have the address. Answers whether the object has to be created or looked at.

        With `afresh`, what was seen of it a while ago does not count.
        """
        there = self._by_key.get(wanted.key, {}).get(wanted.address)
        was_leaving = there is not None and there.life is Life.LEAVING
        self._turn(wanted.key, wanted.address, Turn.ASKED, wanted.name, wanted.holder)
        reserved = self._by_key[wanted.key][wanted.address]
        is_known = reserved.version is not None and now < reserved.seen_at + SEEN_SECONDS
        if is_known and not afresh and not was_leaving:
            self._hand_on(wanted)
            return False
        reserved.version = None
        return True

    def seen(self, wanted: ReservationRequest, version: ReservationVersion, now: float) -> None:
        """The object exists, and is the interface's."""
        if (reserved := self._by_key.get(wanted.key, {}).get(wanted.address)) is not None:
            reserved.version, reserved.seen_at = version, now
        self._hand_on(wanted)

    def _hand_on(self, wanted: ReservationRequest) -> None:
        """The object names this sandbox: an earlier one of the pod has it no more, and its DEL deletes nothing of it."""
        before = wanted.before
        if before is not None and before.id != wanted.holder.id:
            self._turn((before.id, before.ifname), wanted.address, Turn.HANDED_ON)

    def refused(self, wanted: ReservationRequest, now: float) -> None:
        """The object is another pod's."""
        self._refused_at[wanted.address] = now
        if wanted.address in self.preferred(wanted.key):
            self._turn(wanted.key, wanted.address, Turn.REFUSED)

    def written(self, key: Key, address: IPAddress) -> None:
        """The pool has the address for the interface."""
        if address in self.preferred(key):
            self._turn(key, address, Turn.WRITTEN)

    def pool_read(self, held_by: Callable[[str, str], Container[IPAddress]]) -> None:
        """The pool was read: what it held for interfaces and holds no more was taken back, and withholds nothing."""
        for key, there in tuple(self._by_key.items()):
            held = held_by(*key)
            lost = [a for a, each in there.items() if each.life is Life.HELD and a not in held]
            for address in lost:
                self._turn(key, address, Turn.LOST)

    def leave(self, key: Key, had: Mapping[IPAddress, tuple[str, Allocation]]) -> list[IPAddress]:
        """The interface goes: what is reserved for it is to be deleted. Answers the addresses that this withholds.

        `had` is what it had by the pool, with the names of reservations that there may be of it.
        """
        for address, (name, holder) in had.items():
            self._turn(key, address, Turn.LEFT, name, holder)
        for address in self.preferred(key):
            self._turn(key, address, Turn.LEFT)
        return list(self.leaving(key))

    def hand_back(self, key: Key, address: IPAddress, holder: Allocation) -> None:
        """What the interface leaves is not deleted: by the pool, another sandbox of its pod has the address, and this with it."""
        reserved = self._by_key[key][address]
        self._turn(key, address, Turn.HANDED_ON)
        others = self._by_key.setdefault((holder.id, holder.ifname), {})
        if address not in others:
            reserved.life = Life.HELD
            others[address] = reserved

    def given_up(self, key: Key, address: IPAddress, reserved: Reservation) -> bool:
        """The object is deleted. Answers whether that frees the address: its pod's next ADD may have it again."""
        if self._by_key.get(key, {}).get(address) is not reserved or reserved.life is not Life.LEAVING:
            return False
        self._turn(key, address, Turn.GIVEN_UP)
        return True

    def _turn(
        self,
        key: Key,
        address: IPAddress,
        turn: Turn,
        name: str = "",
        holder: Allocation | None = None,
    ) -> None:
        there = self._by_key.setdefault(key, {})
        reserved = there.get(address)
        life = TURNS[reserved.life if reserved else None, turn]
        if life is None:
            there.pop(address, None)
        elif reserved is not None:
            reserved.life = life
        else:
            assert holder is not None
            there[address] = Reservation(name, holder, life)
        if not there:
            del self._by_key[key]
