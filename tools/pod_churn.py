"""Pods that come to nodes and go, one at a time, and how many writes to the API server that makes.

Every node gets or loses a pod every minute or so, by chance, around a mean that stays. The pods are the same for every
contestant.
"""

from collections.abc import Iterator
from io import StringIO

from msgspec import Struct

from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import WAITING_PODS_ANNOTATION
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.stage import Stage
from podtide.simulation.strategies import Strategy
from podtide.simulation.trace import ClusterWrite
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.world import WorldDefaults

NODES = 10
MEAN_PAUSE_SECONDS = 60.0
WARM_UP_SECONDS = 1800.0


class Case(Struct, frozen=True):
    """How many pods there are on average, and in how large a subnet."""

    subnet: str
    addresses: int
    pods: int

    @property
    def mean_pods(self) -> float:
        """On each node."""
        return self.pods / NODES

    @property
    def words(self) -> str:
        """How much of the subnet pods and nodes themselves use."""
        return f"{100 * (self.pods + NODES) / self.addresses:.0f} % of {self.addresses}"


AT_EASE = Case("10.0.0.0/22", 1021, 205)
"""There is room for the configured batch."""
AT_60_PERCENT = Case("10.0.0.0/24", 253, 142)
AT_85_PERCENT = Case("10.0.0.0/24", 253, 205)
"""The pods of AT_EASE, in a quarter of the room."""


class Change(Struct, frozen=True):
    """A pod comes to a node, or goes."""

    at: float
    node: str
    comes: bool


class Writes(Struct, frozen=True):
    """Per node and hour."""

    requests: float
    """NodeNetworkConfigs that agents applied."""
    restatements: float
    """Of these, those that changed nothing but what the agent states of its demand."""
    grants: float
    """NodeNetworkConfigs whose status the controller wrote."""
    subnets: float
    """ClusterSubnets that the controller wrote."""
    batches: tuple[int, ...]
    """That were in force while it was counted, smallest first."""

    @property
    def total(self) -> float:
        """All of them."""
        return self.requests + self.grants + self.subnets


def changes(mean_pods: float, seconds: float) -> list[Change]:
    """The more pods a node has, the likelier it is that the next change is one that goes."""
    found = []
    for number in range(NODES):
        chance = seeded_randomness(f"churn of node {number}")
        pods, at = round(mean_pods), 0.0
        while (at := at + chance.expovariate(1 / MEAN_PAUSE_SECONDS)) < seconds:
            comes = chance.uniform(0, 2 * mean_pods) >= pods
            pods += 1 if comes else -1
            found.append(Change(at, _name(number), comes))
    return sorted(found, key=lambda change: change.at)


async def count_writes(contestant: Strategy, case: Case, hours: float) -> Writes:
    """What is written per node and hour, after the warm-up."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    defaults = WorldDefaults(policy=contestant.policy, batch_rule=contestant.batch_rule)
    async with open_embedded_world(case.subnet, defaults=defaults, clock=clock, seed=1, log=log) as world:
        stage = Stage(world)
        world.start_controller()
        for number in range(NODES):
            await world.add_node(_name(number))
            await stage.add_pods(_name(number), round(case.mean_pods))
        began, point = clock.monotonic(), None
        end = WARM_UP_SECONDS + hours * 3600
        for change in changes(case.mean_pods, end):
            await world.pass_time(began + change.at - clock.monotonic())
            if point is None and change.at >= WARM_UP_SECONDS:
                point = stage.now
            await (stage.add_pods if change.comes else stage.remove_pods)(change.node)
        await world.pass_time(began + end - clock.monotonic())
        await world.auditor.check()
        return _writes(stage, point or 0, NODES * hours)


def _writes(stage: Stage, point: int, node_hours: float) -> Writes:
    asked = {
        write.name: _without_statement(write.item)
        for write in _writes_until(stage, point)
        if isinstance(write.item, NodeNetworkConfig)
    }
    batches = _batches(stage, point)
    requests = restatements = grants = subnets = 0
    for write in stage.writes_since(point):
        if isinstance(write.item, ClusterSubnet):
            subnets += 1
        elif isinstance(write.item, NodeNetworkConfig) and write.verb == "apply":
            requests += 1
            restatements += asked[write.name] == _without_statement(write.item)
            asked[write.name] = _without_statement(write.item)
        elif isinstance(write.item, NodeNetworkConfig):
            grants += 1
    return Writes(
        requests / node_hours, restatements / node_hours, grants / node_hours, subnets / node_hours, batches
    )


def _writes_until(stage: Stage, point: int) -> Iterator[ClusterWrite]:
    return (entry for entry in stage.world.trace.entries[:point] if isinstance(entry, ClusterWrite))


def _batches(stage: Stage, point: int) -> tuple[int, ...]:
    in_force_then = _shown(_writes_until(stage, point))[-1:]
    return tuple(sorted({*in_force_then, *_shown(stage.writes_since(point))}))


def _shown(writes: Iterator[ClusterWrite]) -> list[int]:
    return [
        write.item.status.scaler.batch
        for write in writes
        if isinstance(write.item, ClusterSubnet) and write.item.status.scaler is not None
    ]


def _without_statement(item: NodeNetworkConfig) -> tuple[object, ...]:
    """All that an agent writes but its statement."""
    told = item.metadata.annotations.get(WAITING_PODS_ANNOTATION)
    return item.spec.requested_ip_count, tuple(item.spec.ips_not_in_use), told


def _name(number: int) -> str:
    return f"node-{number}"
