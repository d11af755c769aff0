"""A node's pool of addresses: who holds which, which is free, which goes back.

What an address may do next is the table of `address_states`; this is the book-keeping around it. Addresses stand on
shelves by state (`holding`), in the order they came, so assigning and freeing look at a shelf's head and nothing else.

Names, not addresses, identify a grant: they are minted once, so a late event about an old grant touches nothing.

What to hand out or give back is chosen in one step and carried out in another (`choose` and `take`, `choose_releases`
and `name`), so that a program can write the choice down in between.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from podtide.core.pool.address import Address, Counts, Family, Owner
from podtide.core.pool.container_addresses import Holding
from podtide.core.pool.snapshot import KeptOwner, Snapshot
from podtide.core.pool.states import TRANSITIONS, BrokenPool, Event, State
from podtide.core.ranges import IPNetwork, contains

__all__ = ["Address", "Applied", "Container", "Counts", "Family", "Owner", "Pool"]

T = TypeVar("T")

_CONTRADICTION = "the pool's records contradict themselves; restart the agent and report this"


class Container(Struct, frozen=True):
    """A network container as the node is told of it: the names and addresses it grants, at one version."""

    id: str
    version: int
    family: Family
    addresses: Mapping[str, str]


class Applied(Struct, frozen=True):
    """What a container's new version changed, by name. Alarms are sentences for people."""

    granted: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()


