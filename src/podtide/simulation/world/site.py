"""What clusters have in common that share an allocator: its subnets, and whoever looks at their addresses.

    trace       what happened in all of them, in order
    programs    the programs of all of them: one that fails ends the simulation
    book        who has which address, in whichever cluster (see `address_book`)
    auditor     holds the book, the allocator and all machines against each other

A cluster is a `World`, with machines, controllers and pods of its own. Most simulations have one, which makes its own
site; those that are given one share it.
"""

from collections.abc import Sequence
from functools import partial

from podtide.allocator.port import AllocatedContainer
from podtide.allocator.store import DatabaseAllocator
from podtide.core.audit.invariants import Picture, Violation
from podtide.simulation.checks.address_book import AddressBook
from podtide.simulation.checks.audit_loop import Auditor
from podtide.simulation.checks.network_book import NetworkBook
from podtide.simulation.checks.picture import MachineView, take_picture
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.nodes.programs import Programs
from podtide.simulation.trace import ClusterWrite, Entry, Trace
from podtide.simulation.world.restartable_allocator import RestartableAllocator


class Site:
    """One network of an allocator, with all clusters that use it."""

    def __init__(self, allocator: DatabaseAllocator, network: str) -> None:
        self.allocator = allocator
        self.network = network
        self.machines: dict[str, Machine] = {}
        """Those of all clusters, by their full names."""
        self.network_books = list[NetworkBook]()
        """Secondary networks are each cluster's own, and so are the books of them."""
        self.trace = Trace()
        self.programs = Programs()
        self.book = AddressBook(self.machines)
        self.auditor = Auditor(self, self.trace)
        self.trace.listeners.append(self._hear)
        if isinstance(allocator, RestartableAllocator):
            allocator.on_recovered.append(self._recovered)
        self._cluster_writes = 0

    @property
    def findings(self) -> Sequence[Violation]:
        """What the books found to be broken."""
        return (*self.book.findings, *(found for book in self.network_books for found in book.findings))

    async def picture(self) -> Picture:
        """What everybody says of the addresses now.

        An agent that gives something up while the allocator is read makes the two readings those of two instants:
        then both are read again.
        """
        while True:
            writes = self._cluster_writes
            machines = tuple(map(self._view, self.machines.values()))
            picture = await take_picture(machines, self.allocator, self.network)
            if self._cluster_writes == writes:
                return picture

    async def counts_add_up(self) -> bool:
        """Whether the allocator counts as many addresses as it answered to have granted, if it granted any lately.

        Of what it does at this moment it has counted already, and answers only afterwards: no proof that it errs.
        """
        if not self.book.grants_changed or self._allocator_is_away():
            return True
        self.book.grants_changed = False
        subnets = await self.allocator.list_subnets(self.network)
        return all(self.book.held(each.name) <= each.reserved <= each.capacity for each in subnets)

    def _allocator_is_away(self) -> bool:
        return isinstance(self.allocator, RestartableAllocator) and self.allocator.is_away

    async def is_of_the_past(self) -> bool:
        """Whether the allocator went back, and does not know again what nodes hold."""
        return isinstance(self.allocator, RestartableAllocator) and await self.allocator.is_of_the_past()

    async def audit_database(self) -> tuple[Violation, ...]:
        """What is wrong with the allocator's database."""
        return await self.allocator.audit()

    def summary(self) -> str:
        """The nodes in one line, for whoever has to find out why something did not happen."""
        return "; ".join(
            f"{machine.full_name}: {machine.agent.addresses.state() if machine.agent else 'no agent'}"
            for machine in self.machines.values()
        )

    def _view(self, machine: Machine) -> MachineView:
        return MachineView(
            node=machine.name,
            cluster=machine.cluster,
            uid=machine.uid,
            addresses=agent.addresses if (agent := machine.knowing_agent) else None,
            sandboxes=machine.kubelet.sandboxes(),
            named=frozenset(machine.named),
            giver=partial(self.book.giver, machine.full_name),
        )

    def _recovered(self, containers: Sequence[AllocatedContainer]) -> None:
        self.auditor.begin_anew()
        self.book.recovered(containers)

    def _hear(self, entry: Entry) -> None:
        self._cluster_writes += isinstance(entry, ClusterWrite)
        self.book.hear(entry)
