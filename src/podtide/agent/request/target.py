"""What the node should ask for now: the policy's decision, for what every one of its network containers is to hold.

`requestedIPCount` counts per network container. Where a family has several, each is asked for its share, and of two
families the one that needs more decides: a pod needs an address of each.
"""

from msgspec import Struct

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.node_config import Network, node_scaler_of
from podtide.agent.request.sizing_policy import Decided, RequestPolicy, Situation
from podtide.agent.request.subnet_view import InForce
from podtide.agent.request.subnets import Subnets
from podtide.core.ranges import IPNetwork
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import share_of
from podtide.core.subnet.statement import Statement
from podtide.core.subnet.statement_refresh import is_answered
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.statement_annotation import is_statable


class Target(Struct, frozen=True, kw_only=True):
    """How many addresses each network container is to hold, and why."""

    request: int
    decided: Decided
    is_urgent: bool
    """Others wait for what this node can spare."""
    statement: Statement | None = None
    """What the request follows from, without a number yet; None where the policy states nothing."""
    said: Statement | None = None
    """What is stated beside the request that is in the object; None where nothing is that belongs to it."""
    is_answered: bool = False
    """Whether what is said goes by the parameters in force."""
    draining: tuple[IPNetwork, ...] = ()
    """CIDRs that are to leave their subnets: what no pod has of them is given back, whatever the request."""


class TargetMaker:
    """Works out targets, from what is known when it is asked."""

    def __init__(
        self, follower: ConfigFollower, journaled: JournaledPool, subnets: Subnets, policy: RequestPolicy
    ) -> None:
        self._follower = follower
        self._journaled = journaled
        self._subnets = subnets
        self._policy = policy

    def scaler(self, config: NodeNetworkConfig) -> Scaler:
        """The parameters in force."""
        return self._in_force(config).scaler

    def target(self, config: NodeNetworkConfig, said: Statement | None) -> Target:
        """What to ask for, now that the object is this and that is `said` in it. There is at least one network container."""
        in_force = self._in_force(config)
        requested = config.spec.requested_ip_count
        networks = self._follower.networks.values()
        families = [[each for each in networks if each.container.family == family] for family in (4, 6)]
        shares = [self._share(family, requested, in_force.scaler) for family in families if family]
        share = max(shares, key=lambda each: each.request)
        statement = self._statement(share, in_force) if self._policy.states_demand else None
        answered = statement is not None and said is not None and is_answered(said, statement)
        return Target(
            request=share.request,
            decided=share.decided,
            is_urgent=self._subnets.are_urgent(answered=answered),
            statement=statement,
            said=said if self._policy.states_demand else None,
            is_answered=answered,
            draining=self._subnets.draining,
        )

    def _in_force(self, config: NodeNetworkConfig) -> InForce:
        return self._subnets.in_force(node_scaler_of(config), self._journaled.needed)

    def _share(self, networks: list[Network], requested: int, scaler: Scaler) -> "_Share":
        number = len(networks)
        counts = [self._journaled.pool.counts(network.container.id) for network in networks]
        situation = Situation(
            demand=self._journaled.needed,
            primaries=number,
            requested=requested * number,
            held=sum(each.held for each in counts),
            assigned=sum(each.assigned for each in counts),
            releasing=sum(each.pending_release for each in counts),
        )
        decided = self._policy.decide(situation, scaler)
        return _Share(share_of(decided.request, number, scaler.max_ips), decided, number)

    def _statement(self, share: "_Share", in_force: InForce) -> Statement | None:
        scaler = in_force.scaler
        statement = Statement(
            demand=self._journaled.needed,
            batch=scaler.batch,
            buffer=scaler.buffer,
            max_ips=scaler.max_ips,
            primaries=share.primaries,
            request=share.request,
            top=in_force.top,
        )
        return statement if is_statable(statement) else None


class _Share(Struct, frozen=True):
    """What each network container of one family is to hold."""

    request: int
    decided: Decided
    primaries: int
