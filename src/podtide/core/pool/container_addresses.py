"""One network container's addresses on a node, each on the shelf of its state.

A shelf is ordered by when its addresses came to it, so its head is the one that has been there longest, and finding
that costs the same however many there are.
"""

from collections import OrderedDict
from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import Self

from podtide.core.pool.address import Address, Family, StateCounts
from podtide.core.pool.snapshot import KeptAddress, KeptContainer
from podtide.core.pool.states import State

Shelf = OrderedDict[str, Address]


class ContainerAddresses:
    """The addresses by name, and on their shelves.

    Free addresses stand on two: those a pod had before (`rested`, which may have to cool down) and those not yet used.
    """

    def __init__(self, container_id: str, family: Family) -> None:
        self.id = container_id
        self.family = family
        self.version = -1
        self.withdrawn = False
        """The container is gone, and this is here for what pods still have of it."""
        self.addresses: dict[str, Address] = {}
        self.shelves: dict[State, Shelf] = {state: OrderedDict() for state in State}
        self.rested: Shelf = OrderedDict()

    def shelf(self, address: Address, state: State) -> Shelf:
        """Where an address of this state stands."""
        if state is State.AVAILABLE and address.used:
            return self.rested
        return self.shelves[state]

    def heads(self) -> list[Address]:
        """The free addresses that could go next: the one unused for longest, and the one rested for longest."""
        shelves = (self.shelves[State.AVAILABLE], self.rested)
        return [next(iter(shelf.values())) for shelf in shelves if shelf]

    def idle(self) -> Iterator[Address]:
        """What could be given back, in that order: not yet programmed first, then those free longest."""
        unused = self.shelves[State.AVAILABLE]
        free = merge(unused.values(), self.rested.values(), key=lambda address: address.turn)
        return chain(self.shelves[State.PENDING_PROGRAMMING].values(), free)

    def counts(self) -> StateCounts:
        """How many addresses are on each shelf."""
        shelves = self.shelves
        return StateCounts(
            pending_programming=len(shelves[State.PENDING_PROGRAMMING]),
            available=len(shelves[State.AVAILABLE]) + len(self.rested),
            assigned=len(shelves[State.ASSIGNED]),
            pending_release=len(shelves[State.PENDING_RELEASE]),
            quarantined=len(shelves[State.QUARANTINED]),
            orphaned=len(shelves[State.ORPHANED]),
        )

    def kept(self) -> KeptContainer:
        """The holding as plain values."""
        addresses = tuple(
            KeptAddress(address.name, address.ip, state, address.turn, address.used)
            for address in self.addresses.values()
            if (state := address.state) is not None
        )
        return KeptContainer(self.id, self.family, self.version, addresses, self.withdrawn)

    @classmethod
    def restored(cls, kept: KeptContainer, now: float) -> Self:
        """The holding that was kept; its addresses count as having come `now`."""
        holding = cls(kept.id, kept.family)
        holding.version, holding.withdrawn = kept.version, kept.withdrawn
        for item in kept.addresses:
            holding.addresses[item.name] = Address(
                item.name, item.ip, kept.id, item.state, now, item.turn, item.used
            )
        for item in sorted(kept.addresses, key=lambda item: item.turn):
            address = holding.addresses[item.name]
            holding.shelf(address, item.state)[item.name] = address
        return holding
