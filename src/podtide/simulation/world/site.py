"""What the clusters that share an allocator have in common: its subnets, the trace, and the checks of addresses.

    trace       what happened in all of them, in order
    programs    the programs of all of them: one that fails ends the simulation
    book        who has which address, in whichever cluster (see `address_book`)
    auditor     holds the book, the allocator and all machines against each other

A cluster is a `World`, with machines, controllers and pods of its own. Most simulations have one, which makes its own
site; those that are given one share it.
"""

from collections.abc import Sequence
from functools import partial

from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.store import DatabaseAllocator
from podtide.core.audit.invariants import Picture, Violation
from podtide.simulation.checks.address_book import AddressBook
from podtide.simulation.checks.audit_loop import Auditor
from podtide.simulation.checks.call_history import CallHistory
from podtide.simulation.checks.network_book import NetworkBook
from podtide.simulation.checks.picture import MachineView, take_picture
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.nodes.programs import Programs
from podtide.simulation.trace import ClusterWrite, Entry, Trace
from podtide.simulation.world.restartable_allocator import RestartableAllocator


class Site:
    """One network of an allocator, with all clusters that use it."""

    def __init__(
        self, allocator: DatabaseAllocator, network: str, *, calls: CallHistory | None = None
    ) -> None:
        self.allocator = allocator
        self.front = allocator.front if isinstance(allocator, RestartableAllocator) else allocator
        """What programs call: the allocator, or its replicas."""
        self.network = network
        self.calls = calls
        """What kubelets called, where that is checked."""
        self.machines: dict[str, Machine] = {}
        """The machines of all clusters, by their full names."""
        self.network_books = list[NetworkBook]()
        """One for each cluster with secondary networks: clusters do not share these."""
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
        """The violations that the books found."""
        return (*self.book.findings, *(found for book in self.network_books for found in book.findings))

    async def picture(self) -> Picture:
        """The addresses as the allocator, the agents and the machines have them, all of one instant.

        Both are read again when an agent wrote while the allocator was read: it may have named addresses for release.
        """
        while True:
            writes = self._cluster_writes
            machines = tuple(map(self._view, self.machines.values()))
            picture = await take_picture(machines, self.allocator, self.network)
            if self._cluster_writes == writes:
                return picture

    async def counts_add_up(self) -> bool:
        """Whether the allocator counts at least as many addresses as its answers granted, if they changed since the last check.

        It may count more: a transaction that is not answered yet is counted already.
        """
        if not self.book.grants_changed or self._allocator_is_away():
            return True
        self.book.grants_changed = False
        subnets = await self.allocator.list_subnets(self.network)
        return all(self.book.held(each.name) <= each.reserved <= each.capacity for each in subnets)

    def _allocator_is_away(self) -> bool:
        return isinstance(self.allocator, RestartableAllocator) and self.allocator.is_away

    async def is_of_the_past(self) -> bool:
        """Whether the allocator was restored from a backup and still recovers: it lacks some of what nodes hold."""
        return isinstance(self.allocator, RestartableAllocator) and await self.allocator.is_of_the_past()

    async def audit_database(self) -> tuple[Violation, ...]:
        """The violations in the allocator's database."""
        return await self.allocator.audit()

    def summary(self) -> str:
        """The nodes' pools in one line, for messages about what did not happen."""
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
