"""Pods that a scheduler places by what Nodes publish: all run that can have an address, and few hang without one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from msgspec import structs

from podtide.cluster.port import Patch
from podtide.core.subnet.placement import LOWER_EVERY_SECONDS
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import IPV4_RESOURCE, NO_ADDRESSES_TAINT, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.resources.quantity import read_count
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.run.placement_tally import pods_without_address
from podtide.simulation.run.settled_placement import unsettled_placement
from podtide.simulation.scheduling.address_policy import PolicyReach
from podtide.simulation.scheduling.pod_scheduler import NodeChoice
from podtide.simulation.trace import ClusterWrite
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, open_embedded_world
from podtide.simulation.world.scheduled_pods import start_scheduler
from podtide.simulation.world.world import World

NODES = 3
LARGEST_BATCH = 16
AN_HOUR = 3600.0
INSUFFICIENT = f"0/{NODES} nodes are available: {NODES} Insufficient {IPV4_RESOURCE}."


@asynccontextmanager
async def scheduled_world(
    cidr: str = "10.0.0.0/27",
    *,
    reach: PolicyReach = PolicyReach.ALL,
    choice: NodeChoice = NodeChoice.SPREAD,
    placement: bool = True,
    taint: bool = False,
    nodes: int = NODES,
) -> AsyncIterator[World]:
    clock = LoopClock()
    log = make_logger(StringIO(), clock)
    async with open_embedded_world(cidr, clock=clock, seed=1, log=log) as world:
        world.options = structs.replace(world.options, placement=placement, placement_taint=taint)
        start_scheduler(world, reach, choice)
        world.start_controller()
        for number in range(nodes):
            await world.add_node(f"node-{number}")
        await world.pass_time(30)
        yield world


async def pods_that_fit(world: World) -> int:
    return (await world.allocator.get_subnet(NETWORK, SUBNET)).capacity - len(world.machines)


async def unbound(world: World) -> list[Pod]:
    return [pod for pod in (await world.cluster.list(Pod)).items if not pod.spec.node_name]


async def published(world: World) -> dict[str, int | None]:
    return {
        node.metadata.name: read_count(node.status.allocatable.get(IPV4_RESOURCE, ""))
        for node in (await world.cluster.list(Node)).items
    }


def writes(world: World) -> list[ClusterWrite]:
    """What programs wrote since the mark, and was not a Lease."""
    return [
        entry
        for entry in world.trace.since_mark()
        if isinstance(entry, ClusterWrite) and entry.kind != "Lease"
    ]


@pytest.mark.parametrize("choice", list(NodeChoice))
async def test_exact_fit_by_way_of_the_scheduler_every_pod_runs(choice: NodeChoice) -> None:
    async with scheduled_world(choice=choice) as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(60)
        assert await unbound(world) == []
        assert await unsettled_placement([world]) == []
        await world.auditor.check()


async def test_in_a_full_subnet_pods_stay_pending_but_for_one_per_node_and_nothing_is_written() -> None:
    async with scheduled_world() as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(60)
        await world.workload.add_unbound_pods(20)
        await world.pass_time(60)
        assert len(await pods_without_address(world)) == 0  # the subnet was closed before they came
        assert len(await unbound(world)) == 20
        assert world.scheduler is not None
        assert set(world.scheduler.reasons.values()) == {INSUFFICIENT}
        world.trace.mark()
        await world.pass_time(600)
        assert writes(world) == []


async def test_in_a_burst_of_more_pods_than_fit_no_more_than_one_per_node_hangs() -> None:
    async with scheduled_world() as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit + 20)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(60)
        assert len(await pods_without_address(world)) <= NODES
        assert len(await unbound(world)) >= 20 - NODES


@pytest.mark.parametrize("choice", list(NodeChoice))
@pytest.mark.parametrize(("at_once", "every_seconds"), [(280, 1), (20, 3)])
async def test_at_the_largest_batch_no_more_than_one_per_node_hangs_of_a_burst_that_fills_the_subnet(
    choice: NodeChoice, at_once: int, every_seconds: float
) -> None:
    """There a node's pods are known to a batch, and nodes that are to be lowered publish too much for half a minute."""
    nodes = 4
    async with scheduled_world("10.0.0.0/24", nodes=nodes, choice=choice) as world:
        fit, most = await pods_that_fit(world), 0
        scaler = (await world.cluster.get(ClusterSubnet, SUBNET, SYSTEM_NAMESPACE)).status.scaler
        assert scaler is not None
        assert scaler.batch == scaler.top == LARGEST_BATCH
        for _ in range(280 // at_once):
            await world.workload.add_unbound_pods(at_once)
            for _ in range(round(every_seconds)):
                await world.pass_time(1)
                most = max(most, sum(number or 0 for number in (await published(world)).values()))
        await world.until(lambda: world.running_pods() == fit, within=30)
        await world.pass_time(60)
        assert most <= fit + nodes
        assert len(await pods_without_address(world)) <= nodes
        assert await unsettled_placement([world]) == []


async def test_pods_within_a_batch_use_up_the_room_of_nodes_and_others_follow_within_seconds() -> None:
    """Their nodes ask for no more, and state their demand only once it has rested for a minute."""
    async with scheduled_world("10.0.0.0/28", nodes=2) as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit + 9)
        await world.until(lambda: world.running_pods() == fit, within=15)
        await world.pass_time(60)
        assert len(await pods_without_address(world)) <= 2


async def test_without_placement_the_same_pods_hang_on_nodes() -> None:
    async with scheduled_world(placement=False, reach=PolicyReach.NONE) as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit + 20)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(60)
        assert len(await pods_without_address(world)) == 20
        assert await unbound(world) == []


