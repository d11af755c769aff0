"""The target: how many addresses the node should request now, by the decision of the policy.

`requestedIPCount` counts per network container. Where a family has several containers, each gets its share, and of two
families the one that needs more decides: a pod needs an address of each.
"""

from msgspec import Struct

from podtide.agent.request.node_config import NodeNetwork, node_scaler_of
from podtide.agent.request.node_inputs import NodeInputs
from podtide.agent.request.sizing_policy import Decided, PoolSituation, RequestPolicy
from podtide.agent.request.subnet_view import ParametersInForce
from podtide.core.ranges import IPNetwork
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import share_of
from podtide.core.subnet.statement import Statement
from podtide.core.subnet.statement_refresh import is_answered
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.statement_annotation import is_statable


class RequestTarget(Struct, frozen=True, kw_only=True):
    """How many addresses each network container should hold, and why."""

    request: int
    decided: Decided
    is_urgent: bool
    """Whether surplus addresses are to be released without delay."""
    statement: Statement | None = None
    """The statement that belongs to the request, without a number yet; None where the policy makes none."""
    said: Statement | None = None
    """The statement that belongs to the request in the object; None where there is none."""
    is_answered: bool = False
    """Whether `said` has the parameters in force."""
    draining: tuple[IPNetwork, ...] = ()
    """CIDRs that are being removed from their subnets: their addresses without a pod are released, whatever the request."""


class TargetCalculator:
    """Computes targets from the current state."""

    def __init__(self, inputs: NodeInputs, policy: RequestPolicy) -> None:
        self._follower = inputs.follower
        self._journaled = inputs.journaled
        self._subnets = inputs.subnets
        self._policy = policy

    def scaler(self, config: NodeNetworkConfig) -> Scaler:
        """The parameters in force."""
        return self._in_force(config).scaler

    def target(self, config: NodeNetworkConfig, said: Statement | None) -> RequestTarget:
        """The target for this object with the statement `said`. There is at least one network container."""
        in_force = self._in_force(config)
        requested = config.spec.requested_ip_count
        networks = self._follower.networks.values()
        families = [[each for each in networks if each.container.family == family] for family in (4, 6)]
        shares = [self._share(family, requested, in_force.scaler) for family in families if family]
        share = max(shares, key=lambda each: each.request)
        statement = self._statement(share, in_force) if self._policy.states_demand else None
        answered = statement is not None and said is not None and is_answered(said, statement)
        return RequestTarget(
            request=share.request,
            decided=share.decided,
            is_urgent=self._subnets.are_urgent(answered=answered),
            statement=statement,
            said=said if self._policy.states_demand else None,
            is_answered=answered,
            draining=self._subnets.draining,
        )

    def _in_force(self, config: NodeNetworkConfig) -> ParametersInForce:
        return self._subnets.in_force(node_scaler_of(config), self._journaled.needed)

    def _share(self, networks: list[NodeNetwork], requested: int, scaler: Scaler) -> "_Share":
        number = len(networks)
        counts = [self._journaled.pool.counts(network.container.id) for network in networks]
        situation = PoolSituation(
            demand=self._journaled.needed,
            primaries=number,
            requested=requested * number,
            held=sum(each.held for each in counts),
            assigned=sum(each.assigned for each in counts),
            releasing=sum(each.pending_release for each in counts),
        )
        decided = self._policy.decide(situation, scaler)
        return _Share(share_of(decided.request, number, scaler.max_ips), decided, number)

    def _statement(self, share: "_Share", in_force: ParametersInForce) -> Statement | None:
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
    """How many addresses each network container of one family should hold."""

    request: int
    decided: Decided
    primaries: int
