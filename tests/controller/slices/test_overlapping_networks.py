"""Unnamed networks whose ranges overlap share addresses: no slice of one overlaps a slice of another."""

import asyncio
from ipaddress import ip_network
from itertools import combinations
from random import Random

import pytest

from cluster.faulty_cluster import Script, Step
from controller.slices.network_world import NetworkWorld, Replica, a_network_world, conf, ipam, moment
from podtide.controller.slices.slice_pools import PATIENCE_SECONDS
from podtide.networks.confirmation import is_confirmed, is_inert
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_slice_pool import NodeSlicePool

WIDE, NARROW = "10.0.0.0-16", "10.0.0.0-17"
RANGES = {"wide": "10.0.0.0/16", "narrow": "10.0.0.0/17"}


async def define_both(world: NetworkWorld) -> None:
    """At one moment."""
    for name, range_ in RANGES.items():
        await world.define(name, conf(ipam(range=range_), name=name))


async def usable(world: NetworkWorld) -> dict[str, str]:
    """The pools that agents give addresses of, and their slices."""
    pools = [await world.pool(name) for name in await world.names(IPPool)]
    return {pool.metadata.name: pool.spec.range for pool in pools if not is_inert(pool)}


def overlapping(slices: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (one, other)
        for one, other in combinations(slices, 2)
        if ip_network(slices[one]).overlaps(ip_network(slices[other]))
    ]


async def test_two_that_are_defined_at_one_moment_give_no_node_slices_that_overlap() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.start()
        await define_both(world)
        await moment(60)
        found = await usable(world)
        assert len(found) == 4
        assert overlapping(found) == []
        assert len({*(await world.assigned(WIDE)).values(), *(await world.assigned(NARROW)).values()}) == 4


async def test_of_two_controllers_that_each_know_of_one_network_the_second_to_write_gives_way() -> None:
    async with a_network_world("n1") as world:
        first, second = Replica(world, None), Replica(world, None)
        world.replicas += [first, second]
        first.cluster.hidden.add("narrow")
        second.cluster.hidden.add("wide")
        await define_both(world)
        await asyncio.gather(first.start(), second.start())
        await moment(60)
        found = await usable(world)
        assert sorted(found) == ["10.0.0.0-16-n1", "10.0.0.0-17-n1"]
        assert overlapping(found) == []


async def test_a_list_that_an_earlier_term_wrote_late_gives_way_to_slices_in_use() -> None:
    async with a_network_world("n1") as world:
        await world.define("wide", conf(ipam(range=RANGES["wide"]), name="wide"))
        replica = await world.start()
        await world.hold("10.0.0.0-16-n1", 5)
        await replica.stop()
        await world.list_slices(NARROW, "10.0.0.0/17", "/24", ("n1", "10.0.0.0/24"))
        await world.define("narrow", conf(ipam(range=RANGES["narrow"]), name="narrow"))
        await world.start()
        await moment(60)
        found = await usable(world)
        assert found == {"10.0.0.0-16-n1": "10.0.0.0/24", "10.0.0.0-17-n1": "10.0.1.0/24"}
        assert await world.assigned(NARROW) == {"n1": "10.0.1.0/24"}


async def test_what_is_reserved_in_a_slice_stays_when_another_list_has_to_give_it_up() -> None:
    async with a_network_world("n1") as world:
        await world.define("wide", conf(ipam(range=RANGES["wide"]), name="wide"))
        replica = await world.start()
        await world.hold("10.0.0.0-16-n1", 5)
        await world.reserve("10.0.0.5")
        await replica.stop()
        await world.list_slices(NARROW, "10.0.0.0/17", "/24", ("n1", "10.0.0.0/24"))
        await world.define("narrow", conf(ipam(range=RANGES["narrow"]), name="narrow"))
        await world.start_blind_to("10.0.0.0-16-n1")
        await moment(60)
        assert await world.find_reservation("10.0.0.5")


async def test_no_pool_is_confirmed_before_the_copies_show_the_list_as_it_was_written() -> None:
    async with a_network_world("n1") as world:
        replica = await world.start()
        replica.cluster.turn_deaf(NodeSlicePool)
        await world.define("wide", conf(ipam(range=RANGES["wide"]), name="wide"))
        await moment(PATIENCE_SECONDS + 5)
        assert is_inert(await world.pool("10.0.0.0-16-n1"))
        replica.cluster.hear()
        await moment(60)
        assert is_confirmed(await world.pool("10.0.0.0-16-n1"))


async def test_a_named_network_shares_its_addresses_with_nobody() -> None:
    async with a_network_world("n1") as world:
        await world.define("wide", conf(ipam(range=RANGES["wide"]), name="wide"))
        await world.define("blue", conf(ipam(range=RANGES["narrow"], network_name="blue"), name="blue"))
        await world.start()
        assert await usable(world) == {"10.0.0.0-16-n1": "10.0.0.0/24", "blue-n1": "10.0.0.0/24"}


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_is_late_and_whoever_is_restarted_no_two_usable_slices_ever_overlap(seed: int) -> None:
    chance = Random(seed)
    async with a_network_world("n1", "n2", "n3") as world:

        def pace() -> Script:
            delays: list[Step] = [chance.choice([0.0, 0.3, 2.0, 20.0]) for _ in range(40)]
            return Script(replace=delays[:20], create=delays[20:])

        replicas = [Replica(world, pace()) for _ in range(3)]
        world.replicas += replicas
        for replica in replicas:  # each hears of the networks in its own time
            replica.cluster.hidden.update(chance.sample(sorted(RANGES), k=chance.randint(0, 1)))
        await define_both(world)
        for replica in replicas:
            await replica.start()
        for _ in range(40):
            await moment(chance.uniform(0.0, 3.0))
            assert overlapping(await usable(world)) == []
            if chance.random() < 0.2:
                name = chance.choice(await world.names(IPPool) or [""])
                if name:
                    await world.cluster.delete(IPPool, name, SYSTEM_NAMESPACE)
        for replica in replicas:
            await replica.stop()
        await world.start()
        await moment(120)
        found = await usable(world)
        assert len(found) == 6
        assert overlapping(found) == []
