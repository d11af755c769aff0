"""The records of a node's pool: every address by container, by IP and by owner, and the one place where its state changes.

`Pool` decides on these records; `container_updates` brings them into line with what the cluster grants. Both change an
address only by `move`, so that the indexes agree with each other after every event, and every listener hears of it.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from podtide.core.pool.address import Address, Family, Owner
from podtide.core.pool.container_addresses import ContainerAddresses
from podtide.core.pool.states import TRANSITIONS, AddressEvent, BrokenPool, State

T = TypeVar("T")

CONTRADICTION = "the pool's records contradict themselves; restart the agent and report this"


class PoolRecords:
    """The addresses of a pool, indexed."""

    def __init__(self) -> None:
        self.turn = 0
        self.holdings: dict[str, ContainerAddresses] = {}
        self.families: dict[Family, list[ContainerAddresses]] = {4: [], 6: []}
        """The holdings that are granted: none that is withdrawn."""
        self.by_ip: dict[str, Address] = {}
        self.by_owner: dict[tuple[str, str], tuple[Address, ...]] = {}
        self.on_move: list[Callable[[Address], None]] = []
        """Called with every address whose state changed, after it did. One that is gone has none."""

    def move(self, address: Address, event: AddressEvent, now: float) -> None:
        """Change an address's state by the table of `states`: the only place where that happens."""
        old = address.state
        try:
            new = TRANSITIONS[old][event]
        except KeyError:
            raise BrokenPool(
                f"address {address.ip} ({address.name}) is {old or 'absent'} and cannot be {event}: {CONTRADICTION}"
            ) from None
        holding = self.holdings[address.container]
        if old is None:
            holding.addresses[address.name] = self.by_ip[address.ip] = address
        else:
            del holding.shelf(address, old)[address.name]
        self.turn += 1
        address.state, address.since, address.turn = new, now, self.turn
        if new is None:
            del holding.addresses[address.name], self.by_ip[address.ip]
        else:
            holding.shelf(address, new)[address.name] = address
        for tell in self.on_move:
            tell(address)

    def own(self, owner: Owner, addresses: tuple[Address, ...]) -> None:
        """Record whose these addresses are. Their states are for `move` to change."""
        self.by_owner[owner.sandbox, owner.interface] = addresses
        for address in addresses:
            address.owner = owner

    def grant(self, container_id: str, family: Family, version: int) -> ContainerAddresses:
        """The container's holding, made if there is none and no longer withdrawn, at this version."""
        holding = self.holdings.get(container_id)
        if holding is None:
            holding = self.holdings[container_id] = ContainerAddresses(container_id, family)
            self.families[family].append(holding)
        elif holding.withdrawn:
            holding.withdrawn = False
            self.families[holding.family].append(holding)
        holding.version = version
        return holding

    def withdraw(self, holding: ContainerAddresses) -> None:
        """Record that the container is no longer granted: nothing of it is handed out."""
        holding.withdrawn = True
        self.families[holding.family].remove(holding)

    def forget_if_gone(self, holding: ContainerAddresses) -> None:
        """Delete a withdrawn container's holding once no pod has an address of it."""
        if holding.withdrawn and not holding.addresses:
            del self.holdings[holding.id]

    def rename_orphan(self, address: Address, name: str) -> None:
        """Give an orphaned address the name of a new grant."""
        holding = self.holdings[address.container]
        shelf = holding.shelf(address, State.ORPHANED)
        del holding.addresses[address.name], shelf[address.name]
        address.name = name
        holding.addresses[name] = shelf[name] = address

    def relocate(self, address: Address, holding: ContainerAddresses, name: str, now: float) -> None:
        """Put an address into another holding under another name, in the state it is in; an orphan is granted again."""
        state, former = address.state, self.holdings[address.container]
        assert state is not None, "what is in a holding has a state"
        del former.addresses[address.name], former.shelf(address, state)[address.name]
        address.container, address.name = holding.id, name
        holding.addresses[name] = holding.shelf(address, state)[name] = address
        if state is State.ORPHANED:
            self.move(address, AddressEvent.GRANTED, now)
            return
        for tell in self.on_move:
            tell(address)


def known(things: Mapping[str, T], key: str) -> T:
    """What the records have under this key; BrokenPool when there is nothing, because somebody chose it from them."""
    try:
        return things[key]
    except KeyError:
        raise BrokenPool(f"{key} is not in the pool: {CONTRADICTION}") from None
