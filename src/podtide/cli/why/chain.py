"""The chain of decisions behind a pod's address, or behind its absence. No I/O.

Each link follows from the one before it: the pod, whether it needs an address, whether it has one; then its node: the
demand, the parameters in force, the request that follows from both, what is asked, what was granted; then the subnet.
The numbers come from the functions that the programs themselves decide with, so the chain cannot contradict them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.cli.observed.node import ObservedNode
from podtide.cli.output.formats import counted
from podtide.cli.output.suggested_commands import SuggestedCommands
from podtide.cli.why.facts import SubnetFacts, WhyFacts
from podtide.cli.why.next_step import what_next
from podtide.cli.why.right_request import RightRequest, right_request
from podtide.cluster.served.ages import age
from podtide.core.subnet.count_text import count_text
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.event import Event
from podtide.resources.node_network_config import NetworkContainer, NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds

_LATEST_EVENTS = 8
_SUBNET_KINDS = frozenset({ClusterSubnet.api.kind, ClusterSubnetState.api.kind})


class ChainLink(Struct, frozen=True):
    """One step of the chain: its topic, a sentence, and details."""

    topic: str
    words: str
    details: tuple[str, ...] = ()
    is_verbose: bool = False
    """Whether it is shown with --verbose only: terms and formulas, to check a decision."""


class NodeNumbers(Struct, frozen=True, kw_only=True):
    """The node's numbers, for programs."""

    node: str
    demand: int
    waiting: int
    requested: int
    held: int
    owed: int
    should_request: int | None = None
    """None if nothing says what is in force."""


class DecisionChain(Struct, frozen=True, kw_only=True):
    """The whole answer."""

    subject: str
    verdict: str
    addresses: tuple[str, ...]
    links: tuple[ChainLink, ...]
    numbers: NodeNumbers | None
    """None for a pod without a node."""
    next: str
    """What happens next, or what a person should do."""
    not_asked: str = ""
    """Why the allocator could not be asked, and which flag to correct; "" if it answered, or was not to be asked."""

    @property
    def headline(self) -> str:
        """What is so and what to do, in one line."""
        words = f"{self.verdict}: {self.next}"
        return f"{words}; {self.not_asked}" if self.not_asked else words


def build_chain(
    facts: WhyFacts, commands: SuggestedCommands | None = None, not_asked: str = ""
) -> DecisionChain:
    """All links of the chain. `commands` are those to print for people to copy."""
    addresses = shown_addresses(facts.pod) if facts.pod else ()
    node, right = facts.observed, right_request(facts)
    links = [*_pod_links(facts, addresses)]
    if node.name and not _needs_nothing(facts, addresses):
        links += _node_links(facts, right)
        links += (link for subnet in facts.subnets for link in _subnet_links(subnet, facts.now))
        links += _event_links(facts)
    return DecisionChain(
        subject=_subject(facts),
        verdict=_verdict(facts, addresses),
        addresses=addresses,
        links=tuple(links),
        numbers=_numbers(node, right) if node.name else None,
        next=what_next(facts, right, commands or SuggestedCommands()),
        not_asked=not_asked,
    )


def _subject(facts: WhyFacts) -> str:
    return f"pod {facts.pod.key}" if facts.pod else f"node {facts.observed.name}"


def _verdict(facts: WhyFacts, addresses: tuple[str, ...]) -> str:
    subject, waiting = _subject(facts), len(facts.observed.waiting)
    if facts.pod is None:
        served = len(facts.observed.served)
        return f"{subject}, where {counted(served, 'pod has', 'pods have')} an address and {counted(waiting, 'waits', 'wait')} for one"
    if addresses:
        return f"{subject} has {' and '.join(addresses)}"
    if not pod_on_node(facts.pod).needs_address:
        return f"{subject} needs no address"
    return f"{subject} has no address"


def _numbers(node: ObservedNode, right: RightRequest | None) -> NodeNumbers:
    return NodeNumbers(
        node=node.name,
        demand=node.demand,
        waiting=len(node.waiting),
        requested=node.requested,
        held=node.held,
        owed=node.owed,
        should_request=right.count if right else None,
    )


# The pod


