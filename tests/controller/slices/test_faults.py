"""Whatever goes wrong between any two writes: no slice is two nodes', and in the end every node has one."""

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_network

import pytest

from cluster.faulty_cluster import Script
from controller.slices.network_world import QUARANTINE, NetworkWorld, a_network_world, conf, ipam, moment
from podtide.cluster.port import Conflict, Unavailable
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

WRITES = ("create", "replace", "delete")


async def check(world: NetworkWorld) -> None:
    """No two pools of the network overlap, whoever they are of, and each has its entry in the list."""
    pools = (await world.cluster.list(IPPool)).items
    ranges = [ip_network(pool.spec.range) for pool in pools]
    assert not any(one.overlaps(other) for place, one in enumerate(ranges) for other in ranges[place + 1 :])
    listed = {(node, slice_) for node, slice_ in await world.entries("blue") if node}
    assert {(pool.metadata.annotations[NODE_ANNOTATION], pool.spec.range) for pool in pools} <= listed


async def live_through_it(world: NetworkWorld, restart: Callable[[], Awaitable[None]]) -> None:
    """Nodes come, go, come back and are replaced in a network that has no slice to spare."""
    await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/23")))
    await restart()
    await world.add_nodes("n1", "n2")
    await moment(60)
    await restart()
    await world.lease_of_pool("blue-n1", "n1")
    await world.reserve("blue-10.0.0.7")
    await world.remove_node("n1")
    await world.add_nodes("n3")
    await moment(60)
    await restart()
    await moment(QUARANTINE)
    await restart()
    await moment(120)


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("is_lost", [True, False], ids=["answer lost", "refused"])
async def test_one_call_that_fails_is_made_good(call: str, number: int, *, is_lost: bool) -> None:
    async with a_network_world() as world:
        faults = Script()
        steps = faults.lost_answers if is_lost else faults.steps
        steps[call] = [*[None] * number, Unavailable("a bad network")]

        async def nothing() -> None:
            if not world.replicas:
                await world.start(faults)
            await check_if_listed(world)

        await live_through_it(world, nothing)
        await check(world)
        assert await world.assigned("blue") == {"n3": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        assert await world.names(IPPool) == ["blue-n2", "blue-n3"]
        assert await world.names(Lease) == await world.names(OverlappingRangeIPReservation) == []


async def check_if_listed(world: NetworkWorld) -> None:
    if await world.has_list("blue"):
        await check(world)


@pytest.mark.parametrize("number", range(16))
async def test_a_controller_that_is_killed_between_any_two_writes_is_succeeded(number: int) -> None:
    async with a_network_world() as world:
        killed = asyncio.Event()

        class KilledAt(Script):
            """The process ends at a write, and nobody notices for a while."""

            def __init__(self) -> None:
                super().__init__()
                self.left = number

            async def before(self, call: str) -> None:
                if call in WRITES:
                    self.left -= 1
                    if self.left < 0:
                        killed.set()
                        await asyncio.Event().wait()

        async def restart() -> None:
            if not world.replicas:
                await world.start(KilledAt())
            elif killed.is_set() and len(world.replicas) == 1:
                await world.start()
            await check_if_listed(world)

        await live_through_it(world, restart)
        if len(world.replicas) == 1:
            await world.start()
            await moment(QUARANTINE + 60)
        await check(world)
        assert await world.assigned("blue") == {"n3": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        assert await world.names(IPPool) == ["blue-n2", "blue-n3"]
        assert await world.names(Lease) == await world.names(OverlappingRangeIPReservation) == []


async def test_a_server_that_is_away_is_not_asked_for_every_node() -> None:
    names = [f"n{number:03}" for number in range(200)]
    async with a_network_world(*names) as world:
        await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/8")))
        faults = Script(create=[None, *[Unavailable("away")] * 40])
        replica = await world.start(faults)
        assert len(replica.cluster.about("IPPool")) < 40
        await moment(120)
        assert await world.names(IPPool) == [f"blue-{name}" for name in names]


async def test_conflicts_are_looked_at_again() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start(Script(create=[Conflict("somebody was quicker")] * 3))
        assert await world.names(IPPool) == ["blue-n1", "blue-n2"]


async def test_a_controller_whose_term_is_over_writes_nothing() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))

        def over() -> None:
            raise Conflict("the term is over")

        replica = await world.start(check=over)
        assert replica.cluster.writes == []
