"""The first line of `podtide why`: what is so, and what happens next or what a person should do. No I/O.

The obstacles are looked for in the order in which an address travels: the pod, its node, the node's pool, its request,
the controller and the allocator that answer it, the subnet. The first one found is reported. Where no pod waits for an
address, an obstacle that the next pod would meet is reported: "nothing has to happen" is said only where nothing has
to.
"""

from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.agent.request.node_config import refusal_of
from podtide.cli.observed.node import ObservedNode
from podtide.cli.output.formats import counted
from podtide.cli.output.suggested_commands import SuggestedCommands
from podtide.cli.why.facts import SubnetFacts, WhyFacts
from podtide.cli.why.right_request import RightRequest
from podtide.cluster.served.ages import age
from podtide.controller import wait_reasons
from podtide.controller.grant_condition import GRANTED, GrantReason, condition_of
from podtide.resources.address_requests import addresses_requested
from podtide.resources.conditions import ConditionStatus
from podtide.resources.event import EventType
from podtide.resources.metadata_keys import IPV4_RESOURCE, IPV6_RESOURCE
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds

_COMPONENT_LABEL = "app.kubernetes.io/component"
_AGENT_PODS = "podtide-agent-"
"""What names of agents' pods begin with: the label app.kubernetes.io/name is for an installation to choose."""
_PATIENCE_SECONDS = 10.0
"""Agent and controller take less than this for anything, unless something is wrong with them."""
_PLUGIN_SECONDS = 30.0
"""The same for kubelet and plugin: an ADD may wait 10 s, and a kubelet's back-off begins at a few seconds."""
_MOST_NAMED = 3


def what_next(facts: WhyFacts, right: RightRequest | None, commands: SuggestedCommands) -> str:
    """What happens next or what a person should do, in one sentence."""
    if facts.pod is None and not facts.observed.waiting:
        return _of_what_is_to_come(facts, commands)
    return (
        _of_the_pod(facts, commands)
        or _of_the_node(facts)
        or _of_the_pool(facts)
        or _beside_what_is_free(facts, _of_the_maximum(facts, right))
        or _of_the_request(facts, right)
        or _beside_what_is_free(facts, _of_the_grant(facts, commands))
        or f"node {facts.observed.name} has an address for each of its pods; if this lasts, {agent_advice(facts.observed)}"
    )


def _beside_what_is_free(facts: WhyFacts, words: str) -> str:
    """The obstacle, for those waiting pods only for which the node has no address.

    Which pods are served first is not known.
    """
    node = facts.observed
    if not words or not node.free:
        return words
    waiting = len(node.waiting)
    return (
        f"node {node.name} has {node.free} free, which the next calls of the plugin take, for the {waiting} that wait; "
        f"for the other {waiting - node.free}: {words}"
    )


def _of_the_pod(facts: WhyFacts, commands: SuggestedCommands) -> str:
    if facts.pod is None:
        return ""
    if shown := shown_addresses(facts.pod):
        granted = {entry.ip for each in facts.observed.containers for entry in each.ip_assignments}
        if facts.observed.containers and not granted.issuperset(shown):
            return f"a pod should not have an address that its node was not granted: run `{commands.check()}`"
        return "nothing has to happen"
    if not pod_on_node(facts.pod).needs_address:
        return "nothing has to happen"
    if not facts.pod.spec.node_name:
        return _of_placement(facts.pod)
    return ""


def _of_placement(pod: Pod) -> str:
    requested = [each for each in (IPV4_RESOURCE, IPV6_RESOURCE) if addresses_requested(pod, each)]
    return wait_reasons.no_node(requested)


