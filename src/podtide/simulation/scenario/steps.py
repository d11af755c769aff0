"""What may happen in a scenario: every function here is a step, with the same name in a file.

`add_pods(stage, pods: PodsByNode)` is the step `add pods: {node-1: 35}`. The type of its second parameter is
what the step takes in a file, and its docstring is its line in `docs/scenarios.md`. A step without a value is written as
a word of its own.

Where there are several clusters, a node is named with its cluster, and a subnet stands for that subnet in all clusters
unless it is named with one (see `stage`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, TypeVar

from msgspec import Meta, structs

from podtide.cluster.port import DeletePreconditions, NotFound
from podtide.core.errors import InvalidInput
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.timestamps import to_time
from podtide.simulation.nodes.pods import MANAGER, NAMESPACE, new_pod
from podtide.simulation.scenario.stage import ClusterStage, ScenarioStage
from podtide.simulation.scenario.values import Seconds

_Positive = Annotated[int, Meta(ge=1)]
_Count = Annotated[int, Meta(ge=0)]


class WrittenScaler(ScalerOverride, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ClusterSubnet's `spec.scaler`, as it is written there: `minBatch`."""


Nodes = Annotated[list[str], Meta(examples=["[node-1]"])]
PodsByNode = Annotated[dict[str, _Positive], Meta(examples=["{node-1: 5}"])]
CountByNode = Annotated[dict[str, _Count], Meta(examples=["{node-1: 5}"])]
NamesByNode = Annotated[dict[str, list[str]], Meta(examples=["{node-1: [some-name]}"])]
Subnets = Annotated[list[str], Meta(examples=["[pods]"])]
AnswerBySubnet = Annotated[dict[str, bool], Meta(examples=["{pods: yes}"])]
BatchBySubnet = Annotated[dict[str, _Positive], Meta(examples=["{pods: 8}"])]
ScalerBySubnet = Annotated[dict[str, WrittenScaler], Meta(examples=["{pods: {fixed: 8}}"])]
RangeBySubnet = Annotated[dict[str, str], Meta(examples=["{pods: 10.0.1.0/24}"])]
Duration = Annotated[Seconds, Meta(examples=["30s"])]

_BY_HAND = "kubectl-edit"

T = TypeVar("T")


# Pods


async def add_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """So many new pods are scheduled to each of these nodes, all at once."""
    for there, node, count in _by_node(stage, pods):
        await there.add_pods(node, count)


async def add_host_network_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """Pods that use their node's own address are scheduled."""
    for there, node, count in _by_node(stage, pods):
        await there.world.workload.add_pods(node, count, host_network=True)


async def remove_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """So many pods of these nodes are deleted, the newest first."""
    for there, node, count in _by_node(stage, pods):
        if count > len(there.pods[node]):
            name = there.world.machines[node].full_name
            raise InvalidInput(f"{name} has {len(there.pods[node])} pods, and {count} are to go: give fewer")
        await there.remove_pods(node, count)


async def complete_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """The work of so many pods is done, as a Job's: they have ended, and their objects stay."""
    for there, node, count in _by_node(stage, pods):
        for name in there.pods[node][-count:]:
            await there.world.workload.complete_pod(name, PodPhase.SUCCEEDED)
        del there.pods[node][-count:]


async def recreate_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """So many pods are deleted by force and created again under their names at once, as a StatefulSet's."""
    for there, node, count in _by_node(stage, pods):
        for name in there.pods[node][-count:]:
            there.cluster.server.delete(Pod, name, NAMESPACE, DeletePreconditions(grace_seconds=0))
            await there.cluster.create(new_pod(name, node), manager=MANAGER)


# Nodes


async def add_nodes(stage: ScenarioStage, nodes: Nodes) -> None:
    """New machines join."""
    for name in nodes:
        there, node = stage.new_node(name)
        await there.add_node(node)


async def remove_nodes(stage: ScenarioStage, nodes: Nodes) -> None:
    """These machines are switched off for good and their Nodes deleted, with their pods."""
    for there, node in _named(stage, nodes):
        await there.remove_node(node)


async def register_nodes_anew(stage: ScenarioStage, nodes: Nodes) -> None:
    """These Nodes are deleted while their machines run on, and registered again, with another uid."""
    for there, node in _named(stage, nodes):
        machine = there.world.machines[node]
        await there.world.cluster.delete(Node, node)
        machine.uid = ""
        await there.world.workload.clear_node(node)
        there.pods[node].clear()
        machine.uid = (await there.world.create_node(node)).metadata.uid


async def cut_power(stage: ScenarioStage, nodes: Nodes) -> None:
    """These machines lose power and start again: their sandboxes are gone, without a DEL."""
    for there, node in _named(stage, nodes):
        await there.world.crash_machine(node)


