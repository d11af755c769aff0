"""A node's pool of addresses: who holds which, which is free, which goes back.

What an address may do next is the table of `address_states`; this is the book-keeping around it. Addresses stand on
shelves by state, in the order they came, so the one that has been free longest is a shelf's head: assigning and
freeing look at nothing else, however large the pool.

Names, not addresses, identify a grant: they are minted once, so a late event about an old grant touches nothing.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from podtide.core.address_states import TRANSITIONS, BrokenPool, Event, State

Family = Literal[4, 6]


class Owner(Struct, frozen=True):
    """Who holds an address: a sandbox's interface. The rest tells whose it is, and takes no part in identity."""

    sandbox: str
    interface: str
    pod: str = ""
    """The pod's uid, where the runtime tells it."""
    namespace: str = ""
    name: str = ""
    network: str = ""
    """The network's name in the CNI configuration: garbage is collected network by network."""


class Container(Struct, frozen=True):
    """A network container as the node is told of it: the names and addresses it grants, at one version."""

    id: str
    version: int
    family: Family
    addresses: Mapping[str, str]


class Address(Struct):
    """One address in the pool. `since` is when it entered its state."""

    name: str
    ip: str
    container: str
    state: State | None = None
    since: float = 0.0
    used: bool = False
    owner: Owner | None = None

    def __str__(self) -> str:
        return f"{self.ip} as {self.name} ({self.state})"


class Counts(Struct, frozen=True):
    """How many addresses are in each state."""

    pending_programming: int = 0
    available: int = 0
    assigned: int = 0
    pending_release: int = 0
    quarantined: int = 0
    orphaned: int = 0

    @property
    def held(self) -> int:
        """What the container grants: all but the orphans, which it no longer does."""
        return (
            self.pending_programming
            + self.available
            + self.assigned
            + self.pending_release
            + self.quarantined
        )


class Applied(Struct, frozen=True):
    """What a container's new version changed, by name. Alarms are sentences for people."""

    granted: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()


class _Holding:
    """One container's addresses, each in the shelf of its state.

    A shelf is ordered by when its addresses came to it, so the head of a shelf is the one that has been there longest.
    Free addresses stand on two: those a pod had before (`rested`, which may have to cool down) and those not yet used.
    """

    def __init__(self, container_id: str, family: Family) -> None:
        self.id = container_id
        self.family = family
        self.version = -1
        self.addresses: dict[str, Address] = {}
        self.shelves: dict[State, OrderedDict[str, Address]] = {state: OrderedDict() for state in State}
        self.rested: OrderedDict[str, Address] = OrderedDict()

    def shelf(self, address: Address, state: State) -> OrderedDict[str, Address]:
        if state is State.AVAILABLE and address.used:
            return self.rested
        return self.shelves[state]

    def heads(self) -> list[Address]:
        """The free addresses that could go next: the one unused for longest, and the one rested for longest."""
        shelves = (self.shelves[State.AVAILABLE], self.rested)
        return [head for shelf in shelves if (head := _head(shelf)) is not None]

    def longest_idle(self) -> Address | None:
        """The address to give back next: not yet programmed first, then the one free longest."""
        if (pending := _head(self.shelves[State.PENDING_PROGRAMMING])) is not None:
            return pending
        return min(self.heads(), key=lambda head: head.since, default=None)

    def counts(self) -> Counts:
        shelves = self.shelves
        return Counts(
            pending_programming=len(shelves[State.PENDING_PROGRAMMING]),
            available=len(shelves[State.AVAILABLE]) + len(self.rested),
            assigned=len(shelves[State.ASSIGNED]),
            pending_release=len(shelves[State.PENDING_RELEASE]),
            quarantined=len(shelves[State.QUARANTINED]),
            orphaned=len(shelves[State.ORPHANED]),
        )


def _is_orphan_of(holding: _Holding, address: Address) -> bool:
    return address.state is State.ORPHANED and address.container == holding.id


def _head(shelf: OrderedDict[str, Address]) -> Address | None:
    return next(iter(shelf.values()), None)


