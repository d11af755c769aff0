"""Two families: every pod has one address of each."""

from ipaddress import ip_address

from podtide.simulation.embedded_world import SUBNET, SUBNET_V6
from scenarios.looking import addresses_of_pods, config_of, subnet
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
        pod = await world.workload.get_pod("pod-0")
        assert len(pod.status.pod_ips) == 2

        # What is asked for counts for each of a node's network containers.
        config = await config_of(world, "node-2")
        assert [len(container.ip_assignments) for container in config.status.network_containers] == [
            config.spec.requested_ip_count
        ] * 2


async def test_the_family_that_is_short_decides_who_gets_an_address(stage: Stage) -> None:
    async with stage.world("10.0.0.0/28", "fd00::/112") as world:
        await world.add_node("node-0")
        names = await world.workload.add_pods("node-0", 13)
        await world.until(lambda: world.running_pods() == 12, within=60)
        await world.pass_time(120)
        assert world.running_pods() == 12
        assert (await subnet(world, SUBNET)).reserved == 13

        running = [name for name in names if (await world.workload.get_pod(name)).status.pod_ip]
        await world.workload.remove_pod(running[0])
        await world.until(lambda: len(world.trace.plugin_calls("ADD", ok=True)) == 13, within=120)
        assert (await subnet(world, SUBNET_V6)).owed == 0
