"""What of one pool is reserved across pools, as far as this process knows, and which addresses that withholds.

Three kinds of address are handed to nobody new: one reserved for an interface that does not have it yet, one that was
freed and whose reservation is still to be given up, and one that is reserved elsewhere.

Reservations are other programs' too: repair collects one that no pool bears out, and people delete. So what was seen of
one, that it is ours or that it is another's, counts for a while, and is then asked again.
"""

import asyncio
from collections.abc import Callable, Container, Iterator
from itertools import chain

from msgspec import Struct

from podtide.agent.networks.errors import StorageFailed
from podtide.agent.networks.requests import Key
from podtide.agent.networks.reservations import Reservations, Sighting
from podtide.cluster.port import ClusterError
from podtide.core.networks.allocations import Allocation
from podtide.core.ranges import IPAddress
from podtide.networks.network import NetworkRange
from podtide.runtime.clock import Clock

_SEEN_SECONDS = 60.0
"""How long what was seen of a reservation counts. Less than repair lets pass before it collects one."""


class _Reserved(Struct):
    """A reservation."""

    name: str
    holder: Allocation
    sighting: Sighting | None = None
    """None while it is not known whether it was made."""
    seen_at: float = 0.0
    is_held: bool = False
    """Whether the pool had the address for the interface."""


class Reserving:
    """The reservations of one pool's addresses."""

    def __init__(self, reservations: Reservations, *, clock: Clock) -> None:
        self._reservations = reservations
        self._clock = clock
        self._made: dict[Key, dict[IPAddress, _Reserved]] = {}
        self._leaving: dict[Key, dict[IPAddress, _Reserved]] = {}
        self._elsewhere: dict[IPAddress, float] = {}

    def knows(self, key: Key) -> bool:
        """Whether anything is reserved for the interface."""
        return key in self._made or key in self._leaving

    def preferred(self, key: Key) -> tuple[IPAddress, ...]:
        """What is reserved for the interface already: an attempt before has come that far."""
        return tuple(self._made.get(key, ()))

    def withheld(self) -> Iterator[IPAddress]:
        """What is to be handed to nobody new."""
        return chain(
            (address for each in self._made.values() for address in each),
            (address for each in self._leaving.values() for address in each),
            self._elsewhere,
        )

    def tried_long_ago(self) -> list[IPAddress]:
        """Forget what was reserved elsewhere so long ago that it may be free by now; answers those addresses."""
        since = self._clock.monotonic() - _SEEN_SECONDS
        forgotten = [address for address, tried in self._elsewhere.items() if tried <= since]
        for address in forgotten:
            del self._elsewhere[address]
        return forgotten

    async def reserve(
        self,
        address: IPAddress,
        holder: Allocation,
        wanted: NetworkRange,
        before: Allocation | None,
        *,
        afresh: bool = False,
    ) -> bool:
        """Reserve the address for the holder, unless it is; False when it is reserved elsewhere.

        `before` is who the pool says had the address, if the holder has it from there. With `afresh`, what was seen of the
        reservation a while ago does not count.
        """
        key = (holder.id, holder.ifname)
        if before is not None:
            _forget(self._leaving, key, address)  # its DEL came to nothing: it still has the address
            if before.id != holder.id:  # the earlier sandbox has it no more, and its DEL frees nothing of it
                _forget(self._made, (before.id, before.ifname), address)
                _forget(self._leaving, (before.id, before.ifname), address)
        reserved = self._made.setdefault(key, {}).setdefault(
            address, _Reserved(wanted.reservation_name(address), holder)
        )
        if not afresh and reserved.sighting and self._clock.monotonic() < reserved.seen_at + _SEEN_SECONDS:
            return True
        reserved.sighting = None
        sighting = await self._reservations.reserve(reserved.name, holder, before)
        if sighting is None:
            self._elsewhere[address] = self._clock.monotonic()
            _forget(self._made, key, address)
            return False
        reserved.sighting, reserved.seen_at = sighting, self._clock.monotonic()
        return True

    def doubt(self) -> None:
        """Of none it is known any more whether it is there: each is asked for before it is gone by again."""
        for reserved in chain.from_iterable(made.values() for made in self._made.values()):
            reserved.sighting = None

    def held(self, key: Key, address: IPAddress) -> None:
        """The pool has the address for the interface now."""
        if reserved := self._made.get(key, {}).get(address):
            reserved.is_held = True

    def taken_back(self, held_by: Callable[[str, str], Container[IPAddress]]) -> None:
        """The pool was read: what it had for interfaces and has no more, repair took back, and withholds nothing."""
        for key, made in tuple(self._made.items()):
            held = held_by(*key)
            for address in [each for each in made if made[each].is_held and each not in held]:
                _forget(self._made, key, address)

    def leave(
        self, key: Key, had: dict[IPAddress, Allocation], wanted: NetworkRange, *, guarded: bool
    ) -> list[IPAddress]:
        """The interface goes: what is reserved for it is to be given up. Answers the addresses that this withholds."""
        leaving = self._leaving.setdefault(key, {})
        leaving |= self._made.pop(key, {})
        if guarded:
            for address, holder in had.items():
                leaving.setdefault(address, _Reserved(wanted.reservation_name(address), holder))
        if not leaving:
            del self._leaving[key]
        return list(leaving)

    def hand_back(self, key: Key, address: IPAddress, holder: Allocation) -> None:
        """What the interface leaves is not given up: by the pool, another sandbox of its pod has it, and it goes with that."""
        reserved = self._leaving[key][address]
        _forget(self._leaving, key, address)
        self._made.setdefault((holder.id, holder.ifname), {}).setdefault(address, reserved)

    async def give_up(self, key: Key) -> list[IPAddress]:
        """Give up what was left; answers those addresses. StorageFailed when one could not be: ask again."""
        leaving = self._leaving.get(key, {})
        outcomes = await asyncio.gather(
            *(self._give_up(leaving, address) for address in tuple(leaving)), return_exceptions=True
        )
        if not leaving and self._leaving.get(key) is leaving:
            del self._leaving[key]
        for outcome in outcomes:
            if isinstance(outcome, ClusterError):
                raise StorageFailed(f"a reservation could not be given up: {outcome}") from outcome
            if isinstance(outcome, BaseException):
                raise outcome
        return [each for each in outcomes if each is not None and not isinstance(each, BaseException)]

    async def _give_up(self, leaving: dict[IPAddress, _Reserved], address: IPAddress) -> IPAddress | None:
        reserved = leaving.get(address)
        if reserved is None:  # another DEL of the interface was quicker, or its pod's ADD has it again
            return None
        await self._reservations.unreserve(reserved.name, reserved.sighting, reserved.holder)
        leaving.pop(address, None)
        return address


def _forget(reserved: dict[Key, dict[IPAddress, _Reserved]], key: Key, address: IPAddress) -> None:
    reserved.get(key, {}).pop(address, None)
    if not reserved.get(key, True):
        del reserved[key]
