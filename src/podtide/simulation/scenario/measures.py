"""What may be expected in a scenario: every function here is a measure, with the same name in a file.

`pods_ready(stage, node)` is `pods ready: 36` (on all nodes together) or `pods ready: {node-1: 36}`. Its second parameter
is its subject (a node, a subnet, or without one the whole cluster), and its return type is the type of the expected value:
for an int a number, exact or `at least 5`; else yes or no, a word, or a list of numbers.
"""

from itertools import pairwise

from podtide.allocator.subnets import Subnet
from podtide.cluster.port import NotFound
from podtide.controller.grant_condition import GRANTED
from podtide.core.pool.states import State
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.checks.batch_moves import batch_decided
from podtide.simulation.scenario.stage import EACH_NODE, ClusterStage, ScenarioStage
from podtide.simulation.trace import AllocatorCall

# Of nodes: one by its name, or all of them together


async def pods_ready(stage: ScenarioStage, node: str) -> int:
    """Pods that have their addresses."""
    return sum([there.world.running_pods(name) for there, name in _asked(stage, node)])


async def requested(stage: ScenarioStage, node: str) -> int:
    """The nodes' requests: their `requestedIPCount`."""
    return sum([config.spec.requested_ip_count for config in await _configs(stage, node)])


async def granted(stage: ScenarioStage, node: str) -> int:
    """Addresses that NodeNetworkConfigs show as granted."""
    return sum([config.status.assigned_ip_count for config in await _configs(stage, node)])


async def held(stage: ScenarioStage, node: str) -> int:
    """Addresses in nodes' pools that are not being released."""
    return _count(stage, node, State.ASSIGNED, State.AVAILABLE, State.PENDING_PROGRAMMING)


async def free(stage: ScenarioStage, node: str) -> int:
    """Addresses that nodes hold beyond their pods'."""
    return _count(stage, node, State.AVAILABLE, State.PENDING_PROGRAMMING)


async def named_for_release(stage: ScenarioStage, node: str) -> int:
    """Names in nodes' `ipsNotInUse`."""
    return sum([len(config.spec.ips_not_in_use) for config in await _configs(stage, node)])


async def requests_written(stage: ScenarioStage, node: str) -> int:
    """How many requests agents wrote, counted."""
    return len(await requests(stage, node))


async def requests(stage: ScenarioStage, node: str) -> list[int]:
    """The agents' requests, one after the other, counted."""
    since = stage.counting_from
    return [each for there, name in _asked(stage, node) for each in there.requests_since(since, name)]


async def failed_adds(stage: ScenarioStage, node: str) -> int:
    """ADDs that got no address, counted."""
    return sum(
        not add.ok and name in {"", add.node}
        for there, name in _asked(stage, node)
        for add in there.adds_since(stage.counting_from)
    )


async def reason(stage: ScenarioStage, node: str) -> str:
    """The reason of a node's condition `Granted`: why it has, or has not, all it requested."""
    conditions = [each for config in await _configs(stage, node) for each in config.status.conditions]
    return next((each.reason for each in conditions if each.type == GRANTED), "")


# Of subnets: one by its name, or the default one. What clusters say of it is read from the first, or the one that is named


async def reserved(stage: ScenarioStage, subnet: str) -> int:
    """R: reserved addresses of the subnet, with the nodes' own and those in quarantine."""
    return (await _subnet(stage, subnet)).reserved


async def left(stage: ScenarioStage, subnet: str) -> int:
    """Free addresses of the subnet."""
    found = await _subnet(stage, subnet)
    return found.capacity - found.reserved


async def exhausted(stage: ScenarioStage, subnet: str) -> bool:
    """Whether the subnet is shown as exhausted: by its ClusterSubnet, or where that has no status by its ClusterSubnetState."""
    there, name = stage.subnet(subnet)
    said = (await _cluster_subnet(stage, subnet)).status
    if there.world.options.cluster_subnets and said.scaler is not None:
        return said.exhausted
    try:
        state = await there.world.cluster.get(ClusterSubnetState, name, SYSTEM_NAMESPACE)
    except NotFound:  # the controller has not looked at it yet
        return False
    return state.status is not None and state.status.exhausted


async def starved(stage: ScenarioStage, subnet: str) -> bool:
    """Whether no address is left in the subnet while nodes wait for some."""
    return (await _cluster_subnet(stage, subnet)).status.starved


async def batch(stage: ScenarioStage, subnet: str) -> int:
    """The batch in force."""
    scaler = (await _cluster_subnet(stage, subnet)).status.scaler
    return scaler.batch if scaler else 0


async def batches(stage: ScenarioStage, subnet: str) -> list[int]:
    """The batches that came into force, one after the other, counted."""
    _there, name = stage.subnet(subnet)
    point, before, since = stage.counting_from, 0, list[int]()
    for number, entry in enumerate(stage.site.trace.entries):
        decided = batch_decided(entry)
        if decided and decided[0] == name:
            before, since = (before, [*since, decided[1]]) if number >= point else (decided[1], since)
    # Exhaustion is put in force by the same call, and then the batch is repeated.
    return [batch for last, batch in pairwise([before, *since]) if batch != last]


# Of everything


async def writes(stage: ScenarioStage) -> int:
    """Writes of programs to the cluster, without the leader's Lease, counted."""
    return sum(
        write.kind != Lease.api.kind
        for there in stage.clusters.values()
        for write in there.writes_since(stage.counting_from)
    )


async def given_back(stage: ScenarioStage) -> int:
    """Addresses that nodes named for release, counted."""
    return sum(there.given_back_since(stage.counting_from) for there in stage.clusters.values())


async def allocator_calls(stage: ScenarioStage) -> int:
    """Calls that changed something at the allocator, counted."""
    entries = stage.site.trace.entries[stage.counting_from :]
    return sum(isinstance(entry, AllocatorCall) for entry in entries)


MEASURES = {
    measure.__name__.replace("_", " "): measure
    for measure in (
        pods_ready,
        requested,
        granted,
        held,
        free,
        named_for_release,
        requests_written,
        requests,
        failed_adds,
        reason,
        reserved,
        left,
        exhausted,
        starved,
        batch,
        batches,
        writes,
        given_back,
        allocator_calls,
    )
}


def _asked(stage: ScenarioStage, node: str) -> list[tuple[ClusterStage, str]]:
    """The clusters to read, each with a node's name, or "" for all of its nodes."""
    return stage.nodes(node) if node else [(there, "") for there in stage.clusters.values()]


async def _configs(stage: ScenarioStage, node: str) -> list[NodeNetworkConfig]:
    return [
        config
        for there, name in _asked(stage, node)
        for config in (
            await there.world.cluster.list(
                NodeNetworkConfig, SYSTEM_NAMESPACE, fields=f"metadata.name={name}" if name else ""
            )
        ).items
    ]


async def _subnet(stage: ScenarioStage, subnet: str) -> Subnet:
    _there, name = stage.subnet(subnet)
    return await stage.site.allocator.get_subnet(stage.site.network, name)


async def _cluster_subnet(stage: ScenarioStage, subnet: str) -> ClusterSubnet:
    there, name = stage.subnet(subnet)
    try:
        return await there.world.cluster.get(ClusterSubnet, name, SYSTEM_NAMESPACE)
    except NotFound:  # the controller has not looked at it yet
        return ClusterSubnet(metadata=ObjectMeta(name=name))


def _count(stage: ScenarioStage, node: str, *states: State) -> int:
    agents = [machine.agent for machine in stage.machines(node or EACH_NODE) if machine.agent is not None]
    return sum(address.state in states for agent in agents for address in agent.addresses.all_addresses())
