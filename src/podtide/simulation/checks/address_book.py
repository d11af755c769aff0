"""Who has which address, followed change by change at the ports of the programs, and checked at every one.

    allocator      what its calls answered              from the trace
    agents         what they named for release          from the trace
                   every move of an address in a pool   from the pool, while it belongs to an agent that is synced
    machines       every sandbox that got or lost its addresses

So nothing that is broken for an instant only goes unseen, and what a change costs does not depend on how many nodes
there are. What is found is kept: programs must not hear of it, they could not have known.

In the book as in a picture (see `observing`) a node is its name and its uid. Which pool is a node's is looked up when
something happens to the node, so what was found is held against the present before it counts.

There is one book for all clusters of a subnet: an address that two of them have is found like any other. Machines are
known by their full names here.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from podtide.agent.program import NodeAgent
from podtide.allocator.port import AllocatedContainer
from podtide.core.audit.incremental import RunningAudit
from podtide.core.audit.invariants import NodeView, Picture, PodView, Violation, audit
from podtide.core.pool.address import Address
from podtide.core.pool.states import State
from podtide.resources.base import Resource
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.checks.former_nodes import FormerNodes, gift_of
from podtide.simulation.checks.picture import grant_of, identity_of, own_addresses
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.kubelet import Sandbox
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.trace import AllocatorCall, ClusterWrite, Entry

_OF_CHANGES = 3
"""The invariant that no single instant can show to be broken."""


class _View:
    """A node's pool as the book follows it: by which agent, and as which Node."""

    def __init__(self, machine: Machine, agent: NodeAgent) -> None:
        self.agent = agent
        self.uid = machine.uid
        self.identity = identity_of(machine.name, machine.uid)


