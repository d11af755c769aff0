"""Schedulable Nodes that publish no addresses: pods that request one are never placed there.

Where all pods request an address, every schedulable Node has to publish some. Nodes of another network, or on which the agent
does not run, would stay without pods, which is said in a condition of the default subnet's ClusterSubnet.
"""

from collections.abc import Iterator

from podtide.resources.conditions import Condition, ConditionStatus

COVERAGE = "AllNodesPublish"
"""The condition: whether every schedulable Node publishes how many pods it has addresses for."""
_NAMED = 3


class NodeCoverage:
    """Keeps which Nodes publish nothing although pods could be placed on them."""

    def __init__(self) -> None:
        self._schedulable: set[str] = set()
        self._without: set[str] = set()

    def note(self, node: str, *, schedulable: bool, publishes: bool) -> None:
        """Note a Node as it is now."""
        (self._schedulable.add if schedulable else self._schedulable.discard)(node)
        (self._without.add if schedulable and not publishes else self._without.discard)(node)

    def forget(self, node: str) -> None:
        """Forget a Node that was deleted."""
        self._schedulable.discard(node)
        self._without.discard(node)

    def conditions(self, generation: int, now: str) -> Iterator[Condition]:
        """The condition; none before a schedulable Node was seen."""
        if not self._schedulable:
            return
        covered = not self._without
        message = "every schedulable node publishes how many pods it has addresses for"
        if not covered:
            named = sorted(self._without)
            names = ", ".join(named[:_NAMED]) + (" and others" if len(named) > _NAMED else "")
            message = (
                f"pods that request podtide.io/ipv4 are never placed on {names}: let the agent run there, let only some "
                "namespaces request it (placement.pods=labelled), or taint these nodes"
            )
        yield Condition(
            type=COVERAGE,
            status=ConditionStatus.TRUE if covered else ConditionStatus.FALSE,
            last_transition_time=now,
            reason="Covered" if covered else "NodesWithoutAddresses",
            message=message,
            observed_generation=generation,
        )
