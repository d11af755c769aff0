"""What a node's agent should ask for, computed from the objects that it watches.

The formula is in `core.subnet.scaling`, and the parameters in force in `core.subnet.scaler`. What the agent adds
(`agent.request.subnets`, `agent.request.target`) is repeated here, for objects that were read instead of watched: of
two subnets the smaller request counts, and of two families the larger share.
"""

from collections import Counter

from msgspec import Struct

from podtide.agent.request.node_config import networks_of, node_scaler_of
from podtide.cli.observed.node import ObservedNode
from podtide.cli.why.facts import SubnetFacts, WhyFacts
from podtide.core.exact import exact, text
from podtide.core.subnet.scaler import NodeScaler, Scaler, SubnetScaler, effective_scaler
from podtide.core.subnet.scaling import RequestDecision, decide_request, share_of


class RightRequest(Struct, frozen=True):
    """The request that would be right, and why."""

    count: int
    """For each network container."""
    decision: RequestDecision
    source: str
    """Which object says what is in force."""

    @property
    def parameters(self) -> str:
        """The parameters in force, as text."""
        scaler = self.decision.scaler
        return (
            f"batch {scaler.batch}, buffer {text(scaler.buffer)}, at most {scaler.max_ips} addresses, "
            f"P = {self.decision.primaries} (by {self.source})"
        )


def right_request(facts: WhyFacts) -> RightRequest | None:
    """The request that the agent should make; None while the node has no network container."""
    node = facts.observed
    if node.config is None or not facts.subnets:
        return None
    own = node_scaler_of(node.config)
    in_force = [(_scaler(subnet, own), _source(subnet, node)) for subnet in facts.subnets]
    scaler, source = min(
        in_force, key=lambda pair: (decide_request(node.demand, pair[0]).request, pair[0].batch)
    )
    families = Counter(network.container.family for network in networks_of(node.config))
    shares = [_share(node, scaler, number, source) for number in families.values()]
    return max(shares, key=lambda share: share.count)


def _share(node: ObservedNode, scaler: Scaler, number: int, source: str) -> RightRequest:
    decision = decide_request(node.demand, scaler, primaries=number)
    return RightRequest(share_of(decision.request, number, scaler.max_ips), decision, source)


def _scaler(facts: SubnetFacts, own: NodeScaler) -> Scaler:
    if facts.subnet is None:
        return effective_scaler(own, None, exhausted=facts.is_exhausted)
    stated = facts.subnet.status.scaler
    subnet = SubnetScaler(stated.batch, exact(stated.buffer, "buffer")) if stated else None
    return effective_scaler(own, subnet, exhausted=facts.is_exhausted)


def _source(facts: SubnetFacts, node: ObservedNode) -> str:
    if facts.subnet is not None and facts.subnet.is_judged:
        return f"ClusterSubnet {facts.name}"
    if facts.is_exhausted:
        return f"ClusterSubnetState {facts.name}, which is exhausted"
    return f"NodeNetworkConfig {node.name}"
