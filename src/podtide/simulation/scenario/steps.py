"""What may happen in a scenario: every function here is a step, called in a file what it is called here.

`add_pods(stage, pods: PodsByNode)` is the step `add pods: {node-1: 35}`. The type of its second parameter is
what the step takes in a file, and its docstring is what `docs/scenarios.md` says of it. A step for which nothing is
given is written as a word of its own, without a value.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, TypeVar

from msgspec import Meta, structs

from podtide.cluster.port import NotFound
from podtide.core.errors import InvalidInput
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.timestamps import to_time
from podtide.simulation.pods import MANAGER, NAMESPACE, new_pod
from podtide.simulation.scenario.stage import CONTROLLER, ScenarioStage
from podtide.simulation.scenario.values import Seconds

_Positive = Annotated[int, Meta(ge=1)]
_Count = Annotated[int, Meta(ge=0)]

Nodes = Annotated[list[str], Meta(examples=["[node-1]"])]
PodsByNode = Annotated[dict[str, _Positive], Meta(examples=["{node-1: 5}"])]
CountByNode = Annotated[dict[str, _Count], Meta(examples=["{node-1: 5}"])]
NamesByNode = Annotated[dict[str, list[str]], Meta(examples=["{node-1: [some-name]}"])]
Subnets = Annotated[list[str], Meta(examples=["[pods]"])]
AnswerBySubnet = Annotated[dict[str, bool], Meta(examples=["{pods: yes}"])]
BatchBySubnet = Annotated[dict[str, _Positive], Meta(examples=["{pods: 8}"])]
RangeBySubnet = Annotated[dict[str, str], Meta(examples=["{pods: 10.0.1.0/24}"])]
Duration = Annotated[Seconds, Meta(examples=["30s"])]

_BY_HAND = "kubectl-edit"

T = TypeVar("T")


# Pods


async def add_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """So many new pods are scheduled to each of these nodes, all at once."""
    for node, count in _by_node(stage, pods):
        await stage.add_pods(node, count)


async def add_host_network_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """Pods that use their node's own address are scheduled."""
    for node, count in _by_node(stage, pods):
        await stage.world.workload.add_pods(node, count, host_network=True)


async def remove_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """So many pods of these nodes are deleted, the newest first."""
    for node, count in _by_node(stage, pods):
        if count > len(stage.pods[node]):
            raise InvalidInput(f"{node} has {len(stage.pods[node])} pods, and {count} are to go: give fewer")
        await stage.remove_pods(node, count)


async def complete_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """The work of so many pods is done, as a Job's: they have ended, and stay to be looked at."""
    for node, count in _by_node(stage, pods):
        for name in stage.pods[node][-count:]:
            await stage.world.workload.complete_pod(name, PodPhase.SUCCEEDED)
        del stage.pods[node][-count:]


async def recreate_pods(stage: ScenarioStage, pods: PodsByNode) -> None:
    """So many pods are deleted by force and made anew under their names at once, as a StatefulSet's."""
    for node, count in _by_node(stage, pods):
        for name in stage.pods[node][-count:]:
            stage.cluster.server.delete(Pod, name, NAMESPACE, grace_seconds=0)
            await stage.cluster.create(new_pod(name, node), manager=MANAGER)


# Nodes


async def add_nodes(stage: ScenarioStage, nodes: Nodes) -> None:
    """New machines join."""
    for node in nodes:
        await stage.add_node(node)


async def remove_nodes(stage: ScenarioStage, nodes: Nodes) -> None:
    """These machines are switched off for good and their Nodes deleted, with their pods."""
    for node in _named(stage, nodes):
        await stage.remove_node(node)


async def register_nodes_anew(stage: ScenarioStage, nodes: Nodes) -> None:
    """Somebody deletes these Nodes while their machines run on, and they register again, with another uid."""
    for node in _named(stage, nodes):
        machine = stage.machine(node)
        await stage.world.cluster.delete(Node, node)
        machine.uid = ""
        await stage.world.workload.clear_node(node)
        stage.pods[node].clear()
        machine.uid = (await stage.world.create_node(node)).metadata.uid


async def cut_power(stage: ScenarioStage, nodes: Nodes) -> None:
    """These machines lose power and start again: their sandboxes are gone, and nobody called DEL."""
    for node in _named(stage, nodes):
        await stage.world.crash_machine(node)


# Programs


async def kill_agents(stage: ScenarioStage, nodes: Nodes) -> None:
    """The agents of these nodes die, as by kill -9."""
    for node in _named(stage, nodes):
        await stage.world.kill_agent(node)


async def start_agents(stage: ScenarioStage, nodes: Nodes) -> None:
    """The agents of these nodes start, on what is on their disks."""
    for node in _named(stage, nodes):
        await stage.world.start_agent(node)


async def lose_journals(stage: ScenarioStage, nodes: Nodes) -> None:
    """The disks of these nodes are replaced by empty ones, while no agent runs on them."""
    for node in _named(stage, nodes):
        if stage.world.machines[node].agent is not None:
            raise InvalidInput(f"the agent of {node} runs: kill it before its journal is lost")
        stage.world.lose_disk(node)


async def stop_controller(stage: ScenarioStage) -> None:
    """The request controller ends: nobody turns requests into grants any more."""
    await stage.world.programs.stop(CONTROLLER)


