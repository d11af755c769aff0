"""The last line of `podtide why`: what will happen next, or what a person should do. Decides only.

The obstacles are looked for in the order in which an address travels: the pod, its node, the node's request, its
grant, the subnet, and back to the node. The first that is found is the one to speak of.
"""

from podtide.agent.node_config import node_uid_of, refusal_of
from podtide.agent.pods import pod_on_node, shown_addresses
from podtide.cli.observed_node import ObservedNode
from podtide.cli.output import counted
from podtide.cli.why_facts import Facts, SubnetFacts
from podtide.cli.why_parameters import RightRequest
from podtide.controller.node_status import GRANTED, condition_of
from podtide.resources.conditions import ConditionStatus


def what_next(facts: Facts, right: RightRequest | None) -> str:
    """One sentence."""
    return (
        _of_the_pod(facts)
        or _of_the_node(facts)
        or _of_the_request(facts.observed, right)
        or _of_the_grant(facts)
        or _of_the_pool(facts.observed, right)
    )


def _of_the_pod(facts: Facts) -> str:
    if facts.pod is None:
        return (
            "" if facts.observed.waiting else "nothing has to happen: every pod that needs an address has one"
        )
    if shown := shown_addresses(facts.pod):
        granted = {entry.ip for each in facts.observed.containers for entry in each.ip_assignments}
        if facts.observed.containers and not granted.issuperset(shown):
            return "an address that the node was not given should not be on a pod: run `podtide check`"
        return "nothing has to happen: the pod has its address"
    if not pod_on_node(facts.pod).needs_address:
        return "nothing has to happen: the pod needs no address"
    if not facts.pod.spec.node_name:
        return "the scheduler has to find it a node; nothing asks for its address before that"
    return ""


def _of_the_node(facts: Facts) -> str:
    name, config = facts.observed.name, facts.observed.config
    if facts.node is None:
        return (
            f"node {name} is gone: Kubernetes removes its pods, and whatever made them makes others elsewhere"
        )
    if refusal := refusal_of(config, name):
        return refusal
    assert config is not None  # or it would have been refused
    if node_uid_of(config) != facts.node.metadata.uid:
        return (
            f"NodeNetworkConfig {name} belongs to an earlier node of that name: "
            "the request controller replaces it; see that it runs"
        )
    return ""


def _of_the_request(node: ObservedNode, right: RightRequest | None) -> str:
    if not node.containers:
        return ""
    if right is not None and node.requested < min(right.count, node.demand):
        return (
            f"the agent on node {node.name} has to ask for {right.count}, which takes it less than a second; "
            "if this lasts, see that it runs there"
        )
    return ""


def _of_the_grant(facts: Facts) -> str:
    node, config = facts.observed, facts.observed.config
    assert config is not None  # or the node would have been the obstacle
    if node.containers and node.held - len(node.named) >= node.demand * len(node.containers):
        return ""
    granted = condition_of(config, GRANTED)
    if granted is None or granted.observed_generation < config.metadata.generation:
        return "the request controller has to answer the request; if this lasts, see that it runs and leads"
    if granted.status == ConditionStatus.TRUE and node.containers:
        return ""
    for subnet in facts.subnets:
        if words := _of_the_subnet(subnet, node):
            return words
    return f"the request controller says: {granted.message}"


def _of_the_subnet(subnet: SubnetFacts, node: ObservedNode) -> str:
    owed = subnet.owed()
    if node.name not in owed or subnet.free is None:
        return ""
    total = sum(owed.values())
    debts = f"{counted(len(owed), 'node is', 'nodes are')} owed {counted(total, 'address', 'addresses')}"
    if subnet.free:
        return (
            f"{counted(subnet.free, 'address is', 'addresses are')} free in subnet {subnet.name} and {debts}: "
            "the request controller grants them now"
        )
    networks = (each.vnet_id for each in node.containers if each.subnet_name == subnet.name)
    return (
        f"nothing is free in subnet {subnet.name}: {debts}; grow it with "
        f"`podtide subnet grow {next(networks) or 'NETWORK'} {subnet.name} CIDR`, or remove pods"
    )


def _of_the_pool(node: ObservedNode, right: RightRequest | None) -> str:
    if right is not None and right.decision.short:
        return (
            f"node {node.name} has its maximum of {right.decision.scaler.max_ips} addresses and {node.demand} pods: "
            "raise max_ips, or move pods to other nodes"
        )
    return (
        f"node {node.name} has addresses for all of its pods: the next call of the plugin takes one; "
        "if this lasts, the kubelet's events on the pod and the agent's log say why"
    )