async def test_pods_run_within_seconds_of_addresses_coming_free() -> None:
    async with scheduled_world() as world:
        fit = await pods_that_fit(world)
        names = await world.workload.add_unbound_pods(fit)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(60)
        await world.workload.add_unbound_pods(20)
        await world.pass_time(60)
        for name in names[:10]:
            await world.workload.remove_pod(name)
        await world.until(lambda: world.running_pods() < fit, within=5)
        await world.until(lambda: world.running_pods() == fit, within=10)
        assert len(await unbound(world)) <= 10


async def test_a_pod_that_fits_one_node_alone_gets_the_last_address_there() -> None:
    async with scheduled_world(choice=NodeChoice.PACK) as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit - 1)
        await world.until(lambda: world.running_pods() == fit - 1, within=90)
        await world.pass_time(60)
        await world.workload.add_unbound_pods(1, only_on="node-2")
        await world.until(lambda: world.running_pods() == fit, within=90)


async def test_with_the_taint_alone_no_pod_is_bound_where_none_can_have_an_address() -> None:
    async with scheduled_world(reach=PolicyReach.NONE, taint=True) as world:
        fit = await pods_that_fit(world)
        names = await world.workload.add_unbound_pods(fit)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(2 * LOWER_EVERY_SECONDS)
        nodes = (await world.cluster.list(Node)).items
        assert [[taint.key for taint in node.spec.taints] for node in nodes] == [[NO_ADDRESSES_TAINT]] * NODES
        await world.workload.add_unbound_pods(20)
        await world.pass_time(60)
        assert await pods_without_address(world) == []
        await world.workload.remove_pod(names[0])
        await world.until(lambda: world.running_pods() < fit, within=5)
        await world.until(lambda: world.running_pods() == fit, within=10)


async def test_while_the_controller_is_away_for_an_hour_pods_are_placed_by_what_was_published() -> None:
    async with scheduled_world() as world:
        before = sum(number or 0 for number in (await published(world)).values())
        fit = await pods_that_fit(world)
        await world.programs.kill("controller")
        await world.workload.add_unbound_pods(fit)
        await world.pass_time(AN_HOUR)
        assert len(await unbound(world)) == fit - before
        world.start_controller("controller-2")
        await world.until(lambda: world.running_pods() == fit, within=90)
        assert await unbound(world) == []


async def test_pods_from_while_the_policy_was_removed_are_counted_as_users() -> None:
    async with scheduled_world() as world:
        policy, fit = world.workload.policy, await pods_that_fit(world)
        assert policy is not None
        policy.is_removed = True
        await world.workload.add_unbound_pods(fit // 2)
        await world.until(lambda: world.running_pods() == fit // 2, within=90)
        await world.pass_time(2 * LOWER_EVERY_SECONDS)
        policy.is_removed = False
        await world.workload.add_unbound_pods(fit)
        await world.until(lambda: world.running_pods() == fit, within=600)
        await world.pass_time(600)
        assert len(await pods_without_address(world)) <= NODES
        assert await unsettled_placement([world]) == []


async def test_a_kubelet_that_starts_without_its_records_has_its_numbers_back_at_once() -> None:
    async with scheduled_world() as world:
        await world.workload.add_unbound_pods(10)
        await world.until(lambda: world.running_pods() == 10, within=60)
        await world.pass_time(2 * LOWER_EVERY_SECONDS)
        before = await published(world)
        zero = {IPV4_RESOURCE: "0"}
        changes = {"status": {"capacity": zero, "allocatable": zero}}
        await world.cluster.patch(Patch(Node, "node-1", changes=changes, status=True), manager="kubelet")
        await world.pass_time(1)
        assert await published(world) == before


async def test_a_kubelet_that_restarts_refuses_no_pod_that_runs() -> None:
    async with scheduled_world() as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit + 20)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(120)
        for machine in world.machines.values():
            machine.kubelet.admit_again()
        await world.pass_time(10)
        assert world.running_pods() == fit


async def test_a_pod_bound_beyond_what_its_node_publishes_is_refused_and_its_owner_makes_another() -> None:
    async with scheduled_world() as world:
        [name] = await world.workload.add_unbound_pods(1)
        await world.until(lambda: world.running_pods() == 1, within=60)
        old = await world.workload.get_pod(name)
        zero = {IPV4_RESOURCE: "0"}
        changes = {"status": {"capacity": zero, "allocatable": zero}}
        await world.programs.kill("controller")
        await world.cluster.patch(
            Patch(Node, old.spec.node_name, changes=changes, status=True), manager="kubelet"
        )
        await world.pass_time(1)
        world.machines[old.spec.node_name].kubelet.admit_again()
        await world.until(lambda: world.running_pods() == 0, within=10)
        await world.until(lambda: world.running_pods() == 1, within=10)
        new = await world.workload.get_pod(name)
        assert new.metadata.uid != old.metadata.uid
        assert new.spec.node_name != old.spec.node_name


async def test_a_node_that_comes_into_a_full_subnet_takes_no_pod_before_there_is_an_address() -> None:
    async with scheduled_world() as world:
        fit = await pods_that_fit(world)
        await world.workload.add_unbound_pods(fit + 10)
        await world.until(lambda: world.running_pods() == fit, within=90)
        await world.pass_time(60)
        hanging = len(await pods_without_address(world))
        await world.add_node("node-new")
        await world.pass_time(600)
        assert len(await pods_without_address(world)) <= hanging + 1
        await world.remove_node("node-new")
        await world.remove_node("node-0")
        await world.pass_time(1200)
        assert await unsettled_placement([world]) == []
