"""What allocator, agents and machines each say of the addresses at one instant, put side by side for the audit.

The agents and the machines are read first, in one go, and the allocator after them. An address that a pod has when
the reading begins is still granted when it ends, so a picture taken of a cluster at work shows no contradiction that
is not one.

In a picture a node is its name and its uid: a Node made again under its name is another node. What pods of a machine
still have of a Node that it no longer is concerns nobody but these pods: it rests in quarantine, and they have to go.
"""

from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec import Struct

from podtide.agent.port import Addresses
from podtide.allocator.port import Allocator, Container, Subnet
from podtide.core.address_states import State
from podtide.core.audit import Grant, Ledger, NodeView, Picture, PodView
from podtide.simulation.kubelet import Sandbox


class Sighting(Struct, frozen=True, kw_only=True):
    """A machine as it is now."""

    node: str
    uid: str
    """Of the Node that the machine is; "" while there is none."""
    addresses: Addresses | None
    """None while no agent runs there that knows its pool."""
    sandboxes: tuple[Sandbox, ...]
    named: frozenset[str]
    """Every name that the node's agents ever named for release."""

    @property
    def identity(self) -> str:
        """The node in a picture."""
        return _identity(self.node, self.uid)

    def own(self) -> dict[str, State]:
        """The addresses of the Node that the machine is."""
        return {
            address.ip: address.state
            for address in (self.addresses.all_addresses() if self.addresses else ())
            if address.state and self.is_own(address.container)
        }

    def is_own(self, container: str) -> bool:
        """Whether a container is one of the Node that the machine is."""
        return bool(self.uid) and container.startswith(self.uid)

    def holder(self, sandbox: Sandbox) -> str:
        """The node by which a sandbox has its addresses."""
        for address in self.addresses.all_addresses() if self.addresses else ():
            if address.ip in sandbox.addresses and not self.is_own(address.container):
                return _identity(self.node, address.container)
        return self.identity


async def take_picture(sightings: Sequence[Sighting], allocator: Allocator, network: str) -> Picture:
    """The picture of one network."""
    nodes = tuple(
        NodeView(sighting.identity, sighting.own(), sighting.named)
        for sighting in sightings
        if sighting.addresses is not None and sighting.uid
    )
    pods = tuple(
        PodView(sandbox.pod, sighting.holder(sandbox), sandbox.addresses)
        for sighting in sightings
        for sandbox in sighting.sandboxes
        if sandbox.addresses
    )
    subnets, containers = await _read(allocator, network)
    return Picture(
        ledgers=tuple(_ledger(subnet, containers) for subnet in subnets),
        grants=tuple(_grant(container, sightings) for container in containers),
        nodes=nodes,
        pods=pods,
    )


async def _read(allocator: Allocator, network: str) -> tuple[tuple[Subnet, ...], list[Container]]:
    """Subnets and containers of one instant: the counts are the same before and after."""
    after = await allocator.list_subnets(network)
    while True:
        before = after
        containers = [container async for container in _containers(allocator, network)]
        after = await allocator.list_subnets(network)
        if before == after:
            return after, containers


async def _containers(allocator: Allocator, network: str) -> AsyncIterator[Container]:
    more = ""
    while True:
        page = await allocator.list_containers(network=network, more=more)
        for container in page.items:
            yield container
        more = page.more
        if not more:
            return


def _ledger(subnet: Subnet, containers: Iterable[Container]) -> Ledger:
    """The subnet's counts. What it reserves beyond its containers rests in quarantine: nothing else may."""
    held = sum(1 + len(container.addresses) for container in containers if container.subnet == subnet.name)
    resting = max(0, subnet.reserved - held)
    return Ledger(
        subnet=subnet.name,
        capacity=subnet.capacity,
        reserved=subnet.reserved - resting,
        free=subnet.capacity - subnet.reserved,
        resting=resting,
    )


def _grant(container: Container, sightings: Iterable[Sighting]) -> Grant:
    identities = (
        sighting.identity
        for sighting in sightings
        if sighting.node == container.node and sighting.is_own(container.id)
    )
    return Grant(
        container=container.id,
        node=next(identities, _identity(container.node, container.id)),
        subnet=container.subnet,
        primary=container.primary,
        addresses={address.name: address.ip for address in container.addresses},
    )


def _identity(node: str, uid: str) -> str:
    return f"{node} ({uid})"