# Programs


async def kill_agents(stage: ScenarioStage, nodes: Nodes) -> None:
    """The agents of these nodes die, as by kill -9."""
    for there, node in _named(stage, nodes):
        await there.world.kill_agent(node)


async def start_agents(stage: ScenarioStage, nodes: Nodes) -> None:
    """The agents of these nodes start, on what is on their disks."""
    for there, node in _named(stage, nodes):
        await there.world.start_agent(node)


async def lose_journals(stage: ScenarioStage, nodes: Nodes) -> None:
    """The disks of these nodes are replaced by empty ones, while no agent runs on them."""
    for there, node in _named(stage, nodes):
        if there.world.machines[node].agent is not None:
            raise InvalidInput(f"the agent of {node} runs: kill it before its journal is lost")
        there.world.lose_disk(node)


async def stop_controller(stage: ScenarioStage) -> None:
    """The request controller ends: requests are not granted any more."""
    for there in stage.clusters.values():
        await there.world.programs.stop(there.controller)


async def start_controller(stage: ScenarioStage) -> None:
    """The request controller starts, as it was."""
    for there in stage.clusters.values():
        there.start_controller()


async def start_controller_with_cluster_subnets(stage: ScenarioStage) -> None:
    """The request controller starts, and writes ClusterSubnets that show what is in force."""
    _start_controllers(stage, cluster_subnets=True)


async def start_controller_without_cluster_subnets(stage: ScenarioStage) -> None:
    """The request controller starts, and writes no ClusterSubnets, only ClusterSubnetStates."""
    _start_controllers(stage, cluster_subnets=False)


# What is held back


async def hold_back_deletes(stage: ScenarioStage, nodes: Nodes) -> None:
    """DELs of these nodes do not arrive, although their runtimes get a success."""
    for there, node in _named(stage, nodes):
        there.deletes.hold_back(node)


async def deliver_deletes(stage: ScenarioStage, nodes: Nodes) -> None:
    """The DELs that were held back on these nodes arrive, late."""
    for there, node in _named(stage, nodes):
        await there.deletes.deliver(node)


async def withhold_pods(stage: ScenarioStage, nodes: Nodes) -> None:
    """The API server does not answer when an agent of these nodes lists its pods."""
    for there, node in _named(stage, nodes):
        there.pods_shown[there.world.machines[node].agent_program].clear()


async def show_pods(stage: ScenarioStage, nodes: Nodes) -> None:
    """The API server answers the agents of these nodes again."""
    for there, node in _named(stage, nodes):
        there.pods_shown[there.world.machines[node].agent_program].set()


# What people do


async def edit_requests(stage: ScenarioStage, requests: CountByNode) -> None:
    """A person changes the `requestedIPCount` of these nodes."""
    for there, node, count in _by_node(stage, requests):
        config = await _config(there, node)
        spec = structs.replace(config.spec, requested_ip_count=count)
        await there.world.cluster.replace(structs.replace(config, spec=spec), manager=_BY_HAND)


async def name_for_release(stage: ScenarioStage, names: NamesByNode) -> None:
    """A person adds names to the `ipsNotInUse` of these nodes."""
    for there, node, added in _by_node(stage, names):
        config = await _config(there, node)
        spec = structs.replace(config.spec, ips_not_in_use=[*config.spec.ips_not_in_use, *added])
        await there.world.cluster.replace(structs.replace(config, spec=spec), manager=_BY_HAND)


async def put_status_aside(stage: ScenarioStage, nodes: Nodes) -> None:
    """The present status of these nodes' NodeNetworkConfigs is saved."""
    for there, node in _named(stage, nodes):
        there.kept[node] = (await _config(there, node)).status


async def put_status_back(stage: ScenarioStage, nodes: Nodes) -> None:
    """The saved status is written back, as after a restore from a backup."""
    for there, node in _named(stage, nodes):
        if node not in there.kept:
            raise InvalidInput(f"the status of {node} was not put aside: do that at an earlier point")
        config = structs.replace(await _config(there, node), status=there.kept[node])
        await there.world.cluster.replace_status(config, manager=_BY_HAND)


async def say_exhausted(stage: ScenarioStage, subnets: AnswerBySubnet) -> None:
    """Another program writes into a subnet's ClusterSubnetState whether it is exhausted."""
    for there, subnet, exhausted in _by_subnet(stage, subnets):
        cluster = there.world.cluster
        try:
            state = await cluster.get(ClusterSubnetState, subnet, SYSTEM_NAMESPACE)
        except NotFound:
            made = ClusterSubnetState(metadata=ObjectMeta(name=subnet, namespace=SYSTEM_NAMESPACE))
            state = await cluster.create(made, manager=_BY_HAND)
        now = to_time(there.world.clock.wall())
        status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp=now)
        await cluster.replace_status(structs.replace(state, status=status), manager=_BY_HAND)


