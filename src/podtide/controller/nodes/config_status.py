"""The status of a NodeNetworkConfig after the allocator answered. No I/O.

A refusal takes nothing away: the container that the status showed before stays in it, because the node's pods have
those addresses; only status and conditions change. But if the allocator has nothing of that container any more, the
status is from before a restore of etcd (the Node had been deleted since), and its addresses may belong to others: then
no container is shown.

A node of two families starts with both: while one of its subnets has not given it a container, it is shown none, or its
first pods would have an address of one family for good.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from podtide.allocator.errors import (
    AllocatorUnavailable,
    AnotherCluster,
    NoSuchSubnet,
    NotAllowed,
    StaleWish,
    StoreRecovering,
    SubnetFull,
)
from podtide.controller.grant_condition import GRANTED, GrantReason, condition_of
from podtide.controller.nodes.container_status import show_container
from podtide.controller.nodes.grants import GrantAnswer, GrantRefusal, NodeRequest
from podtide.core.errors import RetryError
from podtide.core.subnet.scaler import SubnetScaler, release_percent, request_percent
from podtide.resources.conditions import Condition, ConditionStatus, with_condition
from podtide.resources.config_confirmation import confirmation, doubt_in
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    ContainerStatus,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
    ScalerStatus,
)

PLACED = "Placed"
"""The condition: whether its containers are in the subnets that labels and options name. Set once they were not."""
FORMER = "FormerAddresses"
"""The condition: whether addresses of former Nodes of its name are in quarantine. Set once some were."""


class _GrantVerdict(Struct, frozen=True):
    """What an answer means in the fields of a NodeNetworkConfig."""

    reason: GrantReason
    config: ConfigStatus
    container: ContainerStatus


_COMPLETE = _GrantVerdict(GrantReason.COMPLETE, ConfigStatus.UPDATED, ContainerStatus.SUCCESS)
_SHORT = _GrantVerdict(GrantReason.SHORT, ConfigStatus.UPDATING, ContainerStatus.SUBNET_FULL)
_REFUSED = _GrantVerdict(GrantReason.REFUSED, ConfigStatus.ERROR, ContainerStatus.FAILED)
_REFUSALS: dict[type[GrantRefusal], _GrantVerdict] = {
    SubnetFull: _GrantVerdict(GrantReason.FULL, ConfigStatus.UPDATING, ContainerStatus.SUBNET_FULL),
    AllocatorUnavailable: _GrantVerdict(
        GrantReason.UNAVAILABLE, ConfigStatus.UPDATING, ContainerStatus.INTERNAL_SERVER_ERROR
    ),
    StoreRecovering: _GrantVerdict(
        GrantReason.RECOVERING, ConfigStatus.UPDATING, ContainerStatus.INTERNAL_SERVER_ERROR
    ),
    AnotherCluster: _GrantVerdict(
        GrantReason.ANOTHER_CLUSTER, ConfigStatus.ERROR, ContainerStatus.UNAUTHORIZED
    ),
    StaleWish: _GrantVerdict(GrantReason.STALE, ConfigStatus.ERROR, ContainerStatus.FAILED),
    NotAllowed: _GrantVerdict(GrantReason.NOT_ALLOWED, ConfigStatus.ERROR, ContainerStatus.UNAUTHORIZED),
    NoSuchSubnet: _GrantVerdict(GrantReason.NO_SUCH_SUBNET, ConfigStatus.ERROR, ContainerStatus.FAILED),
}
_BY_SEVERITY = list(GrantReason)
_PASSING = frozenset({GrantReason.UNAVAILABLE, GrantReason.RECOVERING})
"""Outages of the allocator, during which the same wish fails again and again."""


def wire_scaler(in_force: SubnetScaler, max_ips: int) -> ScalerStatus:
    """The scaler in force in a subnet, as the fields of a NodeNetworkConfig."""
    request = request_percent(in_force.buffer)
    return ScalerStatus(
        batch_size=in_force.batch,
        request_threshold_percent=request,
        release_threshold_percent=release_percent(request),
        max_ip_count=max_ips,
    )


def scaler_shown(config: NodeNetworkConfig) -> ScalerStatus | None:
    """The scaler that the status shows already; None if none was written.

    InvalidScaler if its release threshold is less than its request threshold + 100: an agent that follows it would give
    back a batch and ask for it again at once, so it is not told the same once more.
    """
    shown = config.status.scaler
    if not shown.is_written:
        return None
    release = release_percent(shown.request_threshold_percent, shown.release_threshold_percent or None)
    return structs.replace(shown, release_threshold_percent=release)


def status_after(
    request: NodeRequest, answers: Sequence[GrantAnswer], scaler: ScalerStatus, now: str, *, waiting: str = ""
) -> NodeNetworkConfigStatus:
    """The status once the allocator has answered for each of the node's places.

    `waiting` says which addresses of former Nodes of the node's name are in quarantine, and until when.
    """
    config = request.config
    before = {container.id: container for container in config.status.network_containers}
    containers = [
        container
        for answer in answers
        if (container := _shown(answer, before.get(answer.place.container), request.node)) is not None
    ]
    is_incomplete = not before and any(isinstance(answer.refusal, RetryError) for answer in answers)
    if is_incomplete or any(answer.holds_nothing and answer.place.container in before for answer in answers):
        containers = []
    verdicts = [_verdict(answer) for answer in answers]
    worst = max(verdicts, key=lambda verdict: _BY_SEVERITY.index(verdict.reason))
    granted = Condition(
        type=GRANTED,
        status=ConditionStatus.TRUE if worst.reason is GrantReason.COMPLETE else ConditionStatus.FALSE,
        last_transition_time=now,
        reason=worst.reason.value,
        message="; ".join(_words(answer, config) for answer in answers),
        observed_generation=config.metadata.generation,
    )
    shown = condition_of(config, GRANTED)
    if shown is not None and shown.reason == granted.reason and shown.reason in _PASSING:
        # Error texts differ between attempts; a write for each would be an event that causes the next attempt.
        granted = structs.replace(granted, message=shown.message)
    conditions = with_condition(config.status.conditions, granted)
    for said in (
        _placed(config, answers, now),
        _former(config, waiting, now),
        _confirmed(config, answers, now),
    ):
        conditions = with_condition(conditions, said) if said else conditions
    return NodeNetworkConfigStatus(
        assigned_ip_count=sum(len(container.ip_assignments) for container in containers),
        scaler=scaler,
        status=worst.config,
        network_containers=containers,
        conditions=conditions,
    )


def _verdict(answer: GrantAnswer) -> _GrantVerdict:
    if answer.refusal is not None:
        return _REFUSALS.get(type(answer.refusal), _REFUSED)
    return _SHORT if answer.owed else _COMPLETE


def _words(answer: GrantAnswer, config: NodeNetworkConfig) -> str:
    if answer.refusal is not None:
        mend = f" (named by {answer.place.stated_by})" if isinstance(answer.refusal, NoSuchSubnet) else ""
        return f"{answer.refusal}{mend}"
    container = answer.container
    assert container is not None
    held, asked = len(container.addresses), config.spec.requested_ip_count
    words = f"subnet {container.subnet}: {held} addresses held, {asked} asked for"
    if asked > container.wanted:
        words += f", limited to {container.wanted} per node"
    if container.owed:
        words += f", {container.owed} owed: granted as soon as other nodes give addresses back"
    return words


def _placed(config: NodeNetworkConfig, answers: Sequence[GrantAnswer], now: str) -> Condition | None:
    elsewhere = [answer.place for answer in answers if answer.place.is_elsewhere]
    if not elsewhere and condition_of(config, PLACED) is None:
        return None
    message = "; ".join(
        f"{place.stated_by} names {place.stated or 'no subnet'}, but the node's addresses are in {place.subnet} and stay "
        "there until the Node is deleted: name that subnet again, or delete the Node and let it join again"
        for place in elsewhere
    )
    return Condition(
        type=PLACED,
        status=ConditionStatus.FALSE if elsewhere else ConditionStatus.TRUE,
        last_transition_time=now,
        reason="InAnotherSubnet" if elsewhere else "AsStated",
        message=message or "the node's addresses are in the subnets that labels and options name",
        observed_generation=config.metadata.generation,
    )


def _former(config: NodeNetworkConfig, waiting: str, now: str) -> Condition | None:
    if not waiting and condition_of(config, FORMER) is None:
        return None
    return Condition(
        type=FORMER,
        status=ConditionStatus.FALSE if waiting else ConditionStatus.TRUE,
        last_transition_time=now,
        reason="InQuarantine" if waiting else "Settled",
        message=waiting or "nothing of former Nodes of this name is in quarantine",
        observed_generation=config.metadata.generation,
    )


def _confirmed(config: NodeNetworkConfig, answers: Sequence[GrantAnswer], now: str) -> Condition | None:
    """The condition that answers an agent's doubt, once the allocator has told what it has of every container."""
    mark = doubt_in(config.metadata.annotations)
    if not mark or any(answer.refusal is not None and not answer.holds_nothing for answer in answers):
        return None
    return confirmation(mark, now, config.metadata.generation)


def _shown(answer: GrantAnswer, before: NetworkContainer | None, node: Node) -> NetworkContainer | None:
    """The container as the status shows it; None for one that was never granted."""
    shown = before if answer.container is None else show_container(answer.container, node)
    return None if shown is None else structs.replace(shown, status=_verdict(answer).container)
