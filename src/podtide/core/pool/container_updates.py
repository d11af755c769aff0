"""How the pool's records follow what the cluster grants: a network container's new version, its withdrawal, its successor.

Names, not addresses, identify a grant: they are minted once, so a late event about an old grant touches nothing. An
older version of a container is ignored, and the same version again changes nothing.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct

from podtide.core.pool.address import Address, Family
from podtide.core.pool.container_addresses import ContainerAddresses
from podtide.core.pool.records import PoolRecords
from podtide.core.pool.states import AddressEvent, State


class GrantedContainer(Struct, frozen=True):
    """A network container as the node is told of it: the names and addresses it grants, at one version."""

    id: str
    version: int
    family: Family
    addresses: Mapping[str, str]


class AppliedContainer(Struct, frozen=True):
    """What a container's new version changed, by name. Alarms are sentences for people."""

    granted: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()


def is_news(records: PoolRecords, container: GrantedContainer) -> bool:
    """Whether there is anything in it to apply."""
    holding = records.holdings.get(container.id)
    if holding is None or container.version > holding.version:
        return True
    if container.version < holding.version:
        return False
    orphans = holding.shelves[State.ORPHANED]
    return holding.withdrawn or holding.addresses.keys() - orphans.keys() != container.addresses.keys()


def apply(
    records: PoolRecords, container: GrantedContainer, named: frozenset[str], event: AddressEvent, now: float
) -> AppliedContainer:
    """Take in a container: additions come by `event`, those `named` for release before are named again."""
    if not is_news(records, container):
        return AppliedContainer()
    holding = records.grant(container.id, container.family, container.version)
    update = _Update(records, holding, now)
    gone = update.withdraw_absent(container.addresses, f"version {container.version} lacks")
    given_up = {name: ip for name, ip in container.addresses.items() if name in named}
    others = {name: ip for name, ip in container.addresses.items() if name not in named}
    releasing = update.grant(given_up, AddressEvent.GRANTED)
    for name in releasing:
        address = holding.addresses[name]
        if address.state is State.PENDING_PROGRAMMING:  # else it was an orphan, and is its pod's again
            records.move(address, AddressEvent.NAMED, now)
    granted = update.grant(others, event)
    return AppliedContainer(granted=(*releasing, *granted), gone=tuple(gone), alarms=tuple(update.alarms))


def withdraw(records: PoolRecords, holding: ContainerAddresses, now: float) -> AppliedContainer:
    """Take out a container that is no longer granted, but for what pods still have of it."""
    records.withdraw(holding)
    update = _Update(records, holding, now)
    gone = update.withdraw_absent((), "is withdrawn and with it")
    records.forget_if_gone(holding)
    return AppliedContainer(gone=tuple(gone), alarms=tuple(update.alarms))


def found_again(records: PoolRecords, container: GrantedContainer, former: Collection[str]) -> list[Address]:
    """The addresses of former containers that this one grants by other names."""
    own = records.holdings.get(container.id)
    found = []
    for name, ip in container.addresses.items():
        twin = records.by_ip.get(ip)
        if twin is None or twin.container not in former:
            continue
        is_own = own is not None and twin.container == own.id
        if not is_own or (own and container.version > own.version and name not in own.addresses):
            found.append(twin)
    return found


def carry_over(
    records: PoolRecords, container: GrantedContainer, former: Collection[str], now: float
) -> tuple[str, ...]:
    """Move what the container grants of former ones into it, each in the state it is in; answers the new names."""
    names = {ip: name for name, ip in container.addresses.items()}
    found = found_again(records, container, former)
    if not found:
        return ()
    holding = records.grant(container.id, container.family, container.version)
    for address in sorted(found, key=lambda address: address.turn):
        records.relocate(address, holding, names[address.ip], now)
    for id_ in former:
        if id_ in records.holdings:
            records.forget_if_gone(records.holdings[id_])
    return tuple(address.name for address in found)


class _Update:
    """One container's addresses on their way to a new version, and the alarms that this raises."""

    def __init__(self, records: PoolRecords, holding: ContainerAddresses, now: float) -> None:
        self.alarms: list[str] = []
        self._records = records
        self._holding = holding
        self._now = now

    def withdraw_absent(self, granted: Collection[str], said: str) -> list[str]:
        """Withdraw what is not among the granted names; answers the names that are gone with it."""
        absent = [address for name, address in self._holding.addresses.items() if name not in granted]
        gone = []
        for address in absent:
            if address.state is State.ORPHANED:
                continue
            if address.state is not State.PENDING_RELEASE:
                self.alarms.append(
                    f"container {self._holding.id} {said} {address}, which this node did not name for release"
                )
            self._records.move(address, AddressEvent.WITHDRAWN, self._now)
            if address.state is None:
                gone.append(address.name)
        return gone

    def grant(self, addresses: Mapping[str, str], event: AddressEvent) -> list[str]:
        """Add what is new among these; answers the names that were granted by that."""
        granted = []
        for name, ip in addresses.items():
            known, twin = self._holding.addresses.get(name), self._records.by_ip.get(ip)
            if known is None and twin is None:
                address = Address(name=name, ip=ip, container=self._holding.id)
                self._records.move(address, event, self._now)
            elif twin is not None and self._is_own_orphan(twin) and (known is None or known is twin):
                self._records.rename_orphan(twin, name)
                self._records.move(twin, AddressEvent.GRANTED, self._now)
            elif known is not None and known is twin:
                continue
            else:
                self.alarms.append(
                    f"container {self._holding.id} grants {ip} as {name}, but the pool holds {twin or known}"
                )
                continue
            granted.append(name)
        return granted

    def _is_own_orphan(self, address: Address) -> bool:
        return address.state is State.ORPHANED and address.container == self._holding.id
