"""Exactly as many pods as there are addresses: every last address becomes a pod's, and then nothing moves."""

from random import Random

import pytest

from podtide.agent.api.metrics import AgentMetrics
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import ConditionStatus
from podtide.resources.node_network_config import ConfigStatus, NodeNetworkConfig
from podtide.simulation.world.world import World
from scenarios.looking import addresses_of_pods, agent_of, cluster_subnet, condition, config_of, free, subnet
from scenarios.stage import Stage

UNEVEN = {
    "10.0.0.0/24": (60, 50, 40, 30, 20, 15, 12, 8, 5, 3),
    "10.0.0.0/22": (250, 200, 150, 120, 100, 80, 50, 31, 20, 10),
}
"""Pods for each of ten nodes. With their primaries, and with network, last address and gateway, that is all there is."""


async def fill(world: World, pods: tuple[int, ...], within: float) -> list[str]:
    """Nodes join, then pods come to them in handfuls, here and there, for about so long."""
    chance, left, names = Random(1), dict(enumerate(pods)), []
    for number in left:
        await world.add_node(f"node-{number}")
    while any(left.values()):
        number = chance.choice([number for number, count in left.items() if count])
        handful = min(left[number], chance.randint(1, 12))
        left[number] -= handful
        names += await world.workload.add_pods(f"node-{number}", handful)
        await world.pass_time(chance.uniform(0, 2 * within * handful / sum(pods)))
    return names


async def test_in_a_24_every_last_address_is_a_pods_and_then_nothing_is_written(stage: Stage) -> None:
    await fill_and_watch(stage, "10.0.0.0/24")


@pytest.mark.slow
async def test_in_a_22_every_last_address_is_a_pods_and_then_nothing_is_written(
    embedded_stage: Stage,
) -> None:
    # A thousand pods are much for a real API server on a small machine, and the /24 has shown it the same.
    await fill_and_watch(embedded_stage, "10.0.0.0/22")


async def fill_and_watch(stage: Stage, cidr: str) -> None:
    async with stage.world(cidr) as world:
        names = await fill(world, UNEVEN[cidr], within=stage.seconds(30))
        await fits_exactly(world, len(names))
        await stage.falls_silent(
            world, NodeNetworkConfig, ClusterSubnet, ClusterSubnetState, settled_within=60
        )
        assert world.running_pods() == len(names)


async def fits_exactly(world: World, pods: int) -> None:
    """Wait until as many pods have addresses, and see that those are all there are."""
    await world.until(lambda: world.running_pods() == pods, within=600)
    there = await subnet(world)
    assert pods + len(world.machines) == there.capacity == there.reserved
    given = addresses_of_pods(world)
    assert len(set(given)) == len(given) == pods
    assert [free(world, node) for node in world.machines] == [0] * len(world.machines)


async def test_one_pod_too_many_waits_and_says_why_until_another_goes(stage: Stage) -> None:
    async with stage.world("10.0.0.0/27") as world:
        names = await fill(world, (12, 8, 6), within=stage.seconds(10))
        await fits_exactly(world, len(names))

        (waiting,) = await world.workload.add_pods("node-2", 1)
        agent = agent_of(world, "node-2")
        await world.until(lambda: is_short_of_one(world, "node-2"), within=stage.within(30))
        await world.pass_time(stage.seconds(120))

        # It waits, and everybody who is asked can say why.
        assert world.running_pods() == len(names)
        config = await config_of(world, "node-2")
        assert config.status.status is ConfigStatus.UPDATING
        granted = condition(config, "Granted")
        assert (granted.status, granted.reason) == (ConditionStatus.FALSE, "SubnetShort")
        assert "1 owed" in granted.message
        assert (await cluster_subnet(world)).status.starved
        state = agent.addresses.state()
        assert (state.demand, state.waiting_pods, state.starved) == (7, 1, True)
        assert b"podtide_agent_waiting_pods 1.0" in AgentMetrics(agent.addresses).render()
        # The node is fine: it is the subnet that is full.
        await world.machines["node-2"].runtime.status()

        await world.workload.remove_pod(names[0])
        await world.until(lambda: shows_an_address(world, waiting), within=120)
        await world.until(lambda: has_all(world, "node-2"), within=stage.within(30))
        assert agent.addresses.state().waiting_pods == 0
        assert world.running_pods() == len(names)


async def is_short_of_one(world: World, node: str) -> bool:
    """Whether the news that a pod has no address has reached everybody."""
    message = condition(await config_of(world, node), "Granted").message
    state = agent_of(world, node).addresses.state()
    return "1 owed" in message and state.starved and state.waiting_pods == 1


async def shows_an_address(world: World, pod: str) -> bool:
    return bool((await world.workload.get_pod(pod)).status.pod_ip)


async def has_all(world: World, node: str) -> bool:
    return condition(await config_of(world, node), "Granted").status is ConditionStatus.TRUE