class Pool:
    """All of a node's addresses, over its containers and both families.

    Times are seconds of one clock that only grows; every method that needs the time is told it.
    """

    def __init__(self, cooldown_seconds: float = 30.0) -> None:
        self._cooldown_seconds = cooldown_seconds
        self._holdings: dict[str, _Holding] = {}
        self._families: dict[Family, list[_Holding]] = {}
        self._by_ip: dict[str, Address] = {}
        self._by_owner: dict[tuple[str, str], tuple[Address, ...]] = {}

    # What the cluster says

    def apply(self, container: Container, now: float) -> Applied:
        """Take in a container's addresses: additions, and the departure of what was named for release.

        An older version is ignored. The same again changes nothing.
        """
        holding = self._holding(container.id, container.family)
        if container.version < holding.version:
            return Applied()
        holding.version = container.version
        alarms: list[str] = []
        gone = self._withdraw_absent(holding, container, alarms, now)
        granted = self._grant(holding, container.addresses, Event.GRANTED, alarms, now)
        return Applied(granted=tuple(granted), gone=tuple(gone), alarms=tuple(alarms))

    def recover(self, container: Container, named: Iterable[str], now: float) -> Applied:
        """Take in a container when the node's own records are lost: nothing is known to be free.

        What the node had `named` for release stays named; all else is quarantined until `adopt` or `prove_free`.
        """
        holding = self._holding(container.id, container.family)
        holding.version = container.version
        alarms: list[str] = []
        named = set(named)
        given_up = {name: ip for name, ip in container.addresses.items() if name in named}
        unproven = {name: ip for name, ip in container.addresses.items() if name not in named}
        releasing = self._grant(holding, given_up, Event.GRANTED, alarms, now)
        for name in releasing:
            self._move(holding.addresses[name], Event.NAMED, now)
        quarantined = self._grant(holding, unproven, Event.RECOVERED, alarms, now)
        return Applied(granted=(*releasing, *quarantined), alarms=tuple(alarms))

    def _withdraw_absent(
        self, holding: _Holding, container: Container, alarms: list[str], now: float
    ) -> list[str]:
        absent = [address for name, address in holding.addresses.items() if name not in container.addresses]
        gone = []
        for address in absent:
            if address.state is State.ORPHANED:
                continue
            if address.state is not State.PENDING_RELEASE:
                alarms.append(
                    f"container {container.id} version {container.version} lacks {address}, "
                    "which this node did not name for release"
                )
            self._move(address, Event.WITHDRAWN, now)
            if address.state is None:
                gone.append(address.name)
        return gone

    def _grant(
        self, holding: _Holding, addresses: Mapping[str, str], event: Event, alarms: list[str], now: float
    ) -> list[str]:
        granted = []
        for name, ip in addresses.items():
            known, twin = holding.addresses.get(name), self._by_ip.get(ip)
            if known is None and twin is None:
                self._move(Address(name=name, ip=ip, container=holding.id), event, now)
            elif twin is not None and _is_orphan_of(holding, twin) and (known is None or known is twin):
                self._rename(twin, name)
                self._move(twin, Event.GRANTED, now)
            elif known is not None and known is twin:
                continue
            else:
                held = twin or known
                alarms.append(f"container {holding.id} grants {ip} as {name}, but the pool holds {held}")
                continue
            granted.append(name)
        return granted

    def programmed(self, names: Iterable[str], now: float) -> None:
        """The network can carry these now. Names that are not pending are passed over."""
        for address in self._named(names):
            if address.state is State.PENDING_PROGRAMMING:
                self._move(address, Event.PROGRAMMED, now)

    def adopt(self, ip: str, owner: Owner, now: float) -> bool:
        """A pod shows that it has this quarantined address. False when it is not in quarantine."""
        address = self._by_ip.get(ip)
        if address is None or address.state is not State.QUARANTINED:
            return False
        self._move(address, Event.TAKEN, now)
        self._own(owner, (*self._by_owner.get((owner.sandbox, owner.interface), ()), address))
        return True

    def prove_free(self, now: float) -> int:
        """Every pod has shown its addresses: what is still in quarantine is free. Answers how many that were."""
        quarantined = [
            address
            for holding in self._holdings.values()
            for address in holding.shelves[State.QUARANTINED].values()
        ]
        for address in quarantined:
            address.used = True  # somebody may have had it a moment ago: let it cool down
            self._move(address, Event.PROGRAMMED, now)
        return len(quarantined)

    # What pods need

    def assign(self, owner: Owner, now: float) -> tuple[Address, ...] | None:
        """One address of each family the pool has, or None when one has no free address (then none is taken).

        The same owner gets the same addresses: also one whose sandbox was found with an address of one family only.
        """
        key = (owner.sandbox, owner.interface)
        if (held := self._by_owner.get(key)) is not None:
            return held
        chosen = []
        for holdings in self._families.values():
            address = self._longest_free(holdings, now)
            if address is None:
                return None
            chosen.append(address)
        if not chosen:
            return None
        for address in chosen:
            self._move(address, Event.TAKEN, now)
        addresses = tuple(chosen)
        self._own(owner, addresses)
        return addresses

    def free(self, sandbox: str, interface: str, now: float) -> tuple[Address, ...]:
        """The owner is gone: its addresses are free again. Nothing for an owner that is not known."""
        addresses = self._by_owner.pop((sandbox, interface), ())
        for address in addresses:
            address.owner = None
            address.used = True
            self._move(address, Event.FREED, now)
        return addresses

    def name_for_release(self, container_id: str, count: int, now: float) -> tuple[str, ...]:
        """Choose up to `count` addresses to give back, for good."""
        holding = self._holdings[container_id]
        named: list[str] = []
        while len(named) < count and (address := holding.longest_idle()) is not None:
            self._move(address, Event.NAMED, now)
            named.append(address.name)
        return tuple(named)

    # What is so

    def counts(self, container_id: str) -> Counts:
        """How many of a container's addresses are in each state."""
        return self._holdings[container_id].counts()

    def named(self, container_id: str) -> tuple[str, ...]:
        """The names given up and not gone yet: what `ipsNotInUse` must say."""
        return tuple(self._holdings[container_id].shelves[State.PENDING_RELEASE])

    def version(self, container_id: str) -> int:
        """The container's version in force."""
        return self._holdings[container_id].version

    def containers(self) -> tuple[str, ...]:
        """The containers the pool knows, in the order they came."""
        return tuple(self._holdings)

    def owners(self) -> dict[tuple[str, str], tuple[Address, ...]]:
        """Who holds what, by sandbox and interface."""
        return dict(self._by_owner)

    def addresses(self) -> Iterable[Address]:
        """Every address of the pool. To read, not to change."""
        for holding in self._holdings.values():
            yield from holding.addresses.values()

    # How it is kept

    def _holding(self, container_id: str, family: Family) -> _Holding:
        holding = self._holdings.get(container_id)
        if holding is None:
            holding = self._holdings[container_id] = _Holding(container_id, family)
            self._families.setdefault(family, []).append(holding)
        return holding

    def _longest_free(self, holdings: list[_Holding], now: float) -> Address | None:
        """The address to hand out next: the one free longest, those that cool down after all others."""
        heads = [head for holding in holdings for head in holding.heads()]
        if len(heads) <= 1:
            return heads[0] if heads else None
        cool_since = now - self._cooldown_seconds
        return min(heads, key=lambda head: (head.used and head.since > cool_since, head.since))

    def _named(self, names: Iterable[str]) -> Iterable[Address]:
        for name in names:
            for holding in self._holdings.values():
                if (address := holding.addresses.get(name)) is not None:
                    yield address

    def _own(self, owner: Owner, addresses: tuple[Address, ...]) -> None:
        self._by_owner[owner.sandbox, owner.interface] = addresses
        for address in addresses:
            address.owner = owner

    def _rename(self, address: Address, name: str) -> None:
        holding = self._holdings[address.container]
        shelf = holding.shelf(address, State.ORPHANED)
        del holding.addresses[address.name], shelf[address.name]
        address.name = name
        holding.addresses[name] = shelf[name] = address

    def _move(self, address: Address, event: Event, now: float) -> None:
        """The only place where an address changes its state."""
        old = address.state
        try:
            new = TRANSITIONS[old][event]
        except KeyError:
            raise BrokenPool(
                f"address {address.ip} ({address.name}) is {old or 'absent'} and cannot be {event}: "
                "the pool's records contradict themselves; restart the agent and report this"
            ) from None
        holding = self._holdings[address.container]
        if old is None:
            holding.addresses[address.name] = self._by_ip[address.ip] = address
        else:
            del holding.shelf(address, old)[address.name]
        address.state, address.since = new, now
        if new is None:
            del holding.addresses[address.name], self._by_ip[address.ip]
        else:
            holding.shelf(address, new)[address.name] = address
