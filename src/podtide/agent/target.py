"""What the node should ask for now: the policy's decision, for what every one of its network containers is to hold.

`requestedIPCount` counts per network container. Where a family has several, each is asked for its share, and of two
families the one that needs more decides: a pod needs an address of each.
"""

from msgspec import Struct

from podtide.agent.config_follower import ConfigFollower
from podtide.agent.holdings import Holdings
from podtide.agent.node_config import Network, node_scaler_of
from podtide.agent.policy import Decided, RequestPolicy, Situation
from podtide.agent.subnets import Subnets
from podtide.core.scaler import Scaler
from podtide.resources.node_network_config import NodeNetworkConfig


class Target(Struct, frozen=True):
    """How many addresses each network container is to hold, and why."""

    request: int
    decided: Decided
    is_urgent: bool
    """Others wait for what this node can spare."""


class TargetMaker:
    """Works out targets, from what is known when it is asked."""

    def __init__(
        self, follower: ConfigFollower, holdings: Holdings, subnets: Subnets, policy: RequestPolicy
    ) -> None:
        self._follower = follower
        self._holdings = holdings
        self._subnets = subnets
        self._policy = policy

    def scaler(self, config: NodeNetworkConfig) -> Scaler:
        """The parameters in force."""
        return self._subnets.scaler(node_scaler_of(config), self._holdings.demand.total)

    def target(self, config: NodeNetworkConfig) -> Target:
        """What to ask for, now that the object is this. There is at least one network container."""
        scaler = self.scaler(config)
        requested = config.spec.requested_ip_count
        networks = self._follower.networks.values()
        families = [[each for each in networks if each.container.family == family] for family in (4, 6)]
        targets = [self._share(family, requested, scaler) for family in families if family]
        return max(targets, key=lambda target: target.request)

    def _share(self, networks: list[Network], requested: int, scaler: Scaler) -> Target:
        number = len(networks)
        counts = [self._holdings.pool.counts(network.container.id) for network in networks]
        situation = Situation(
            demand=self._holdings.demand.total,
            primaries=number,
            requested=requested * number,
            held=sum(each.held for each in counts),
            assigned=sum(each.assigned for each in counts),
            releasing=sum(each.pending_release for each in counts),
        )
        decided = self._policy.decide(situation, scaler)
        share = -(-decided.request // number)
        return Target(min(share, scaler.max_ips // number), decided, self._subnets.are_exhausted)
