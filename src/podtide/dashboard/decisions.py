"""What was decided, read from how objects changed. No I/O.

The objects carry the terms: a NodeNetworkConfig its agent's statement, a ClusterSubnet its batch, R and Q, and why. The
arithmetic is the core's own (`core.subnet.scaling`, `core.subnet.exhaustion`), so the page cannot say anything else than
`podtide explain` and the programs' logs.
"""

from collections.abc import Iterator

from msgspec import Struct

from podtide.controller.subnets.overrides import AS_CONFIGURED
from podtide.core.exact import text
from podtide.core.subnet.exhaustion import Exhaustion, Thresholds, judge_exhaustion
from podtide.core.subnet.scaling import RequestDecision, decide_request
from podtide.core.subnet.statement import Statement
from podtide.dashboard.holdings import statement_of
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus
from podtide.resources.node_network_config import NodeNetworkConfig

Term = tuple[str, str, str]


class DecisionDraft(Struct, frozen=True):
    """A decision, before it has a number and a time."""

    kind: str
    subject: str
    text: str
    terms: tuple[Term, ...] = ()
    formula: str = ""


def node_subject(name: str) -> str:
    """How decisions about a node name it."""
    return f"node/{name}"


def subnet_subject(name: str) -> str:
    """The same for a subnet."""
    return f"subnet/{name}"


# Nodes


def config_decisions(old: NodeNetworkConfig, new: NodeNetworkConfig) -> Iterator[DecisionDraft]:
    """What a change of a NodeNetworkConfig says was decided: by the agent in its spec, by the controller in its status."""
    name = new.metadata.name
    subject = node_subject(name)
    if new.spec.requested_ip_count != old.spec.requested_ip_count:
        yield request_decision(new, before=old.spec.requested_ip_count)
    if given_back := len(set(new.spec.ips_not_in_use) - set(old.spec.ips_not_in_use)):
        yield DecisionDraft(
            "release", subject, f"{name} gives back {_addresses(given_back)} that no pod of it needs"
        )
    before, after = _granted(old), _granted(new)
    if more := len(after - before):
        requested = new.spec.requested_ip_count * max(1, len(new.status.network_containers))
        held = f"holds {len(after)} of {requested} it asks for"
        yield DecisionDraft("grant", subject, f"{name} was granted {_addresses(more)}: it {held}")
    if fewer := len(before - after):
        yield DecisionDraft("freed", subject, f"{_addresses(fewer)} of {name} are free again")


def request_decision(config: NodeNetworkConfig, before: int | None = None) -> DecisionDraft:
    """The request that a NodeNetworkConfig has now, with the arithmetic where its agent stated the terms."""
    name, request = config.metadata.name, config.spec.requested_ip_count
    was = f", {before} before" if before is not None else ""
    statement = statement_of(config)
    if statement is None:
        return DecisionDraft(
            "request",
            node_subject(name),
            f"{name} asks for {_addresses(request)}{was}; its agent stated no terms",
        )
    decision = decide_request(statement.demand, statement.scaler, statement.primaries)
    rest = f"{decision.short} short" if decision.short else f"{decision.free} free"
    words = f"{name} asks for {_addresses(request)}{was}: demand {decision.demand}, {rest}"
    return DecisionDraft(
        "request",
        node_subject(name),
        words,
        _request_terms(decision, statement),
        f"{decision.arithmetic} = {decision.request}",
    )


def _request_terms(decision: RequestDecision, statement: Statement) -> tuple[Term, ...]:
    scaler = decision.scaler
    terms = (
        ("U", "demand: pods that need an address", str(decision.demand)),
        ("B", "batch", str(scaler.batch)),
        ("mf", "buffer, as a part of a batch", text(scaler.buffer)),
        ("P", "primaries", str(decision.primaries)),
        ("max", "the node's maximum", str(scaler.max_ips)),
        ("aligned", "B·⌈mf + U/B⌉", str(decision.aligned)),
        ("request", "min(max, max(aligned - P, U + kept free))", str(decision.request)),
    )
    if statement.request != decision.request:
        return (*terms, ("share", "of each container", str(statement.request)))
    return terms


def _granted(config: NodeNetworkConfig) -> set[str]:
    return {entry.name for each in config.status.network_containers for entry in each.ip_assignments}


def _addresses(count: int) -> str:
    return "1 address" if count == 1 else f"{count} addresses"


# Subnets


def subnet_decisions(
    old: ClusterSubnet, new: ClusterSubnet, thresholds: Thresholds | None
) -> Iterator[DecisionDraft]:
    """What a change of a ClusterSubnet says was decided; without thresholds, the inequality is left out."""
    name, before, after = new.metadata.name, old.status, new.status
    subject, terms = subnet_subject(name), _subnet_terms(after, thresholds)
    if before.exhausted != after.exhausted:
        words = "is exhausted" if after.exhausted else "is not exhausted any more"
        judged = _judged(before, after, thresholds)
        yield DecisionDraft(
            "exhausted", subject, f"subnet {name} {words}", terms, judged.comparison if judged else ""
        )
    if before.starved != after.starved:
        words = (
            "is starved: nodes keep no address in reserve"
            if after.starved
            else "is starved no more: nodes keep addresses in reserve again"
        )
        yield DecisionDraft("starved", subject, f"subnet {name} {words}", terms, batch_reason(after))
    if before.scaler is not None and after.scaler is not None and before.scaler.batch != after.scaler.batch:
        way = "raised" if after.scaler.batch > before.scaler.batch else "reduced"
        yield DecisionDraft(
            "batch",
            subject,
            f"the batch of subnet {name} is {way} from {before.scaler.batch} to {after.scaler.batch}",
            terms,
            batch_reason(after),
        )
    if _ranges(before) != _ranges(after) and before.cidrs:
        yield DecisionDraft("ranges", subject, f"subnet {name} has other ranges: {after.ranges}", terms)


def batch_reason(status: ClusterSubnetStatus) -> str:
    """Why the batch is as it is, in the words of the condition."""
    return next((each.message for each in status.conditions if each.type == AS_CONFIGURED), "")


def _judged(
    before: ClusterSubnetStatus, after: ClusterSubnetStatus, thresholds: Thresholds | None
) -> Exhaustion | None:
    """The inequality; None where it cannot be known, or R went on since it was judged."""
    if thresholds is None or after.capacity < 1:
        return None
    judged = judge_exhaustion(
        exhausted=before.exhausted,
        reserved=after.reserved,
        capacity=after.capacity,
        thresholds=thresholds,
    )
    return judged if judged.exhausted == after.exhausted else None


def _subnet_terms(status: ClusterSubnetStatus, thresholds: Thresholds | None) -> tuple[Term, ...]:
    terms: tuple[Term, ...] = (
        ("R", "reserved addresses", str(status.reserved)),
        ("Q", "capacity", str(status.capacity)),
    )
    if thresholds is not None and status.capacity:
        terms += (
            ("t·Q", "lower threshold", text(thresholds.lower * status.capacity)),
            ("T·Q", "upper threshold", text(thresholds.upper * status.capacity)),
        )
    if status.scaler is not None:
        terms += (
            ("B", "batch", str(status.scaler.batch)),
            ("mf", "buffer, as a part of a batch", f"{status.scaler.buffer:g}"),
        )
    return terms


def _ranges(status: ClusterSubnetStatus) -> list[tuple[str, bool]]:
    return [(each.cidr, each.draining) for each in status.cidrs]
