"""The node at one instant, for metrics, health and people: read from the parts, kept nowhere."""

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.leak_collector import LeakCollector
from podtide.agent.port import NodeState
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.readiness import Readiness
from podtide.agent.request.requester import Requester
from podtide.agent.request.subnets import Subnets
from podtide.agent.request.target import TargetMaker


class NodeStateReader:
    """Knows where to look."""

    def __init__(  # noqa: PLR0913 - every part has something to tell
        self,
        node: str,
        *,
        readiness: Readiness,
        follower: ConfigFollower,
        subnets: Subnets,
        journaled: JournaledPool,
        targets: TargetMaker,
        requester: Requester,
        leaks: LeakCollector,
    ) -> None:
        self._node = node
        self._readiness = readiness
        self._follower = follower
        self._subnets = subnets
        self._journaled = journaled
        self._targets = targets
        self._requester = requester
        self._leaks = leaks

    def state(self) -> NodeState:
        """The node as it is now."""
        is_known = self._readiness.is_complete
        config, target = self._requester.config, self._requester.target
        networks, demand = self._follower.networks, self._journaled.demand
        return NodeState(
            node=self._node,
            synced=is_known,
            in_contact=self._readiness.is_in_contact,
            counts=self._journaled.counts(),
            primaries=len(networks),
            requested=config.spec.requested_ip_count if config is not None else None,
            demand=self._journaled.needed if is_known else None,
            waiting_pods=demand.waiting,
            scaler=self._targets.scaler(config) if config is not None and is_known else None,
            subnet=self._subnets.names,
            subnet_cidr=", ".join(network.cidr for network in networks.values()),
            exhausted=self._subnets.are_exhausted,
            starved=self._subnets.are_starved,
            writes=self._requester.writes,
            restatements=self._requester.restatements,
            collected_leaks=self._leaks.collected,
            alarms=self._journaled.alarms,
            last_decision=str(target.decided) if target is not None else "",
        )