async def start_controller(stage: ScenarioStage) -> None:
    """The request controller starts."""
    stage.world.start_controller(CONTROLLER)


# What is held back


async def hold_back_deletes(stage: ScenarioStage, nodes: Nodes) -> None:
    """The runtimes of these nodes take a DEL for done that does not arrive."""
    for node in _named(stage, nodes):
        stage.deletes.hold_back(node)


async def deliver_deletes(stage: ScenarioStage, nodes: Nodes) -> None:
    """The DELs that were held back on these nodes arrive, late."""
    for node in _named(stage, nodes):
        await stage.deletes.deliver(node)


async def withhold_pods(stage: ScenarioStage, nodes: Nodes) -> None:
    """The API server does not answer when an agent of these nodes lists its pods."""
    for node in _named(stage, nodes):
        stage.pods_shown[stage.world.machines[node].agent_program].clear()


async def show_pods(stage: ScenarioStage, nodes: Nodes) -> None:
    """The API server answers the agents of these nodes again."""
    for node in _named(stage, nodes):
        stage.pods_shown[stage.world.machines[node].agent_program].set()


# What people do


async def edit_requests(stage: ScenarioStage, requests: CountByNode) -> None:
    """Somebody changes the `requestedIPCount` of these nodes by hand."""
    for node, count in _by_node(stage, requests):
        config = await _config(stage, node)
        spec = structs.replace(config.spec, requested_ip_count=count)
        await stage.world.cluster.replace(structs.replace(config, spec=spec), manager=_BY_HAND)


async def name_for_release(stage: ScenarioStage, names: NamesByNode) -> None:
    """Somebody adds names to the `ipsNotInUse` of these nodes by hand."""
    for node, added in _by_node(stage, names):
        config = await _config(stage, node)
        spec = structs.replace(config.spec, ips_not_in_use=[*config.spec.ips_not_in_use, *added])
        await stage.world.cluster.replace(structs.replace(config, spec=spec), manager=_BY_HAND)


async def put_status_aside(stage: ScenarioStage, nodes: Nodes) -> None:
    """Somebody keeps a copy of what the NodeNetworkConfigs of these nodes say now."""
    for node in _named(stage, nodes):
        stage.kept[node] = (await _config(stage, node)).status


async def put_status_back(stage: ScenarioStage, nodes: Nodes) -> None:
    """The copy takes the place of what they say by now, as after a restore from a backup."""
    for node in _named(stage, nodes):
        if node not in stage.kept:
            raise InvalidInput(f"the status of {node} was not put aside: do that at an earlier point")
        config = structs.replace(await _config(stage, node), status=stage.kept[node])
        await stage.world.cluster.replace_status(config, manager=_BY_HAND)


async def say_exhausted(stage: ScenarioStage, subnets: AnswerBySubnet) -> None:
    """Somebody else says in a subnet's ClusterSubnetState whether it is exhausted."""
    cluster = stage.world.cluster
    for subnet, exhausted in subnets.items():
        try:
            state = await cluster.get(ClusterSubnetState, subnet, SYSTEM_NAMESPACE)
        except NotFound:
            made = ClusterSubnetState(metadata=ObjectMeta(name=subnet, namespace=SYSTEM_NAMESPACE))
            state = await cluster.create(made, manager=_BY_HAND)
        now = to_time(stage.world.clock.wall())
        status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp=now)
        await cluster.replace_status(structs.replace(state, status=status), manager=_BY_HAND)


async def delete_subnet_states(stage: ScenarioStage, subnets: Subnets) -> None:
    """Somebody deletes the ClusterSubnetState of these subnets."""
    for subnet in subnets:
        await stage.world.cluster.delete(ClusterSubnetState, subnet, SYSTEM_NAMESPACE)


async def override_batch(stage: ScenarioStage, batches: BatchBySubnet) -> None:
    """Somebody gives these subnets another batch, in their ClusterSubnet's spec."""
    for subnet, batch in batches.items():
        found = await stage.world.cluster.get(ClusterSubnet, subnet, SYSTEM_NAMESPACE)
        spec = ClusterSubnetSpec(scaler=ScalerOverride(batch=batch))
        await stage.world.cluster.replace(structs.replace(found, spec=spec), manager=_BY_HAND)


async def grow_subnets(stage: ScenarioStage, ranges: RangeBySubnet) -> None:
    """These subnets are given another range, in addition to what they have."""
    for subnet, cidr in ranges.items():
        found = await stage.world.allocator.get_subnet(stage.world.options.network, subnet)
        await stage.world.allocator.grow_subnet(found.network, subnet, (*found.cidrs, cidr))


# Time


async def wait(stage: ScenarioStage, seconds: Duration) -> None:
    """So much time passes, and the programs do what they do."""
    await stage.world.pass_time(seconds)


async def count_from_here(stage: ScenarioStage) -> None:
    """What is counted (requests, writes, failed ADDs) is counted from this point on."""
    stage.counting_from = stage.now


def _named(stage: ScenarioStage, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from stage.nodes(name)


def _by_node(stage: ScenarioStage, values: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    return ((node, value) for name, value in values.items() for node in stage.nodes(name))


async def _config(stage: ScenarioStage, node: str) -> NodeNetworkConfig:
    return await stage.world.cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)


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
        override_batch,
        grow_subnets,
        wait,
        count_from_here,
    )
}
