"""A node's pool of addresses: who holds which, which is free, which goes back.

What an address may do next is the table of `states`; this decides which address does it. Addresses stand on shelves by
state (`container_addresses`), in the order they came, so assigning and freeing look at a shelf's head and nothing else.

What to hand out or give back is chosen in one step and carried out in another (`choose` and `take`, `choose_releases`
and `name`), so that a program can write the choice to its journal in between.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice

from podtide.core.pool import container_updates
from podtide.core.pool.address import Address, Family, Owner, StateCounts
from podtide.core.pool.container_addresses import ContainerAddresses
from podtide.core.pool.container_updates import AppliedContainer, GrantedContainer
from podtide.core.pool.records import CONTRADICTION, PoolRecords, known
from podtide.core.pool.snapshot import KeptOwner, PoolSnapshot
from podtide.core.pool.states import AddressEvent, BrokenPool, State
from podtide.core.ranges import IPNetwork, contains

__all__ = ["Address", "AppliedContainer", "Family", "GrantedContainer", "Owner", "Pool", "StateCounts"]


class Pool:
    """All of a node's addresses, over its containers and both families.

    Times are seconds of one monotonic clock; every method that needs the time takes it as an argument.
    """

    def __init__(self, cooldown_seconds: float = 30.0) -> None:
        self._cooldown_seconds = cooldown_seconds
        self._records = PoolRecords()

    @property
    def on_move(self) -> list[Callable[[Address], None]]:
        """Listeners, called with every address whose state changed, after it did. One that is gone has none."""
        return self._records.on_move

    # What the cluster says

    def is_news(self, container: GrantedContainer) -> bool:
        """Whether applying the container would change anything: an older version would not, nor would the same again."""
        return container_updates.is_news(self._records, container)

    def apply(self, container: GrantedContainer, now: float) -> AppliedContainer:
        """Take in a container's addresses: additions, and the departure of what was named for release.

        An older version is ignored. The same again changes nothing.
        """
        return container_updates.apply(self._records, container, frozenset(), AddressEvent.GRANTED, now)

    def recover(self, container: GrantedContainer, named: Iterable[str], now: float) -> AppliedContainer:
        """Take in a container when the node's own records are lost: nothing new in it is known to be free.

        What the node had `named` for release stays named; all else is quarantined until `adopt` or `prove_free`.
        """
        return container_updates.apply(
            self._records, container, frozenset(named), AddressEvent.RECOVERED, now
        )

    def withdraw(self, container_id: str, now: float) -> AppliedContainer:
        """Take out a container that is no longer granted, as if a newer version had come without any address.

        What pods have of it stays theirs. Once that is freed too, the container is forgotten, and its version.
        """
        if not self.is_granted(container_id):
            return AppliedContainer()
        return container_updates.withdraw(self._records, self._records.holdings[container_id], now)

    def carried_over(self, container: GrantedContainer, former: Collection[str]) -> bool:
        """Whether any of these former containers has an address that the container grants."""
        return bool(container_updates.found_again(self._records, container, former))

    def carry_over(self, container: GrantedContainer, former: Collection[str], now: float) -> tuple[str, ...]:
        """Move addresses of former containers into the one that grants them now: the machine is another Node by now.

        It is matched by address, and stays as it is: a pod's with the pod, what was named for release named. What had
        been withdrawn from under a pod is granted to it again. All else of the container is for `apply` to take in.

        A container may be its own former one: it was deleted, came back with its Node, and was granted the same anew.
        """
        return container_updates.carry_over(self._records, container, former, now)

    def programmed(self, names: Iterable[str], now: float) -> None:
        """Make these pending addresses available: the network carries them now. Names that are not pending are ignored."""
        for address in self._named(names):
            if address.state is State.PENDING_PROGRAMMING:
                self._records.move(address, AddressEvent.PROGRAMMED, now)

    def adopt(self, ip: str, owner: Owner, now: float) -> bool:
        """Assign a quarantined address to the owner whose pod shows it. False when the address is not in quarantine."""
        address = self._records.by_ip.get(ip)
        if address is None or address.state is not State.QUARANTINED:
            return False
        self._records.own(owner, (*self.held_by(owner.sandbox, owner.interface), address))
        self._records.move(address, AddressEvent.TAKEN, now)
        return True

    def prove_free(self, now: float, contested: Collection[str] = ()) -> int:
        """End the quarantine, because every pod has shown its addresses. Returns how many addresses are free by that.

        What is contested stays in quarantine: more than one pod shows it.
        """
        quarantined = [
            address
            for holding in self._records.holdings.values()
            for address in holding.shelves[State.QUARANTINED].values()
            if address.ip not in contested
        ]
        for address in quarantined:
            address.used = True  # a pod may have had it a moment ago: let it cool down
            self._records.move(address, AddressEvent.PROGRAMMED, now)
        return len(quarantined)

    # What pods need

    def choose(self, now: float, wanted: Iterable[str] = ()) -> tuple[Address, ...] | None:
        """One address of each family the node is granted, or None when one has no free address.

        The very addresses that are `wanted`, at most one of each family, or None when one of them is not free.
        """
        picked: dict[Family, Address] = {}
        for ip in wanted:
            address = self._records.by_ip.get(ip)
            if address is None or address.state is not State.AVAILABLE:
                return None
            if picked.setdefault(self._records.holdings[address.container].family, address) is not address:
                return None
        chosen = []
        for family, holdings in self._records.families.items():
            if holdings:
                free = picked.get(family) or self._longest_free(holdings, now)
                if free is None:
                    return None
                chosen.append(free)
        return tuple(chosen) or None

    def take(self, owner: Owner, ips: Iterable[str], now: float) -> tuple[Address, ...]:
        """Assign the chosen addresses to an owner that has none."""
        addresses = tuple(known(self._records.by_ip, ip) for ip in ips)
        if held := self.held_by(owner.sandbox, owner.interface):
            raise BrokenPool(
                f"sandbox {owner.sandbox} ({owner.interface}) holds {held[0]} and cannot take more: {CONTRADICTION}"
            )
        self._records.own(owner, addresses)  # first, so that those notified of the move see the owner
        for address in addresses:
            self._records.move(address, AddressEvent.TAKEN, now)
        return addresses

    def free(self, sandbox: str, interface: str, now: float) -> tuple[Address, ...]:
        """Free the owner's addresses; nothing for an unknown owner."""
        addresses = self._records.by_owner.pop((sandbox, interface), ())
        for address in addresses:
            address.owner = None
            address.used = True
            self._records.move(address, AddressEvent.FREED, now)
            if address.state is None:
                self._records.forget_if_gone(self._records.holdings[address.container])
        return addresses

    def choose_releases(self, container_id: str, count: int) -> tuple[str, ...]:
        """The names of up to `count` addresses to give back: not yet programmed first, then those idle longest."""
        idle = self._records.holdings[container_id].idle()
        return tuple(address.name for address in islice(idle, count))

    def idle_in(self, container_id: str, cidrs: Sequence[IPNetwork]) -> tuple[str, ...]:
        """The names of addresses in these draining ranges that could be given back at once."""
        idle = self._records.holdings[container_id].idle() if cidrs else ()
        return tuple(address.name for address in idle if contains(cidrs, address.ip))

    def name(self, container_id: str, names: Iterable[str], now: float) -> None:
        """Name these for release. That is final: they are never handed out again."""
        holding = known(self._records.holdings, container_id)
        for name in names:
            self._records.move(known(holding.addresses, name), AddressEvent.NAMED, now)

    # What is so

    def held_by(self, sandbox: str, interface: str) -> tuple[Address, ...]:
        """The addresses of a sandbox's interface."""
        return self._records.by_owner.get((sandbox, interface), ())

    def find(self, ip: str) -> Address | None:
        """The address, if it is in the pool. Read only."""
        return self._records.by_ip.get(ip)

    def counts(self, container_id: str) -> StateCounts:
        """How many of a container's addresses are in each state."""
        return self._records.holdings[container_id].counts()

    def named(self, container_id: str) -> tuple[str, ...]:
        """The names named for release that the container still grants: the content of `ipsNotInUse`."""
        return tuple(self._records.holdings[container_id].shelves[State.PENDING_RELEASE])

    def version(self, container_id: str) -> int:
        """The container's version in force."""
        return self._records.holdings[container_id].version

    def containers(self) -> tuple[str, ...]:
        """The ids of all containers, in the order they came; also withdrawn ones of which pods still have addresses."""
        return tuple(self._records.holdings)

    def is_granted(self, container_id: str) -> bool:
        """Whether the container is known and not withdrawn."""
        holding = self._records.holdings.get(container_id)
        return holding is not None and not holding.withdrawn

    def owners(self) -> dict[tuple[str, str], tuple[Address, ...]]:
        """The addresses of each owner, by sandbox and interface."""
        return dict(self._records.by_owner)

    def outlived(self) -> int:
        """How many owners have only addresses that no container grants any more: these owners need no other."""
        orphans = (
            each
            for holding in self._records.holdings.values()
            for each in holding.shelves[State.ORPHANED].values()
        )
        owners = {(each.owner.sandbox, each.owner.interface) for each in orphans if each.owner is not None}
        return sum(
            all(each.state is State.ORPHANED for each in self._records.by_owner[key]) for key in owners
        )

    def addresses(self) -> Iterable[Address]:
        """Every address of the pool. Read only."""
        for holding in self._records.holdings.values():
            yield from holding.addresses.values()

    # What outlives a program

    def snapshot(self) -> PoolSnapshot:
        """The pool as plain values."""
        return PoolSnapshot(
            turn=self._records.turn,
            containers=tuple(holding.kept() for holding in self._records.holdings.values()),
            owners=tuple(_kept_owner(addresses) for addresses in self._records.by_owner.values()),
        )

    def restore(self, snapshot: PoolSnapshot, now: float) -> None:
        """Make this new pool the one the snapshot was taken of; its addresses count as having come `now`."""
        self._records.turn = snapshot.turn
        for kept in snapshot.containers:
            holding = self._records.holdings[kept.id] = ContainerAddresses.restored(kept, now)
            self._records.by_ip.update((address.ip, address) for address in holding.addresses.values())
            if not holding.withdrawn:
                self._records.families[holding.family].append(holding)
        for held in snapshot.owners:
            self._records.own(held.owner, tuple(known(self._records.by_ip, ip) for ip in held.ips))

    def _longest_free(self, holdings: list[ContainerAddresses], now: float) -> Address | None:
        """The address to hand out next: the one free longest, those that cool down after all others."""
        heads = [head for holding in holdings for head in holding.heads()]
        if len(heads) <= 1:
            return heads[0] if heads else None
        cool_since = now - self._cooldown_seconds
        return min(heads, key=lambda head: (head.used and head.since > cool_since, head.turn))

    def _named(self, names: Iterable[str]) -> Iterable[Address]:
        for name in names:
            for holding in self._records.holdings.values():
                if (address := holding.addresses.get(name)) is not None:
                    yield address


def _kept_owner(addresses: tuple[Address, ...]) -> KeptOwner:
    owner = addresses[0].owner
    assert owner is not None, "who holds addresses is written on each of them"
    return KeptOwner(owner, tuple(address.ip for address in addresses))
