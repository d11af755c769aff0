"""The state of the node at one instant, collected from the parts of the agent for metrics, health checks and people."""

from msgspec import Struct

from podtide.agent.pool.leak_collector import LeakCollector
from podtide.agent.port import NodeState
from podtide.agent.request.node_inputs import NodeInputs
from podtide.agent.request.requester import Requester
from podtide.agent.request.target import TargetCalculator


class NodeStateReader(Struct, frozen=True, kw_only=True, eq=False):
    """Reads the NodeState from the parts of the agent."""

    inputs: NodeInputs
    targets: TargetCalculator
    requester: Requester
    leaks: LeakCollector

    def state(self) -> NodeState:
        """The current state of the node."""
        inputs = self.inputs
        is_known = inputs.readiness.is_complete
        config = self.requester.config
        networks, demand = inputs.follower.networks, inputs.journaled.demand
        return NodeState(
            synced=is_known,
            in_contact=inputs.readiness.is_in_contact,
            counts=inputs.journaled.counts(),
            primaries=len(networks),
            requested=config.spec.requested_ip_count if config is not None else None,
            demand=inputs.journaled.needed if is_known else None,
            waiting_pods=demand.waiting,
            scaler=self.targets.scaler(config) if config is not None and is_known else None,
            subnet=inputs.subnets.names,
            subnet_cidr=", ".join(network.cidr for network in networks.values()),
            exhausted=inputs.subnets.are_exhausted,
            starved=inputs.subnets.are_starved,
            writes=self.requester.writes,
            restatements=self.requester.restatements,
            collected_leaks=self.leaks.collected,
            alarms=inputs.journaled.alarms,
        )
