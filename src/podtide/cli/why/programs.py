"""Which of podtide's programs are at work, as far as objects tell: the leading controller, and the node's agent."""

from msgspec import Struct

from podtide.cli.observed_node import ObservedNode
from podtide.cluster.port import Cluster, Forbidden, NotFound
from podtide.cluster.served.ages import age
from podtide.controller.program import LEASE
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds

_NAME_LABEL, _COMPONENT_LABEL = "app.kubernetes.io/name", "app.kubernetes.io/component"
_AGENT = ("podtide", "agent")


class LeaderState(Struct, frozen=True):
    """Whether a request controller leads, and why it is thought that none does."""

    obstacle: str = ""
    """In words; "" while one leads, or where it cannot be known."""


async def read_leader(cluster: Cluster, now: float) -> LeaderState:
    """Read the controllers' Lease. Who may not read it knows nothing, and supposes the best."""
    try:
        lease = await cluster.get(Lease, LEASE.name, LEASE.namespace)
    except Forbidden:
        return LeaderState()
    except NotFound:
        return LeaderState(_obstacle("is not there: none was ever started"))
    return leader_in(lease.spec, now)


def leader_in(spec: LeaseSpec, now: float) -> LeaderState:
    """What a Lease says at a time; the machines' clocks are taken to agree within its duration."""
    if not spec.holder_identity:
        return LeaderState(_obstacle("was given up, and none has taken it"))
    try:
        silent = now - to_wall_seconds(spec.renew_time or "")
    except InvalidTimestamp:
        return LeaderState()
    if silent <= 2 * (spec.lease_duration_seconds or 0):
        return LeaderState()
    return LeaderState(_obstacle(f"was last renewed {age(silent)} ago, by {spec.holder_identity}"))


def _obstacle(words: str) -> str:
    return f"no request controller leads (Lease {LEASE} {words}): start `podtide controller`, or see the log of the one that runs"


def agent_advice(node: ObservedNode) -> str:
    """Where to look for the node's agent: at its pod, where the chart put one there."""
    agent = next((pod for pod in node.pods if _is_agent(pod)), None)
    if agent is None:
        return f"see that `podtide agent` runs on node {node.name} and reaches the API server"
    place = f"-n {agent.metadata.namespace} {agent.metadata.name}"
    if agent.status.phase != PodPhase.RUNNING:
        phase = agent.status.phase or "of unknown phase"
        return f"its pod {agent.key} is {phase}: `kubectl describe pod {place}` says why"
    return f"`kubectl logs {place}` says what it lacks"


def _is_agent(pod: Pod) -> bool:
    labels = pod.metadata.labels
    return (labels.get(_NAME_LABEL), labels.get(_COMPONENT_LABEL)) == _AGENT