def _of_the_node(facts: WhyFacts) -> str:
    name, config = facts.observed.name, facts.observed.config
    if facts.node is None:
        return wait_reasons.node_gone(name)
    if config is None and facts.leader.obstacle:
        return f"node {name} has no NodeNetworkConfig, and {facts.leader.obstacle}"
    if refusal := refusal_of(config, name):
        return refusal
    assert config is not None  # or it would have been refused
    if config.node_uid != facts.node.metadata.uid:
        return (
            f"NodeNetworkConfig {name} belongs to an earlier node of that name: "
            f"{facts.leader.obstacle or 'the request controller replaces it; see that it runs'}"
        )
    return ""


def _of_the_pool(facts: WhyFacts) -> str:
    """The obstacle of a node that has addresses for all pods that wait: it is between kubelet, plugin and agent."""
    node = facts.observed
    if not node.containers or node.free < len(node.waiting):
        return ""
    waited = _waited(facts)
    if waited < _PLUGIN_SECONDS:
        return wait_reasons.plugin_takes_one(node.name, node.free, len(node.waiting))
    words = wait_reasons.addresses_free(node.name, node.free, len(node.waiting))
    said = [
        event
        for event in facts.events
        if event.type == EventType.WARNING and event.involved_object.kind == Pod.api.kind
    ]
    if said:
        return f"{words}, but its sandbox failed: {said[-1].message}"
    return f"{words}, but no sandbox was made for {age(waited)}: see the kubelet's log there, and {agent_advice(node)}"


def _of_the_maximum(facts: WhyFacts, right: RightRequest | None) -> str:
    if right is None or not right.decision.short:
        return ""
    return wait_reasons.node_at_its_maximum(
        facts.observed.name, right.decision.scaler.max_ips, facts.observed.demand
    )


def _of_the_request(facts: WhyFacts, right: RightRequest | None) -> str:
    node = facts.observed
    if not node.containers or right is None or node.requested >= min(right.count, node.demand):
        return ""
    if (waited := _waited(facts)) < _PATIENCE_SECONDS:
        return wait_reasons.about_to_be_asked_for(node.name, right.count)
    return (
        f"the agent on node {node.name} has asked for {node.requested} and not for {right.count} since {age(waited)}, "
        f"so it does not run or does not reach the API server: {agent_advice(node)}"
    )


def _of_the_grant(facts: WhyFacts, commands: SuggestedCommands) -> str:
    """The obstacle between the request and its addresses: the controller, the allocator, a refusal, the subnet."""
    config = facts.observed.config
    assert config is not None  # or the node would have been the obstacle
    granted = condition_of(config, GRANTED)
    is_answered = granted is not None and granted.observed_generation >= config.metadata.generation
    if granted is not None and is_answered and granted.status == ConditionStatus.TRUE:
        return ""
    if words := facts.leader.obstacle or _of_the_allocator(facts):
        return words
    if granted is None or not is_answered:
        return wait_reasons.about_to_be_granted()
    if granted.reason not in {GrantReason.SHORT, GrantReason.FULL}:
        return f"the request is refused: {granted.message}"
    for subnet in facts.subnets:
        if words := subnet_obstacle(subnet, facts.observed, commands):
            return words
    return f"the request controller says: {granted.message}"


def _of_the_allocator(facts: WhyFacts) -> str:
    """That the request controller cannot reach the allocator.

    A person's own wrong flags do not stop a grant, and are not reported here.
    """
    config = facts.observed.config
    granted = condition_of(config, GRANTED) if config else None
    error, since = "", ""
    if granted is not None and granted.reason == GrantReason.UNAVAILABLE:
        error = granted.message
    for subnet in facts.subnets:
        if subnet.at_allocator is not None:
            return ""  # it has just answered
        if subnet.out_of_reach is not None:
            error, since = subnet.out_of_reach.message, subnet.out_of_reach.last_transition_time
    if not error:
        return ""
    is_so = f"has not answered for {age(facts.now - to_wall_seconds(since))}" if since else "does not answer"
    return wait_reasons.allocator_away(error, is_so)


