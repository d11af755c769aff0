"""The addresses as the allocator, the agents and the machines have them at one instant, for the audit to compare.

The agents and the machines are read first, in one go, and the allocator after them. An address that a pod has when
the reading begins is still granted when it ends, so a picture of a cluster at work shows no false contradiction.

In a picture a node is its name and its uid: a Node created again under its name is another node, and so is one of that
name in another cluster. Addresses of a machine's former Node that its pods still have are in quarantine, and those pods
have to end.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from podtide.agent.port import Addresses
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.pages import every_container
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Subnet
from podtide.core.audit.invariants import Grant, NodeView, Picture, PodView
from podtide.core.pool.address import Address
from podtide.core.pool.states import State
from podtide.resources.container_ids import node_uid
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.kubelet import Sandbox


class MachineView(Struct, frozen=True, kw_only=True):
    """A machine's agent and sandboxes, as they are now."""

    node: str
    uid: str
    """The uid of the machine's Node; "" while there is none."""
    addresses: Addresses | None
    """None while no synced agent runs there."""
    sandboxes: tuple[Sandbox, ...]
    named: frozenset[str]
    """Every name that the node's agents ever named for release."""
    giver: Callable[[str], str]
    """The container of an address that a pod there has, for addresses that the agent's pool does not contain."""
    cluster: str = ""
    """The cluster's name; "" where there is only one."""

    @property
    def identity(self) -> str:
        """The node's name in a picture."""
        return identity_of(self.node, self.uid)

    def pods(self) -> Iterator[PodView]:
        """The pods, once for each address, with the node of that address: one family may have moved to a new Node, the other not yet."""
        containers = {
            address.ip: address.container
            for address in (self.addresses.all_addresses() if self.addresses else ())
        }
        for sandbox in self.sandboxes:
            for address in sandbox.addresses:
                holder = containers.get(address) or self.giver(address)
                yield PodView(
                    full_name(self.cluster, sandbox.pod), identity_of(self.node, holder), (address,)
                )


async def take_picture(machines: Sequence[MachineView], allocator: Allocator, network: str) -> Picture:
    """Take the picture of one network."""
    nodes = tuple(
        NodeView(
            machine.identity, own_addresses(machine.addresses.all_addresses(), machine.uid), machine.named
        )
        for machine in machines
        if machine.addresses is not None and machine.uid
    )
    pods = tuple(pod for machine in machines for pod in machine.pods())
    subnets, containers = await _read(allocator, network)
    held = Counter[str]()
    for container in containers:
        held[container.subnet] += 1 + len(container.addresses)
    return Picture(
        ledgers=tuple(subnet.ledger(held[subnet.name]) for subnet in subnets),
        grants=tuple(map(grant_of, containers)),
        nodes=nodes,
        pods=pods,
    )


async def _read(allocator: Allocator, network: str) -> tuple[tuple[Subnet, ...], list[AllocatedContainer]]:
    """Subnets and containers of one instant: read until the counts are the same before and after."""
    after = await allocator.list_subnets(network)
    while True:
        before = after
        containers = [container async for container in every_container(allocator, network=network)]
        after = await allocator.list_subnets(network)
        if _counts(before) == _counts(after):
            return after, containers


def _counts(subnets: Sequence[Subnet]) -> list[tuple[str, int, int, int]]:
    """The counts of the subnets that change with their containers. Ages change by themselves, and are left out."""
    return [(subnet.name, subnet.reserved, subnet.containers, subnet.owed) for subnet in subnets]


def grant_of(container: AllocatedContainer) -> Grant:
    """A container as the allocator has it."""
    return Grant(
        container=container.id,
        node=identity_of(container.node, container.id),
        subnet=container.subnet,
        primary=container.primary,
        addresses={address.name: address.ip for address in container.addresses},
    )


def own_addresses(addresses: Iterable[Address], uid: str) -> dict[str, State]:
    """The states of a machine's addresses that are of its present Node."""
    return {
        address.ip: address.state
        for address in addresses
        if address.state and address.container.startswith(uid)
    }


def identity_of(node: str, container: str) -> str:
    """The name in a picture of a container's node; the id of a Node's first container is its uid."""
    return f"{node} ({node_uid(container)})"