class Pool:
    """All of a node's addresses, over its containers and both families.

    Times are seconds of one clock that only grows; every method that needs the time is told it.
    """

    def __init__(self, cooldown_seconds: float = 30.0) -> None:
        self._cooldown_seconds = cooldown_seconds
        self._turn = 0
        self._holdings: dict[str, Holding] = {}
        self._families: dict[Family, list[Holding]] = {4: [], 6: []}
        """The holdings that are granted: none that is withdrawn."""
        self._by_ip: dict[str, Address] = {}
        self._by_owner: dict[tuple[str, str], tuple[Address, ...]] = {}
        self.on_move: list[Callable[[Address], None]] = []
        """Told of every address whose state changed, after it did. One that is gone has none."""

    # What the cluster says

    def is_news(self, container: Container) -> bool:
        """Whether there is anything in it to apply. An older version is no news, nor is the same again."""
        holding = self._holdings.get(container.id)
        if holding is None or container.version > holding.version:
            return True
        if container.version < holding.version:
            return False
        orphans = holding.shelves[State.ORPHANED]
        return holding.withdrawn or holding.addresses.keys() - orphans.keys() != container.addresses.keys()

    def apply(self, container: Container, now: float) -> Applied:
        """Take in a container's addresses: additions, and the departure of what was named for release.

        An older version is ignored. The same again changes nothing.
        """
        return self._take_in(container, frozenset(), Event.GRANTED, now)

    def recover(self, container: Container, named: Iterable[str], now: float) -> Applied:
        """Take in a container when the node's own records are lost: nothing new in it is known to be free.

        What the node had `named` for release stays named; all else is quarantined until `adopt` or `prove_free`.
        """
        return self._take_in(container, frozenset(named), Event.RECOVERED, now)

    def withdraw(self, container_id: str, now: float) -> Applied:
        """The container is no longer granted at all: as if a newer version had come without any address.

        What pods have of it stays theirs. Once that is freed too, the container is forgotten, and its version.
        """
        if not self.is_granted(container_id):
            return Applied()
        holding = self._holdings[container_id]
        holding.withdrawn = True
        self._families[holding.family].remove(holding)
        alarms: list[str] = []
        gone = self._withdraw_absent(holding, (), "is withdrawn and with it", alarms, now)
        self._forget_if_gone(holding)
        return Applied(gone=tuple(gone), alarms=tuple(alarms))

    def carried_over(self, container: Container, former: Collection[str]) -> bool:
        """Whether any of these former containers has an address that the container grants."""
        return bool(self._found_again(container, former))

    def carry_over(self, container: Container, former: Collection[str], now: float) -> tuple[str, ...]:
        """The machine is another Node by now: what the container grants of former ones is its own, under the new names.

        It is matched by address, and stays as it is: a pod's with the pod, what was named for release named. What had
        been withdrawn from under a pod is granted to it again. All else of the container is for `apply` to take in.

        A container may be its own former one: it was deleted, came back with its Node, and was granted the same anew.
        """
        names = {ip: name for name, ip in container.addresses.items()}
        found = self._found_again(container, former)
        if not found:
            return ()
        holding = self._granted(container)
        for address in sorted(found, key=lambda address: address.turn):
            self._relocate(address, holding, names[address.ip], now)
        for id_ in former:
            if id_ in self._holdings:
                self._forget_if_gone(self._holdings[id_])
        return tuple(address.name for address in found)

    def _found_again(self, container: Container, former: Collection[str]) -> list[Address]:
        """The addresses of former containers that this one grants by other names."""
        own = self._holdings.get(container.id)
        found = []
        for name, ip in container.addresses.items():
            twin = self._by_ip.get(ip)
            if twin is None or twin.container not in former:
                continue
            is_own = own is not None and twin.container == own.id
            if not is_own or (own and container.version > own.version and name not in own.addresses):
                found.append(twin)
        return found

    def _take_in(self, container: Container, named: frozenset[str], event: Event, now: float) -> Applied:
        if not self.is_news(container):
            return Applied()
        holding = self._granted(container)
        alarms: list[str] = []
        said = f"version {container.version} lacks"
        gone = self._withdraw_absent(holding, container.addresses, said, alarms, now)
        given_up = {name: ip for name, ip in container.addresses.items() if name in named}
        others = {name: ip for name, ip in container.addresses.items() if name not in named}
        releasing = self._grant(holding, given_up, Event.GRANTED, alarms, now)
        for name in releasing:
            address = holding.addresses[name]
            if address.state is State.PENDING_PROGRAMMING:  # else it was an orphan, and is its pod's again
                self._move(address, Event.NAMED, now)
        granted = self._grant(holding, others, event, alarms, now)
        return Applied(granted=(*releasing, *granted), gone=tuple(gone), alarms=tuple(alarms))

    def _withdraw_absent(
        self, holding: Holding, granted: Collection[str], said: str, alarms: list[str], now: float
    ) -> list[str]:
        absent = [address for name, address in holding.addresses.items() if name not in granted]
        gone = []
        for address in absent:
            if address.state is State.ORPHANED:
                continue
            if address.state is not State.PENDING_RELEASE:
                alarms.append(
                    f"container {holding.id} {said} {address}, which this node did not name for release"
                )
            self._move(address, Event.WITHDRAWN, now)
            if address.state is None:
                gone.append(address.name)
        return gone

    def _grant(
        self, holding: Holding, addresses: Mapping[str, str], event: Event, alarms: list[str], now: float
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
        self._own(owner, (*self.held_by(owner.sandbox, owner.interface), address))
        self._move(address, Event.TAKEN, now)
        return True

    def prove_free(self, now: float, contested: Collection[str] = ()) -> int:
        """Every pod has shown its addresses: what is still in quarantine is free. Answers how many that were.

        What is contested stays in quarantine: more than one pod shows it.
        """
        quarantined = [
            address
            for holding in self._holdings.values()
            for address in holding.shelves[State.QUARANTINED].values()
            if address.ip not in contested
        ]
        for address in quarantined:
            address.used = True  # somebody may have had it a moment ago: let it cool down
            self._move(address, Event.PROGRAMMED, now)
        return len(quarantined)

    # What pods need

    def choose(self, now: float, wanted: Iterable[str] = ()) -> tuple[Address, ...] | None:
        """One address of each family the node is granted, or None when one has no free address.

        The very addresses that are `wanted`, at most one of each family, or None when one of them is not free.
        """
        picked: dict[Family, Address] = {}
        for ip in wanted:
            address = self._by_ip.get(ip)
            if address is None or address.state is not State.AVAILABLE:
                return None
            if picked.setdefault(self._holdings[address.container].family, address) is not address:
                return None
        chosen = []
        for family, holdings in self._families.items():
            if holdings:
                free = picked.get(family) or self._longest_free(holdings, now)
                if free is None:
                    return None
                chosen.append(free)
        return tuple(chosen) or None

    def take(self, owner: Owner, ips: Iterable[str], now: float) -> tuple[Address, ...]:
        """Give an owner that has none the addresses that were chosen."""
        addresses = tuple(_known(self._by_ip, ip) for ip in ips)
        if held := self.held_by(owner.sandbox, owner.interface):
            raise BrokenPool(
                f"sandbox {owner.sandbox} ({owner.interface}) holds {held[0]} and cannot take more: {_CONTRADICTION}"
            )
        self._own(owner, addresses)  # first, so that whoever hears of the move sees whose it is
        for address in addresses:
            self._move(address, Event.TAKEN, now)
        return addresses

    def free(self, sandbox: str, interface: str, now: float) -> tuple[Address, ...]:
        """The owner is gone: its addresses are free again. Nothing for an owner that is not known."""
        addresses = self._by_owner.pop((sandbox, interface), ())
        for address in addresses:
            address.owner = None
            address.used = True
            self._move(address, Event.FREED, now)
            if address.state is None:
                self._forget_if_gone(self._holdings[address.container])
        return addresses

    def choose_releases(self, container_id: str, count: int) -> tuple[str, ...]:
        """The names of up to `count` addresses to give back: not yet programmed first, then those idle longest."""
        idle = self._holdings[container_id].idle()
        return tuple(address.name for address in islice(idle, count))

    def idle_in(self, container_id: str, cidrs: Sequence[IPNetwork]) -> tuple[str, ...]:
        """The names of addresses in any of these ranges that could be given back: ranges that drain are not held for later."""
        idle = self._holdings[container_id].idle() if cidrs else ()
        return tuple(address.name for address in idle if contains(cidrs, address.ip))

    def name(self, container_id: str, names: Iterable[str], now: float) -> None:
        """Give these up, for good."""
        holding = _known(self._holdings, container_id)
        for name in names:
            self._move(_known(holding.addresses, name), Event.NAMED, now)

    # What is so

    def held_by(self, sandbox: str, interface: str) -> tuple[Address, ...]:
        """What the sandbox's interface has."""
        return self._by_owner.get((sandbox, interface), ())

    def find(self, ip: str) -> Address | None:
        """The address in the pool, if it is there. To read, not to change."""
        return self._by_ip.get(ip)

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
        """The containers of which the pool has anything, in the order they came; also withdrawn ones with orphans."""
        return tuple(self._holdings)

    def is_granted(self, container_id: str) -> bool:
        """Whether the container is known and not withdrawn."""
        holding = self._holdings.get(container_id)
        return holding is not None and not holding.withdrawn

    def owners(self) -> dict[tuple[str, str], tuple[Address, ...]]:
        """Who holds what, by sandbox and interface."""
        return dict(self._by_owner)

    def outlived(self) -> int:
        """How many owners have nothing but addresses that no container grants any more: these need no other."""
        orphans = (
            each for holding in self._holdings.values() for each in holding.shelves[State.ORPHANED].values()
        )
        owners = {(each.owner.sandbox, each.owner.interface) for each in orphans if each.owner is not None}
        return sum(all(each.state is State.ORPHANED for each in self._by_owner[key]) for key in owners)

    def addresses(self) -> Iterable[Address]:
        """Every address of the pool. To read, not to change."""
        for holding in self._holdings.values():
            yield from holding.addresses.values()

    # What outlives a program

    def snapshot(self) -> Snapshot:
        """The pool as plain values."""
        return Snapshot(
            turn=self._turn,
            containers=tuple(holding.kept() for holding in self._holdings.values()),
            owners=tuple(_kept_owner(addresses) for addresses in self._by_owner.values()),
        )

    def restore(self, snapshot: Snapshot, now: float) -> None:
        """Make this new pool the one the snapshot was taken of; its addresses count as having come `now`."""
        self._turn = snapshot.turn
        for kept in snapshot.containers:
            holding = self._holdings[kept.id] = Holding.restored(kept, now)
            self._by_ip.update((address.ip, address) for address in holding.addresses.values())
            if not holding.withdrawn:
                self._families[holding.family].append(holding)
        for held in snapshot.owners:
            self._own(held.owner, tuple(_known(self._by_ip, ip) for ip in held.ips))

    # How it is kept

    def _granted(self, container: Container) -> Holding:
        """The container's holding, made if there is none, at the container's version."""
        holding = self._holdings.get(container.id)
        if holding is None:
            holding = self._holdings[container.id] = Holding(container.id, container.family)
            self._families[container.family].append(holding)
        elif holding.withdrawn:
            holding.withdrawn = False
            self._families[holding.family].append(holding)
        holding.version = container.version
        return holding

    def _forget_if_gone(self, holding: Holding) -> None:
        if holding.withdrawn and not holding.addresses:
            del self._holdings[holding.id]

    def _longest_free(self, holdings: list[Holding], now: float) -> Address | None:
        """The address to hand out next: the one free longest, those that cool down after all others."""
        heads = [head for holding in holdings for head in holding.heads()]
        if len(heads) <= 1:
            return heads[0] if heads else None
        cool_since = now - self._cooldown_seconds
        return min(heads, key=lambda head: (head.used and head.since > cool_since, head.turn))

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

    def _relocate(self, address: Address, holding: Holding, name: str, now: float) -> None:
        """Put an address into another holding under another name, in the state it is in."""
        state, former = address.state, self._holdings[address.container]
        assert state is not None, "what is in a holding has a state"
        del former.addresses[address.name], former.shelf(address, state)[address.name]
        address.container, address.name = holding.id, name
        holding.addresses[name] = holding.shelf(address, state)[name] = address
        if state is State.ORPHANED:
            self._move(address, Event.GRANTED, now)
            return
        for tell in self.on_move:
            tell(address)

    def _move(self, address: Address, event: Event, now: float) -> None:
        """The only place where an address changes its state."""
        old = address.state
        try:
            new = TRANSITIONS[old][event]
        except KeyError:
            raise BrokenPool(
                f"address {address.ip} ({address.name}) is {old or 'absent'} and cannot be {event}: {_CONTRADICTION}"
            ) from None
        holding = self._holdings[address.container]
        if old is None:
            holding.addresses[address.name] = self._by_ip[address.ip] = address
        else:
            del holding.shelf(address, old)[address.name]
        self._turn += 1
        address.state, address.since, address.turn = new, now, self._turn
        if new is None:
            del holding.addresses[address.name], self._by_ip[address.ip]
        else:
            holding.shelf(address, new)[address.name] = address
        for tell in self.on_move:
            tell(address)


def _is_orphan_of(holding: Holding, address: Address) -> bool:
    return address.state is State.ORPHANED and address.container == holding.id


def _kept_owner(addresses: tuple[Address, ...]) -> KeptOwner:
    owner = addresses[0].owner
    assert owner is not None, "who holds addresses is written on each of them"
    return KeptOwner(owner, tuple(address.ip for address in addresses))


def _known(things: Mapping[str, T], key: str) -> T:
    try:
        return things[key]
    except KeyError:
        raise BrokenPool(f"{key} is not in the pool: {_CONTRADICTION}") from None