def _of_what_is_to_come(facts: WhyFacts, commands: SuggestedCommands) -> str:
    """The obstacle that the next pod will meet, where no pod waits now."""
    trouble = (
        _of_the_node(facts)
        or facts.leader.obstacle
        or _of_the_allocator(facts)
        or _of_the_grant(facts, commands)
        or next(
            (
                words
                for subnet in facts.subnets
                if subnet.free == 0
                and (words := subnet_obstacle(subnet, facts.observed, commands, ahead=True))
            ),
            "",
        )
    )
    if not trouble:
        return "nothing has to happen"
    spare = facts.observed.free
    begins = f"it has {spare} to spare, then" if spare else "the next pod here waits:"
    return f"{begins} {trouble}"


def _waited(facts: WhyFacts) -> float:
    """How long this pod, or else the one that waits longest, has waited."""
    waiting = (facts.pod,) if facts.pod is not None else facts.observed.waiting
    made = [pod.metadata.creation_timestamp or "" for pod in waiting]
    try:
        return facts.now - min(to_wall_seconds(each) for each in made)
    except InvalidTimestamp:
        return 0.0


def subnet_obstacle(
    subnet: SubnetFacts, node: ObservedNode, commands: SuggestedCommands, *, ahead: bool = False
) -> str:
    """Why the node waits for addresses of the subnet; "" if it does not. With `ahead`: why it would."""
    owed = subnet.owed()
    if (node.name not in owed and not ahead) or subnet.free is None:
        return ""
    debts = f"{counted(len(owed), 'node is', 'nodes are')} owed {counted(sum(owed.values()), 'address', 'addresses')}"
    if subnet.free:
        return (
            f"{counted(subnet.free, 'address is', 'addresses are')} free in subnet {subnet.name} and {debts}: "
            "the request controller grants them at its next reconcile, within seconds"
        )
    parts = [words for words in (debts if owed else "", _idle(subnet), _elsewhere(subnet)) if words]
    grow = commands.grow(subnet.network, subnet.name)
    return wait_reasons.subnet_full(subnet.name, subnet.capacity, parts, grow)


def _idle(subnet: SubnetFacts) -> str:
    idle = subnet.idle()
    if not idle:
        return "none is idle"
    named = [f"{name} ({count})" for name, count in idle.items()][:_MOST_NAMED]
    if len(idle) > _MOST_NAMED:
        named.append(f"{len(idle) - _MOST_NAMED} more")
    words = f"{counted(sum(idle.values()), 'is', 'are')} idle on {', '.join(named)}"
    silent = sorted(set(subnet.silent()) & set(idle))
    if silent:
        return f"{words} (the agent of {silent[0]} has not answered the batch in force: see that it runs)"
    return f"{words} and given back as the batch goes down"


def _elsewhere(subnet: SubnetFacts) -> str:
    """What no node of this cluster shows. Only the allocator can tell other clusters' addresses from quarantine."""
    if subnet.at_allocator is not None and subnet.at_allocator.quarantined:
        return f"{subnet.at_allocator.quarantined} in quarantine after their nodes left"
    return f"{subnet.elsewhere} held by other clusters or in quarantine" if subnet.elsewhere else ""


def agent_advice(node: ObservedNode) -> str:
    """Where to look for the node's agent: at its pod, if there is one."""
    agent = next((pod for pod in node.pods if _is_agent(pod)), None)
    if agent is None:
        return f"see that `podtide agent` runs on node {node.name} and reaches the API server"
    place = f"-n {agent.metadata.namespace} {agent.metadata.name}"
    if agent.status.phase != PodPhase.RUNNING:
        phase = agent.status.phase or "of unknown phase"
        return f"its pod {agent.key} is {phase}: `kubectl describe pod {place}` says why"
    return f"`kubectl logs {place}` says what it lacks"


def _is_agent(pod: Pod) -> bool:
    is_of_program = pod.metadata.labels.get(_COMPONENT_LABEL) == "agent"
    return is_of_program and pod.metadata.name.startswith(_AGENT_PODS)
