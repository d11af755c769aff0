"""The state of the node at one instant, collected from the parts of the agent for metrics, health checks and people."""

from msgspec import Struct

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.leak_collector import LeakCollector
from podtide.agent.port import NodeState
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.readiness import Readiness
from podtide.agent.request.requester import Requester
from podtide.agent.request.subnets import NodeSubnets
from podtide.agent.request.target import TargetCalculator


class NodeStateReader(Struct, frozen=True, kw_only=True, eq=False):
    """Reads the NodeState from the parts of the agent."""

    readiness: Readiness
    follower: ConfigFollower
    subnets: NodeSubnets
    journaled: JournaledPool
    targets: TargetCalculator
    requester: Requester
    leaks: LeakCollector

    def state(self) -> NodeState:
        """The current state of the node."""
        is_known = self.readiness.is_complete
        config = self.requester.config
        networks, demand = self.follower.networks, self.journaled.demand
        return NodeState(
            synced=is_known,
            in_contact=self.readiness.is_in_contact,
            counts=self.journaled.counts(),
            primaries=len(networks),
            requested=config.spec.requested_ip_count if config is not None else None,
            demand=self.journaled.needed if is_known else None,
            waiting_pods=demand.waiting,
            scaler=self.targets.scaler(config) if config is not None and is_known else None,
            subnet=self.subnets.names,
            subnet_cidr=", ".join(network.cidr for network in networks.values()),
            exhausted=self.subnets.are_exhausted,
            starved=self.subnets.are_starved,
            writes=self.requester.writes,
            restatements=self.requester.restatements,
            collected_leaks=self.leaks.collected,
            alarms=self.journaled.alarms,
        )