def _needs_nothing(facts: WhyFacts, addresses: tuple[str, ...]) -> bool:
    return facts.pod is not None and not addresses and not pod_on_node(facts.pod).needs_address


def _pod_links(facts: WhyFacts, addresses: tuple[str, ...]) -> Iterator[ChainLink]:
    pod = facts.pod
    if pod is None:
        return
    phase = str(pod.status.phase or "of unknown phase")
    where = f"on node {pod.spec.node_name}" if pod.spec.node_name else "on no node yet"
    yield ChainLink("pod", f"{phase}, {where}, made {_ago(pod.metadata.creation_timestamp, facts.now)} ago")
    yield ChainLink("need", _need(pod), is_verbose=not _is_odd(pod))
    if addresses:
        yield from (_address_link(ip, facts.observed) for ip in addresses)
    elif pod_on_node(pod).needs_address:
        yield ChainLink("address", "none: its status shows no address", is_verbose=True)


def _is_odd(pod: Pod) -> bool:
    """Whether it needs no address, or not for long: then the link is shown without --verbose."""
    return pod.spec.host_network or pod_on_node(pod).ended or pod.metadata.deletion_timestamp is not None


def _need(pod: Pod) -> str:
    if pod.spec.host_network:
        return "none: it is on the host's network and has the node's own addresses"
    if pod_on_node(pod).ended:
        return f"none any more: it has ended ({pod.status.phase}), and its address is free for others"
    if pod.metadata.deletion_timestamp:
        return "none for long: it is being deleted, and no new sandbox is made for it"
    if not pod.spec.node_name:
        return "an address, once it has a node: addresses are the nodes' to give"
    return "an address of its node's pool"


def _address_link(ip: str, node: ObservedNode) -> ChainLink:
    for container in node.containers:
        for entry in container.ip_assignments:
            if entry.ip == ip:
                given_back = ", which the node gives back" if entry.name in node.named else ""
                return ChainLink(
                    "address",
                    f"{ip} ({entry.name}) of container {container.id} in subnet {container.subnet_name}{given_back}",
                )
    return ChainLink("address", f"{ip}, which no network container of node {node.name} has")


# The node


def _node_links(facts: WhyFacts, right: RightRequest | None) -> Iterator[ChainLink]:
    node = facts.observed
    if facts.node is None:
        yield ChainLink("node", f"{node.name} is not there any more")
    yield _demand_link(node)
    if right:
        yield ChainLink("parameters", right.parameters, is_verbose=True)
        yield ChainLink("decision", str(right.decision), right.decision.steps(), is_verbose=True)
    if node.config is None:
        yield ChainLink("request", f"there is no NodeNetworkConfig {node.name}")
        return
    yield _request_link(node, right)
    if not node.containers:
        yield ChainLink("grant", "no network container yet", _node_conditions(node.config, facts.now))
    for container in node.containers:
        yield from _grant_links(node, container, facts)


def _demand_link(node: ObservedNode) -> ChainLink:
    without = Counter(
        "on the host's network" if pod.spec.host_network else "ended or being deleted"
        for pod in node.pods
        if pod not in node.served and pod not in node.waiting
    )
    others = ", ".join(f"{count} {why}" for why, count in sorted(without.items()))
    return ChainLink(
        "demand",
        f"{counted(node.demand, 'pod needs', 'pods need')} an address: {len(node.served)} with one, "
        f"{len(node.waiting)} without; {node.free} free on the node",
        (f"not counted: {others}",) if others else (),
    )


def _request_link(node: ObservedNode, right: RightRequest | None) -> ChainLink:
    words = f"NodeNetworkConfig {node.name} asks for {node.requested}"
    if right is not None and node.requested < right.count:
        words += f", and {right.count} would be right"
    if right is not None and node.requested > right.count:
        words += f", and {right.count} would do, once that has stood for a while"
    if node.named:
        words += f", and gives back {len(node.named)}"
    return ChainLink("request", words)


def _grant_links(node: ObservedNode, container: NetworkContainer, facts: WhyFacts) -> Iterator[ChainLink]:
    assert node.config is not None  # it is what the container was found in
    owed = node.owed_in(container)
    yield ChainLink(
        "grant",
        f"{counted(len(container.ip_assignments), 'address', 'addresses')} in subnet {container.subnet_name}, {owed or 'none'} owed",
        _node_conditions(node.config, facts.now),
    )
    yield ChainLink(
        "container",
        f"{container.id}, version {container.version}, primary {container.primary_ip or container.primary_ipv6}",
        is_verbose=True,
    )


