"""Unknown is a state, not a zero (design R14): an agent asks for nothing before it was told all it goes by.

An agent that took pods it has not heard of yet for none would ask for too little whenever it starts, and give back what
those pods are about to need; one that goes by another subnet than its own asks for too much when that is running low.
Such a request takes no address from a pod that has one, so no audit of addresses shows it. It shows on the agent's
line: what the agent was told there, and what it says.
"""

from collections.abc import Callable

from podtide.core.audit.invariants import Violation
from podtide.resources.base import Resource
from podtide.resources.config_confirmation import doubt_in
from podtide.resources.node_network_config import NodeNetworkConfig

_ONE_WRITE_TO_THE_TARGET = 5
"""The invariant that is broken: a request that was made without knowing is not the one that is needed."""


class Hearsay:
    """What one program was told since it began. `find` is told of a request that goes by more than that."""

    def __init__(
        self, program: str, subnets_of: Callable[[str], tuple[str, ...]], find: Callable[[Violation], None]
    ) -> None:
        self._program = program
        self._subnets_of = subnets_of
        self._find = find
        self._told: set[str] = set()

    def told(self, subject: str) -> None:
        """The program was told which objects there are of a kind and a selector."""
        self._told.add(subject)

    def says(self, item: Resource) -> None:
        """The program applies this. Who asks whether the object is of the present states again what it found there."""
        if isinstance(item, NodeNetworkConfig) and not doubt_in(item.metadata.annotations):
            unknown = [subject for subject in self._gone_by(item.metadata.name) if subject not in self._told]
            if unknown:
                self._find(self._violation(item, unknown))

    def _gone_by(self, node: str) -> tuple[str, ...]:
        """What a node's request follows from."""
        return (
            f"NodeNetworkConfig metadata.name={node}",
            f"Pod spec.nodeName={node}",
            *(f"ClusterSubnet metadata.name={subnet}" for subnet in self._subnets_of(node)),
        )

    def _violation(self, item: NodeNetworkConfig, unknown: list[str]) -> Violation:
        return Violation(
            _ONE_WRITE_TO_THE_TARGET,
            item.metadata.name,
            f"{self._program} asked for {item.spec.requested_ip_count} addresses before it was told of "
            f"{', '.join(unknown)}",
        )