async def delete_subnet_states(stage: ScenarioStage, subnets: Subnets) -> None:
    """A person deletes the ClusterSubnetState of these subnets."""
    for there, subnet in _subnets(stage, subnets):
        await there.world.cluster.delete(ClusterSubnetState, subnet, SYSTEM_NAMESPACE)


async def create_cluster_subnets(stage: ScenarioStage, subnets: Subnets) -> None:
    """A person creates the ClusterSubnet of these subnets, without a status."""
    for there, subnet in _subnets(stage, subnets):
        made = ClusterSubnet(metadata=ObjectMeta(name=subnet, namespace=SYSTEM_NAMESPACE))
        await there.world.cluster.create(made, manager=_BY_HAND)


async def delete_cluster_subnets(stage: ScenarioStage, subnets: Subnets) -> None:
    """A person deletes the ClusterSubnet of these subnets."""
    for there, subnet in _subnets(stage, subnets):
        await there.world.cluster.delete(ClusterSubnet, subnet, SYSTEM_NAMESPACE)


async def override_batch(stage: ScenarioStage, batches: BatchBySubnet) -> None:
    """A person sets another batch for these subnets, in their ClusterSubnet's spec."""
    for there, subnet, batch in _by_subnet(stage, batches):
        await _set_scaler(there, subnet, ScalerOverride(batch=batch))


async def set_scaler(stage: ScenarioStage, scalers: ScalerBySubnet) -> None:
    """A person writes this as `spec.scaler` of these subnets' ClusterSubnet; `{}` removes all of it."""
    for there, subnet, scaler in _by_subnet(stage, scalers):
        await _set_scaler(there, subnet, scaler)


async def grow_subnets(stage: ScenarioStage, ranges: RangeBySubnet) -> None:
    """These subnets are given another range, in addition to what they have."""
    for subnet, cidr in ranges.items():
        found = await stage.site.allocator.get_subnet(stage.site.network, subnet)
        await stage.site.allocator.grow_subnet(found.network, subnet, (cidr,))


# Time


async def wait(stage: ScenarioStage, seconds: Duration) -> None:
    """So much time passes."""
    await stage.world.pass_time(seconds)


async def count_from_here(stage: ScenarioStage) -> None:
    """What is counted (requests, writes, failed ADDs) is counted from this point on."""
    stage.counting_from = stage.first.now


def _named(stage: ScenarioStage, names: Iterable[str]) -> Iterator[tuple[ClusterStage, str]]:
    return (place for name in names for place in stage.nodes(name))


def _by_node(stage: ScenarioStage, values: Mapping[str, T]) -> Iterator[tuple[ClusterStage, str, T]]:
    return ((*place, value) for name, value in values.items() for place in stage.nodes(name))


def _subnets(stage: ScenarioStage, names: Iterable[str]) -> Iterator[tuple[ClusterStage, str]]:
    return (place for name in names for place in stage.subnets(name))


def _by_subnet(stage: ScenarioStage, values: Mapping[str, T]) -> Iterator[tuple[ClusterStage, str, T]]:
    return ((*place, value) for name, value in values.items() for place in stage.subnets(name))


async def _config(there: ClusterStage, node: str) -> NodeNetworkConfig:
    return await there.world.cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)


async def _set_scaler(there: ClusterStage, subnet: str, scaler: ScalerOverride) -> None:
    found = await there.world.cluster.get(ClusterSubnet, subnet, SYSTEM_NAMESPACE)
    edited = structs.replace(found, spec=ClusterSubnetSpec(scaler=scaler))
    await there.world.cluster.replace(edited, manager=_BY_HAND)


def _start_controllers(stage: ScenarioStage, *, cluster_subnets: bool) -> None:
    for there in stage.clusters.values():
        there.world.options = structs.replace(there.world.options, cluster_subnets=cluster_subnets)
        there.start_controller()


STEPS = {
    step.__name__.replace("_", " "): step
    for step in (
        add_pods,
        add_host_network_pods,
        remove_pods,
        complete_pods,
        recreate_pods,
        add_nodes,
        remove_nodes,
        register_nodes_anew,
        cut_power,
        kill_agents,
        start_agents,
        lose_journals,
        stop_controller,
        start_controller,
        start_controller_with_cluster_subnets,
        start_controller_without_cluster_subnets,
        hold_back_deletes,
        deliver_deletes,
        withhold_pods,
        show_pods,
        edit_requests,
        name_for_release,
        put_status_aside,
        put_status_back,
        say_exhausted,
        delete_subnet_states,
        create_cluster_subnets,
        delete_cluster_subnets,
        override_batch,
        set_scaler,
        grow_subnets,
        wait,
        count_from_here,
    )
}