# The subnet, and what was said about all of it


def _subnet_links(facts: SubnetFacts, now: float) -> Iterator[ChainLink]:
    if facts.subnet is None and facts.at_allocator is None:
        state = facts.state.status if facts.state else None
        if state is None:
            yield ChainLink("subnet", f"{facts.name}: no ClusterSubnet and no ClusterSubnetState tell of it")
            return
        is_so = "exhausted" if state.exhausted else "not exhausted"
        yield ChainLink(
            "subnet", f"{facts.name}: {is_so} for {_ago(state.timestamp, now)} (ClusterSubnetState)"
        )
        return
    capacity, free = _known_count(facts.capacity), _known_count(facts.free)
    words = f"{facts.name}: {facts.reserved} of {capacity} reserved ({facts.source}), {free} free"
    if facts.at_allocator is not None and facts.at_allocator.quarantined:
        words += f", {facts.at_allocator.quarantined} in quarantine"
    if facts.subnet is not None:
        words += f"; {_standing(facts, now)}"
        if scaler := facts.subnet.status.scaler:
            words += f"; batch {scaler.batch}, buffer {scaler.buffer:g}"
    yield ChainLink("subnet", words)
    conditions = facts.subnet.status.conditions if facts.subnet is not None else []
    worrying = [each for each in conditions if each.status != ConditionStatus.TRUE]
    yield from (ChainLink("condition", words, is_verbose=True) for words in _conditions(worrying, now))


def _known_count(count: int | None) -> str:
    return "unknown" if count is None else count_text(count)


def _standing(facts: SubnetFacts, now: float) -> str:
    """Whether the subnet is exhausted, for how long if that is known, and whether it is starved."""
    assert facts.subnet is not None  # whose standing it is
    status, state = facts.subnet.status, facts.state.status if facts.state else None
    exhausted = "exhausted" if status.exhausted else "not exhausted"
    if state is not None and state.exhausted == status.exhausted:
        exhausted += f" for {_ago(state.timestamp, now)}"
    return f"{exhausted}, starved" if status.starved else exhausted


def _node_conditions(config: NodeNetworkConfig, now: float) -> tuple[str, ...]:
    """The conditions of the NodeNetworkConfig; those of an earlier generation are marked."""
    conditions = config.status.conditions
    return tuple(
        f"{words} [of an earlier request]" if each.observed_generation < config.metadata.generation else words
        for each, words in zip(conditions, _conditions(conditions, now), strict=True)
    )


def _conditions(conditions: Iterable[Condition], now: float) -> tuple[str, ...]:
    return tuple(
        f"{each.type}={each.status} for {_ago(each.last_transition_time, now)} ({each.reason}): {each.message}"
        for each in conditions
    )


def _event_links(facts: WhyFacts) -> Iterator[ChainLink]:
    """The latest Events; equal ones are folded into one with a count.

    Those of subnets carry formulas, and are verbose.
    """
    folded: dict[tuple[str, bool], tuple[int, str | None]] = {}
    for event in facts.events:
        about = f"{event.involved_object.kind} {event.involved_object.name}"
        key = (
            f"{about}: {event.type} {event.reason}: {event.message}",
            event.involved_object.kind in _SUBNET_KINDS,
        )
        times, _before = folded.pop(key, (0, None))
        folded[key] = (times + max(1, event.count), _when(event))
    for (words, is_verbose), (times, last) in list(folded.items())[-_LATEST_EVENTS:]:
        counted_times = f", {times} times" if times > 1 else ""
        yield ChainLink(
            "event", f"{_ago(last, facts.now)} ago{counted_times}, {words}", is_verbose=is_verbose
        )


def _when(event: Event) -> str | None:
    return event.last_timestamp or event.first_timestamp


def _ago(timestamp: str | None, now: float) -> str:
    try:
        return age(now - to_wall_seconds(timestamp or ""))
    except InvalidTimestamp:
        return "an unknown time"
