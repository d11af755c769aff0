"""Nodes, pods and one subnet, from the first node to the last address; the test plays every agent by hand."""

from msgspec import Struct

from controller.world import World, a_world, moment
from podtide.core.exact import exact
from podtide.core.subnet.scaler import NodeScaler, SubnetScaler, effective_scaler
from podtide.core.subnet.scaling import decide_request, to_release


class HandDrivenAgent(Struct):
    """A node with some pods: states its request by the formula (design D1) whenever it is told to look."""

    world: World
    name: str
    pods: int = 0
    writes: int = 0

    async def look(self) -> None:
        config = await self.world.find_config(self.name)
        if config is None or not config.status.network_containers:
            return
        shown = (await self.world.cluster_subnet()).status.scaler
        assert shown is not None
        scaler = effective_scaler(NodeScaler(), SubnetScaler(shown.batch, exact(shown.buffer)))
        request = decide_request(self.pods, scaler, primaries=1).request
        held = [each.name for each in config.status.network_containers[0].ip_assignments]
        named = [name for name in config.spec.ips_not_in_use if name in held]
        spare = [name for name in held[self.pods :] if name not in named]
        named += spare[: to_release(len(held), len(named), request)]
        waiting = max(0, self.pods - len(held))
        if (request, set(named)) != (config.spec.requested_ip_count, set(config.spec.ips_not_in_use)):
            self.writes += 1
            await self.world.ask(self.name, request, release=named, waiting=waiting)

    async def served(self) -> int:
        """Pods that have an address."""
        return min(self.pods, len(await self.world.names(self.name)))


async def settle(agents: list[HandDrivenAgent], seconds: int) -> None:
    """Let agents and controller go on for a while."""
    for _ in range(seconds):
        for agent in agents:
            await agent.look()
        await moment(1.0)


async def test_every_last_address_of_a_subnet_can_be_a_pods_and_requests_come_to_rest_there() -> None:
    async with a_world("10.1.0.0/26") as world:  # 61 addresses
        replica = world.replica()
        replica.start()
        agents = [HandDrivenAgent(world, f"n{number}") for number in range(5)]
        for agent in agents:
            await world.add_node(agent.name)
        await settle(agents, 3)
        for step in range(1, 57):  # 61 less 5 primaries, arriving unevenly
            agents[step * step % 5].pods += 1
            await settle(agents, 1)
        await settle(agents, 60)
        assert [await agent.served() for agent in agents] == [agent.pods for agent in agents]
        assert (await world.subnet()).reserved == len(await world.everybody()) == 61

        await settle(agents, 120)  # by then the condition says that it is full
        writes = [agent.writes for agent in agents]
        replica.cluster.writes.clear()
        await settle(agents, 600)
        assert [agent.writes for agent in agents] == writes
        assert replica.cluster.writes == []

        agents[0].pods += 1  # one too many: it waits, and the condition says so
        await settle(agents, 10)
        assert await agents[0].served() == agents[0].pods - 1
        assert (await world.granted("n0")).reason == "SubnetShort"
        agents[4].pods -= 1
        await settle(agents, 3)
        assert await agents[0].served() == agents[0].pods
        assert (await world.granted("n0")).reason == "Complete"


async def test_when_the_load_goes_the_batch_is_back_to_normal() -> None:
    async with a_world("10.1.0.0/26") as world:
        world.replica().start()
        agents = [HandDrivenAgent(world, f"n{number}", pods=12) for number in range(4)]
        for agent in agents:
            await world.add_node(agent.name)
        await settle(agents, 60)
        status = (await world.cluster_subnet()).status
        assert status.exhausted or status.scaler is None or status.scaler.batch < 16
        assert [await agent.served() for agent in agents] == [12] * 4
        for agent in agents:
            agent.pods = 0
        await settle(agents, 400)
        status = (await world.cluster_subnet()).status
        assert not status.exhausted
        assert status.scaler is not None
        assert status.scaler.batch == 8  # at 16, four nodes that state nothing could take 68 of 61
        assert (await world.subnet()).owed == 0


async def test_a_node_joins_a_subnet_with_three_addresses_left_and_serves_its_pods() -> None:
    async with a_world("10.1.0.0/26") as world:
        world.replica().start()
        await world.reserve(58)
        await moment(6)
        agent = HandDrivenAgent(world, "n1", pods=1)
        await world.add_node("n1")
        await settle([agent], 5)
        config = await world.config("n1")
        assert config.spec.requested_ip_count == 2  # its first request already obeys the exhaustion
        assert await agent.served() == 1
        assert (await world.subnet()).reserved == 61
