"""An agent requests nothing before its caches have synced: unknown is a state, not a zero (design R14).

An agent that took pods missing from an unsynced cache for none would request too little whenever it starts, and give back
what those pods are about to need; one that used another subnet's state than its own's requests too much when its own runs
low. Such a request takes no address from a pod that has one, so no audit of addresses shows it. It shows on the agent's
connection to the cluster: what the agent has listed, and what it applies.
"""

from collections.abc import Callable

from podtide.core.audit.invariants import Violation
from podtide.resources.base import Resource
from podtide.resources.config_confirmation import doubt_in
from podtide.resources.node_network_config import NodeNetworkConfig

_ONE_WRITE_TO_THE_TARGET = 5
"""The invariant that is broken: a request computed from unknown demand is not the one that is needed."""


class PrematureRequests:
    """Finds requests that a program applied before it had listed everything that they are computed from.

    `find` is called with each.
    """

    def __init__(
        self, program: str, subnets_of: Callable[[str], tuple[str, ...]], find: Callable[[Violation], None]
    ) -> None:
        self._program = program
        self._subnets_of = subnets_of
        self._find = find
        self._listed: set[str] = set()

    def listed(self, subject: str) -> None:
        """Note that the program has read a whole list, of a kind and a selector."""
        self._listed.add(subject)

    def check(self, item: Resource) -> None:
        """Check an object that the program applies.

        A NodeNetworkConfig that asks whether its object is current repeats the request it found there, and is exempt.
        """
        if isinstance(item, NodeNetworkConfig) and not doubt_in(item.metadata.annotations):
            unknown = [subject for subject in self._needed(item.metadata.name) if subject not in self._listed]
            if unknown:
                self._find(self._violation(item, unknown))

    def _needed(self, node: str) -> tuple[str, ...]:
        """The lists that a node's request is computed from."""
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
