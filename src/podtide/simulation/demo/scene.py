"""The state of the subnet and the nodes at one instant, as far as it is shown."""

from fractions import Fraction

from msgspec import Struct

from podtide.allocator.subnets import Subnet
from podtide.controller.counts import SubnetCounts
from podtide.core.pool.states import State
from podtide.simulation.nodes.machine import Machine


class NodeScene(Struct, frozen=True, kw_only=True):
    """A node's pool."""

    name: str
    assigned: int
    free: int
    releasing: int
    waiting: int
    """Pods without an address."""
    requested: int


class SubnetScene(Struct, frozen=True, kw_only=True):
    """The subnet, and what is in force for it."""

    name: str
    capacity: int
    reserved: int
    assigned: int
    """Addresses on pods."""
    owed: int
    batch: int
    buffer: Fraction
    exhausted: bool
    starved: bool
    lower: Fraction
    upper: Fraction
    """The thresholds, as parts of the capacity."""


class DemoScene(Struct, frozen=True):
    """One subnet and its nodes."""

    subnet: SubnetScene
    nodes: tuple[NodeScene, ...]


def node_scene(machine: Machine) -> NodeScene:
    """A machine's pool as its agent has it; empty while no agent runs."""
    if machine.agent is None:
        return NodeScene(name=machine.name, assigned=0, free=0, releasing=0, waiting=0, requested=0)
    state = machine.agent.addresses.state()
    return NodeScene(
        name=machine.name,
        assigned=state.counts.get(State.ASSIGNED, 0),
        free=state.counts.get(State.AVAILABLE, 0) + state.counts.get(State.PENDING_PROGRAMMING, 0),
        releasing=state.counts.get(State.PENDING_RELEASE, 0),
        waiting=state.waiting_pods,
        requested=state.requested or 0,
    )


def subnet_scene(
    subnet: Subnet, decided: SubnetCounts, nodes: tuple[NodeScene, ...], thresholds: tuple[Fraction, Fraction]
) -> SubnetScene:
    """The subnet as the allocator has it and the controller last decided."""
    lower, upper = thresholds
    return SubnetScene(
        name=subnet.name,
        capacity=subnet.capacity,
        reserved=subnet.reserved,
        assigned=sum(node.assigned for node in nodes),
        owed=subnet.owed,
        batch=decided.batch,
        buffer=decided.buffer,
        exhausted=decided.exhausted,
        starved=decided.starved,
        lower=lower,
        upper=upper,
    )
