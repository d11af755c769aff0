"""Two families: every pod has one address of each."""

from ipaddress import ip_address

from podtide.simulation.nodes.pods import NAMESPACE
from podtide.simulation.world.embedded_world import SUBNET, SUBNET_V6
from podtide.simulation.world.world import World
from scenarios.looking import addresses_of_pods, config_of, requested, subnet
from scenarios.stage import Stage


async def test_every_pod_has_one_address_of_each_family(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24", "fd00::/112") as world:
        for number in range(3):
            await world.add_node(f"node-{number}")
            await world.workload.add_pods(f"node-{number}", 10 * (number + 1))
        await world.until(lambda: world.running_pods() == 60, within=60)
        for machine in world.machines.values():
            for sandbox in machine.kubelet.sandboxes():
                assert [ip_address(ip).version for ip in sandbox.addresses] == [4, 6]
        assert len(set(addresses_of_pods(world))) == 120
        await world.until(lambda: shows_two_addresses(world, "pod-0"), within=60)

        # What is asked for counts for each of a node's network containers: 16·⌈½ + 30/16⌉ - 1.
        await world.until(lambda: has_in_each_container(world, "node-2", 47), within=60)
        assert await requested(world, "node-2") == 47


async def shows_two_addresses(world: World, pod: str) -> bool:
    return len((await world.workload.get_pod(pod)).status.pod_ips) == 2


async def has_in_each_container(world: World, node: str, addresses: int) -> bool:
    containers = (await config_of(world, node)).status.network_containers
    return [len(container.ip_assignments) for container in containers] == [addresses] * 2


async def test_the_family_that_is_short_decides_who_gets_an_address(stage: Stage) -> None:
    async with stage.world("10.0.0.0/28", "fd00::/112") as world:
        await world.add_node("node-0")
        await world.workload.add_pods("node-0", 13)
        await world.until(lambda: world.running_pods() == 12, within=60)
        await world.pass_time(stage.seconds(120))
        assert world.running_pods() == 12
        assert (await subnet(world, SUBNET)).reserved == 13

        served = world.trace.plugin_calls("ADD", ok=True)
        assert len(served) == 12
        await world.workload.remove_pod(served[0].pod.removeprefix(f"{NAMESPACE}/"))
        await world.until(lambda: len(world.trace.plugin_calls("ADD", ok=True)) == 13, within=120)
        await world.until(lambda: nothing_is_owed(world, SUBNET_V6), within=60)


async def nothing_is_owed(world: World, name: str) -> bool:
    return (await subnet(world, name)).owed == 0
