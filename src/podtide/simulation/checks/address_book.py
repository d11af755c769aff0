"""Which container, node and pod has each address, updated and checked at every change at the programs' ports.

    allocator      what its calls answered              from the trace
    agents         what they named for release          from the trace
                   every move of an address in a pool   from the pool, while it belongs to an agent that is synced
    machines       every sandbox that got or lost its addresses

So a violation that lasts for one instant is found, too, and the cost of a change does not depend on the number of nodes.
Findings are kept here and not passed to programs, which could not have known of them.

In the book as in a picture (see `picture`) a node is its name and its uid. Which pool is a node's is looked up when
something happens to the node, so a finding is checked against the present state before it counts.

There is one book for all clusters of a subnet: an address that two of them have is found like any other. Machines are
known by their full names here.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from podtide.agent.program import NodeAgent
from podtide.allocator.containers import AllocatedContainer
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
"""The invariant that is about changes: no single instant can show a violation."""


class _View:
    """A node's pool as the book last read it: of which agent, and as which Node."""

    def __init__(self, machine: Machine, agent: NodeAgent) -> None:
        self.agent = agent
        self.uid = machine.uid
        self.identity = identity_of(machine.name, machine.uid)


class AddressBook:
    """The book of these machines, by their full names."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self.findings: list[Violation] = []
        """The violations, oldest first."""
        self.grants_changed = False
        """Whether grants changed since this was last set to False."""
        self._machines = machines
        self._audit = RunningAudit()
        self._views: dict[str, _View] = {}
        self._nodes: dict[str, str] = {}
        """The full names of containers' nodes, by id."""
        self._former = FormerNodes()
        self._givers: dict[tuple[str, str], str] = {}
        """The container of each address when a pod of that machine last got it."""

    def giver(self, node: str, ip: str) -> str:
        """The container of an address that a pod of the machine has, even if no pool there contains it any more.

        An agent that lost its records, and then its Node, has no record of what its predecessor assigned as the former
        Node.
        """
        return self._givers.get((node, ip), self._machines[node].uid)

    def held(self, subnet: str) -> int:
        """How many addresses of a subnet are in containers."""
        return self._audit.held(subnet)

    def picture(self) -> Picture:
        """The whole book, for the audit."""
        return self._audit.picture()

    # What happens

    def hear(self, entry: Entry) -> None:
        """Update the book by an entry of the trace."""
        if isinstance(entry, AllocatorCall):
            self._take_answer(entry)
        elif isinstance(entry, ClusterWrite) and entry.item is not None:
            machine = self._machines.get(full_name(entry.cluster, entry.name))
            if machine is not None and entry.program == machine.agent_program:
                self.hear_sent(machine, entry.item)

    def hear_sent(self, machine: Machine, item: Resource) -> None:
        """Note the names that a machine's agent releases by an object which it sends, whether or not it arrives."""
        if isinstance(item, NodeNetworkConfig):
            self._take_names(machine, item.spec.ips_not_in_use)

    def recovered(self, containers: Iterable[AllocatedContainer]) -> None:
        """Bring the grants up to date with a restored store that has recovered; these are all its containers.

        Grants that it lost, and that no node ever saw, are not missing. What a node has must be granted.
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
        """Follow the pool of an agent that starts on a machine."""
        agent.pool.on_move.append(partial(self._take_move, machine, agent))
        if former := self._former.before(machine.full_name, machine.uid):
            agent.pool.on_move.append(partial(self._take_gift, machine, former))

    def sandbox_changed(self, machine: Machine, old: Sandbox | None, new: Sandbox | None) -> None:
        """Update the book by a sandbox that was created, changed or removed."""
        if old is not None:
            self._sandbox_gone(old)
        if new is not None and new.addresses:
            self._refresh(machine.full_name)
            for ip in new.addresses:
                pod = PodView(full_name(machine.cluster, new.pod), self._holder(machine, ip), (ip,))
                self._find(self._audit.pod_has(_use_of(new, ip), pod))

    def powered_off(self, machine: Machine) -> None:
        """Remove all sandboxes of a machine."""
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
        """Note that a pod has its address as another Node's now: its machine was registered again."""
        for sandbox in machine.kubelet.sandboxes():
            if ip in sandbox.addresses:
                self.sandbox_changed(machine, sandbox, sandbox)

    def _take_gift(self, machine: Machine, former: frozenset[str], address: Address) -> None:
        former -= {machine.uid}  # it may be back, in a cluster that went back
        if (violation := gift_of(former, machine.full_name, address)) is not None:
            self.findings.append(violation)

    # What is so

    def _refresh(self, node: str) -> None:
        """Look up again which pool is the node's, if any is known."""
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
        """The node as it is now, if its pool is known."""
        machine = self._machines.get(node)
        if machine is None or not machine.uid or (agent := machine.knowing_agent) is None:
            return None
        return _View(machine, agent)

    def _holder(self, machine: Machine, ip: str) -> str:
        """The node that a sandbox has an address of: the machine may be another Node by now.

        It is found for each address: two families are two containers, which a node receives one after the other.
        """
        return identity_of(machine.name, self.giver(machine.full_name, ip))

    def _find(self, violations: tuple[Violation, ...]) -> None:
        """Keep those violations that still hold after the nodes were looked up again."""
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
    """The name of a sandbox and one of its addresses: for the audit each is a sandbox of its own, as they may be of two nodes."""
    return f"{sandbox.id} {ip}"