class AddressBook:
    """The book of these machines, by their full names."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self.findings: list[Violation] = []
        """What was broken, the first first."""
        self.grants_changed = False
        """Whether the allocator gave or took anything since somebody last set this to False."""
        self._machines = machines
        self._audit = RunningAudit()
        self._views: dict[str, _View] = {}
        self._nodes: dict[str, str] = {}
        """The full names of containers' nodes, by id."""
        self._former = FormerNodes()
        self._givers: dict[tuple[str, str], str] = {}
        """Of which container each address was when a pod of that machine last got it."""

    def giver(self, node: str, ip: str) -> str:
        """The container by which a pod of the machine has the address, even if no pool there knows it any more.

        An agent that lost its records, and then its Node, never hears of what its predecessor gave as the former one.
        """
        return self._givers.get((node, ip), self._machines[node].uid)

    def held(self, subnet: str) -> int:
        """How many addresses of a subnet are in containers."""
        return self._audit.held(subnet)

    def picture(self) -> Picture:
        """All that stands in the book."""
        return self._audit.picture()

    # What happens

    def hear(self, entry: Entry) -> None:
        """Something happened, as the trace tells it."""
        if isinstance(entry, AllocatorCall):
            self._take_answer(entry)
        elif isinstance(entry, ClusterWrite) and entry.item is not None:
            machine = self._machines.get(full_name(entry.cluster, entry.name))
            if machine is not None and entry.program == machine.agent_program:
                self.hear_sent(machine, entry.item)

    def hear_sent(self, machine: Machine, item: Resource) -> None:
        """A machine's agent writes this, whatever becomes of it on its way."""
        if isinstance(item, NodeNetworkConfig):
            self._take_names(machine, item.spec.ips_not_in_use)

    def recovered(self, containers: Iterable[AllocatedContainer]) -> None:
        """A store that went back grants again, and these are all containers: what it forgot, nobody ever heard of.

        What only it granted and no node was shown left nobody; but no node may miss anything that it has.
        """
        now = {container.id: container for container in containers}
        broken: tuple[Violation, ...] = ()
        for id_ in tuple(self._nodes):
            if id_ in now:
                broken += self._audit.granted(grant_of(now[id_]))
            else:
                del self._nodes[id_]
                broken += self._audit.ungranted(id_)
        self._find(tuple(each for each in broken if each.invariant != _OF_CHANGES))
        self.grants_changed = True

    def follow(self, machine: Machine, agent: NodeAgent) -> None:
        """An agent begins its work on a machine."""
        agent.pool.on_move.append(partial(self._take_move, machine, agent))
        if former := self._former.before(machine.full_name, machine.uid):
            agent.pool.on_move.append(partial(self._take_gift, machine, former))

    def sandbox_changed(self, machine: Machine, old: Sandbox | None, new: Sandbox | None) -> None:
        """A sandbox of a machine came, changed or went."""
        if old is not None:
            self._sandbox_gone(old)
        if new is not None and new.addresses:
            self._refresh(machine.full_name)
            for ip in new.addresses:
                pod = PodView(full_name(machine.cluster, new.pod), self._holder(machine, ip), (ip,))
                self._find(self._audit.pod_has(_use_of(new, ip), pod))

    def powered_off(self, machine: Machine) -> None:
        """A machine's sandboxes went all at once."""
        for sandbox in machine.kubelet.sandboxes():
            self._sandbox_gone(sandbox)

    def _sandbox_gone(self, sandbox: Sandbox) -> None:
        for ip in sandbox.addresses:
            self._audit.pod_gone(_use_of(sandbox, ip))

    def _take_answer(self, entry: AllocatorCall) -> None:
        if isinstance(entry.answer, AllocatedContainer):
            node = self._nodes[entry.answer.id] = full_name(entry.cluster, entry.answer.node)
            self._former.granted(node, entry.answer.id)
            self._refresh(node)
            self._find(self._audit.granted(grant_of(entry.answer)))
            self.grants_changed = True
        elif entry.call == "delete_container" and (owner := self._nodes.pop(entry.subject, None)) is not None:
            self._refresh(owner)
            self._find(self._audit.ungranted(entry.subject))
            self.grants_changed = True

    def _take_names(self, machine: Machine, names: Iterable[str]) -> None:
        machine.named.update(names)
        if (view := self._views.get(machine.full_name)) is not None:
            self._audit.named(view.identity, names)

    def _take_move(self, machine: Machine, agent: NodeAgent, address: Address) -> None:
        had_by = self._givers.get((machine.full_name, address.ip), address.container)
        if address.state is State.ASSIGNED:
            self._givers[machine.full_name, address.ip] = address.container
        view = self._views.get(machine.full_name)
        if view is None or view.agent is not agent or view.uid != machine.uid:
            self._refresh(machine.full_name)
        elif address.container.startswith(view.uid):
            self._find(self._audit.moved(view.identity, address.ip, address.state))
        if address.state is State.ASSIGNED and had_by != address.container:
            self._go_on(machine, address.ip)

    def _go_on(self, machine: Machine, ip: str) -> None:
        """A pod has its address as another Node's by now: its machine was registered again."""
        for sandbox in machine.kubelet.sandboxes():
            if ip in sandbox.addresses:
                self.sandbox_changed(machine, sandbox, sandbox)

    def _take_gift(self, machine: Machine, former: frozenset[str], address: Address) -> None:
        former -= {machine.uid}  # it may be back, in a cluster that went back
        if (violation := gift_of(former, machine.full_name, address)) is not None:
            self.findings.append(violation)

    # What is so

    def _refresh(self, node: str) -> None:
        """See whether another pool is the node's by now, or none that is known."""
        now = self._present(node)
        view = self._views.get(node)
        if view is not None and (now is None or (view.agent, view.uid) != (now.agent, now.uid)):
            del self._views[node]
            self._audit.unknown(view.identity)
            view = None
        if view is None and now is not None:
            self._views[node] = now
            own = own_addresses(now.agent.pool.addresses(), now.uid)
            named = frozenset(self._machines[node].named)
            self._find(self._audit.known(NodeView(now.identity, own, named)))

    def _present(self, node: str) -> _View | None:
        """The node as it is, if its pool is known."""
        machine = self._machines.get(node)
        if machine is None or not machine.uid or (agent := machine.knowing_agent) is None:
            return None
        return _View(machine, agent)

    def _holder(self, machine: Machine, ip: str) -> str:
        """The node by which a sandbox has an address: the machine may be another Node by now.

        So for each address: those of two families are of two containers, which a node takes in one after the other.
        """
        return identity_of(machine.name, self.giver(machine.full_name, ip))

    def _find(self, violations: tuple[Violation, ...]) -> None:
        """What was found counts if it is still so when the book is up to date with who is there."""
        if not violations:
            return
        for node in tuple(self._views):
            self._refresh(node)
        present = {(each.invariant, each.subject) for each in audit(self._audit.picture())}
        self.findings += [
            each
            for each in violations
            if each.invariant == _OF_CHANGES or (each.invariant, each.subject) in present
        ]


def _use_of(sandbox: Sandbox, ip: str) -> str:
    """What the audit knows as one sandbox: a sandbox and one of its addresses, which may be another node's than the next."""
    return f"{sandbox.id} {ip}"
