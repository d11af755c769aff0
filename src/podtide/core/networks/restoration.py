"""What sandboxes of this node were given of one pool, compared with the pool: what to put back after a restore of etcd.

Whenever the pool is read, it is compared with the node's record before anything is decided by it
(`recorded_addresses.standing_of`). A pool in an earlier version than was seen before went back with the whole cluster.
Then all nodes do the same at the same time, and until they have, what a shared pool shows as free may be in use: nothing
new is given of it for a moment (`is_held_up`).

Entries of this node's pods that no sandbox has are ghosts: given up since the backup, and back with it. They are not given
again, because another node may have given the address since; and that node puts it back over them. Those that no node
claimed in as long as repair would wait are removed.

A pod whose sandbox is replaced keeps its address, unless that could not be put back in time: then the newer sandbox has
another, and the older one, whose DEL may never come, is given up after as long as repair would wait.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct, field

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.networks.recorded_addresses import Standing, is_of_one_pod, standing_of
from podtide.core.networks.reservations import Key, ReservationRequest
from podtide.core.ranges import IPAddress

HOLD_SECONDS = 30.0
"""Longer than it takes to find an API server again that was away (5 s), and two requests without an answer."""
_LOOK_AGAIN_SECONDS = 20.0
_RETRY_SECONDS = 1.0

Place = tuple[Key, IPAddress]


class RecordedAddress(Struct, frozen=True, kw_only=True):
    """An address that a sandbox's interface has by the node's record."""

    address: IPAddress
    holder: Allocation
    reservation_name: str
    """"" where addresses are not reserved across pools."""
    is_from_before: bool = False
    """Whether the pool went back since it last had it for the sandbox."""

    @property
    def key(self) -> Key:
        """The sandbox and its interface."""
        return self.holder.id, self.holder.ifname

    @property
    def place(self) -> Place:
        """The interface and the address."""
        return self.key, self.address


class PutBack(Struct, frozen=True):
    """An address to be put back into the pool, once it is reserved."""

    recorded: RecordedAddress
    there: Allocation | None
    """Who has it by the pool."""

    @property
    def reservation(self) -> ReservationRequest | None:
        """What is to be reserved afresh: whatever took the entry from the pool has taken the reservation too."""
        recorded = self.recorded
        if not recorded.reservation_name:
            return None
        return ReservationRequest(recorded.address, recorded.reservation_name, recorded.holder, self.there)

    @property
    def instead_of(self) -> str:
        """The other pod that loses the entry; "" when there is none."""
        there = self.there
        return there.podref if there is not None and not is_of_one_pod(self.recorded.holder, there) else ""


class Comparison(Struct):
    """What a comparison came to."""

    put_back: list[PutBack] = field(default_factory=list)
    confirmed: list[RecordedAddress] = field(default_factory=list)
    """What the pool has for the sandbox."""
    forgotten: list[RecordedAddress] = field(default_factory=list)
    """What is to be removed from the record."""


class Restoration:
    """Compares one pool with the record."""

    def __init__(
        self, *, is_shared: bool, patience_seconds: float, went_back_at: float | None = None
    ) -> None:
        """`patience_seconds` is as long as repair waits, `went_back_at` when an agent before this one saw the pool go back."""
        self.alarms: list[tuple[RecordedAddress, str]] = []
        """What may be in use twice, with the reason, each once; the caller takes them away."""
        self._is_shared = is_shared
        self._patience_seconds = patience_seconds
        self._went_back_at = went_back_at
        """Since when there may be ghosts; None when there are none."""
        self._recorded: dict[Place, RecordedAddress] = {}
        self._missing_since: dict[Place, float] = {}
        self._superseded_since: dict[Place, float] = {}
        """What a pod's newer sandbox has another address for."""
        self._said: set[Place] = set()
        self._leaving: set[Key] = set()
        self._asked: set[tuple[str, str]] = set()
        """Pods, and their interfaces, that asked while there were ghosts."""
        self._is_settled = True
        self._has_failed = False
        """Whether something could not be found out, or reserved, when the pool was last read."""

    def is_held_up(self, now: float) -> bool:
        """Whether other nodes may not have put back yet what their sandboxes have."""
        at = self._went_back_at
        return at is not None and self._is_shared and now < at + HOLD_SECONDS

    @property
    def look_again_seconds(self) -> float | None:
        """In how many seconds the pool has to be compared again; None when there is no need."""
        if self._has_failed:
            return _RETRY_SECONDS
        return None if self._is_settled and self._went_back_at is None else _LOOK_AGAIN_SECONDS

    def went_back(self, now: float) -> None:
        """The pool was seen in an earlier version than before, or is gone although it was there."""
        self._went_back_at = now
        self._missing_since.clear()

    def vanished(self, *, has_any: bool) -> None:
        """There is no pool; `has_any` is whether sandboxes have anything of it."""
        self._is_settled = not has_any

    def leave(self, key: Key) -> None:
        """The interface's DEL has come. However long it takes to be carried out, nothing is taken from others for it."""
        self._leaving.add(key)

    def given(self, recorded: RecordedAddress) -> None:
        """An interface has this address from now on, by pool and record."""
        self._leaving.discard(recorded.key)
        self._recorded[recorded.place] = recorded

    def released(self, keys: Collection[Key]) -> None:
        """The interfaces' DELs were carried out."""
        self._leaving.difference_update(keys)
        self._recorded = {place: each for place, each in self._recorded.items() if each.key not in keys}

    # A pool that was read

    def pods_in_question(self, copy: PoolCopy, recorded: Sequence[RecordedAddress]) -> list[RecordedAddress]:
        """What the pool lacks although it did not go back: whether to put it back depends on whether its pod exists."""
        return [
            each
            for each in recorded
            if copy.covers(each.address)
            and copy.allocations.holder(each.address) is None
            and not each.is_from_before
        ]

    def compare(
        self,
        copy: PoolCopy,
        recorded: Sequence[RecordedAddress],
        exists: Mapping[Place, bool | None],
        now: float,
    ) -> Comparison:
        """What to do about each address on record.

        `exists` tells of the pods in question whether they are there; None when it could not be found out.
        """
        self._recorded = {each.place: each for each in recorded}
        self._is_settled, self._has_failed = True, False
        comparison = Comparison()
        superseded = self._superseded(recorded, now)
        for each in recorded:
            if not copy.covers(each.address):
                self._alarm(each, f"is outside of the node's slice, which is {copy.allocations.range} now")
            elif now - superseded.get(each.place, now) >= self._patience_seconds:
                self._abandon(copy, each, comparison)
            else:
                self._compare(copy, each, exists.get(each.place, True), comparison, now)
        return comparison

    def put(self, copy: PoolCopy, put_back: PutBack) -> None:
        """It is reserved: the pool is to have it for the sandbox again."""
        recorded, there = put_back.recorded, put_back.there
        before = there if there is not None and is_of_one_pod(recorded.holder, there) else None
        copy.set_holder(recorded.address, recorded.holder.taking_over(before))

    def refused(self, copy: PoolCopy, put_back: PutBack) -> None:
        """Its reservation is another pod's."""
        self._alarm(put_back.recorded, "is reserved for another pod")
        copy.withhold([put_back.recorded.address])

    def unanswered(self, copy: PoolCopy, recorded: RecordedAddress) -> None:
        """Something about it could not be found out, or reserved: it is tried again soon, and holds up no other."""
        self._has_failed = True
        copy.withhold([recorded.address])

    def remove_ghosts(self, copy: PoolCopy, now: float) -> bool:
        """Remove what came back with a backup, once no node can claim it any more. Answers whether that is done now."""
        at = self._went_back_at
        if at is None or now < at + self._patience_seconds:
            return False
        pods = self._asked | {(each.holder.podref, each.holder.ifname) for each in self._recorded.values()}
        for address, there in tuple(copy.allocations):
            if (there.podref, there.ifname) in pods and not self._is_recorded(address, there):
                copy.set_holder(address, None)
        self._went_back_at = None
        self._asked.clear()
        return True

    def asks(self, copy: PoolCopy, pod: Allocation, is_ours: Callable[[Allocation], bool]) -> None:
        """The pod asks for an address: it is this node's, and so are its ghosts."""
        held = copy.allocations.of_its_pod(pod, is_ours)
        if self._went_back_at is not None and next(held, None) is not None:
            self._asked.add((pod.podref, pod.ifname))

    def is_ghost(self, address: IPAddress, there: Allocation) -> bool:
        """Whether the pool has this for a pod of this node that gave it up after the backup."""
        return self._went_back_at is not None and not self._is_recorded(address, there)

    # Details

    def _superseded(self, recorded: Sequence[RecordedAddress], now: float) -> Mapping[Place, float]:
        """Since when newer sandboxes have other addresses instead; `recorded` is in the order in which they were given."""
        last = {(each.holder.podref, each.holder.ifname): each for each in recorded}
        since = self._superseded_since
        self._superseded_since = {
            each.place: since.get(each.place, now)
            for each in recorded
            if _is_instead_of(last[each.holder.podref, each.holder.ifname], each)
        }
        self._is_settled = not self._superseded_since
        return self._superseded_since

    def _abandon(self, copy: PoolCopy, recorded: RecordedAddress, comparison: Comparison) -> None:
        """Free it, and forget it once the pool does not have it: a write may fail."""
        there = copy.allocations.holder(recorded.address)
        if there is not None and tuple(there.sandboxes) == (recorded.holder.id,):
            copy.set_holder(recorded.address, None)
        else:
            comparison.forgotten.append(recorded)

    def _compare(
        self,
        copy: PoolCopy,
        recorded: RecordedAddress,
        exists: bool | None,  # noqa: FBT001 - an answer, and what it is about is in its name
        comparison: Comparison,
        now: float,
    ) -> None:
        there = copy.allocations.holder(recorded.address)
        if exists is None:
            self.unanswered(copy, recorded)
            return
        since = self._missing_since.setdefault(recorded.place, now) if there is None else now
        standing = standing_of(
            recorded.holder,
            there,
            went_back=recorded.is_from_before,
            is_alive=exists,
            is_leaving=recorded.key in self._leaving,
            missing_seconds=now - since,
            patience_seconds=self._patience_seconds,
        )
        if there is not None or standing is not Standing.WITHHELD:
            self._missing_since.pop(recorded.place, None)
        match standing:
            case Standing.HELD:
                comparison.confirmed.append(recorded)
            case Standing.PUT_BACK:
                comparison.put_back.append(PutBack(recorded, there))
            case Standing.CONTESTED:
                assert there is not None
                self._alarm(recorded, f"is held for {there.podref} by the pool")
            case Standing.WITHHELD:
                self._is_settled = False
                copy.withhold([recorded.address])
            case Standing.FORGOTTEN:
                comparison.forgotten.append(recorded)
            # What is LEFT to its present holder needs nothing.

    def _alarm(self, recorded: RecordedAddress, words: str) -> None:
        """Say it once, however long it lasts."""
        self._is_settled = False
        if recorded.place not in self._said:
            self._said.add(recorded.place)
            self.alarms.append((recorded, words))

    def _is_recorded(self, address: IPAddress, there: Allocation) -> bool:
        return any(
            each.address == address and is_of_one_pod(each.holder, there) for each in self._recorded.values()
        )


def _is_instead_of(newer: RecordedAddress, older: RecordedAddress) -> bool:
    """Whether a pod's interface has another address by a newer sandbox."""
    return (
        newer.key != older.key
        and newer.address != older.address
        and is_of_one_pod(newer.holder, older.holder)
    )
