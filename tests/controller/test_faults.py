"""Answers that get lost, calls that fail, controllers that die: afterwards everything is as if nothing had been."""

from random import Random

import pytest

from cluster.faulty_cluster import Script
from controller.world import World, a_world, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.cluster.port import Conflict, Throttled, Unavailable
from podtide.runtime.randomness import seeded_randomness


async def test_an_answer_that_the_allocator_lost_after_it_committed_costs_nothing() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        world.allocator.wishes.clear()
        lossy = Script()
        lossy.lost_answers["put"] = [AllocatorUnavailable("the answer was lost")] * 2
        world.allocator.faults = lossy
        await world.ask("n1", 16)
        await moment(30)
        assert len(await world.names("n1")) == 16
        assert (await world.subnet()).reserved == 17
        assert len({wish.generation for wish in world.allocator.wishes}) == 1
        assert (await world.granted("n1")).status == "True"


async def test_a_status_whose_answer_was_lost_is_not_written_again() -> None:
    async with a_world() as world:
        faults = Script()
        replica = world.replica(faults=faults)
        replica.start()
        await world.add_node("n1")
        await moment()
        replica.cluster.writes.clear()
        faults.lost_answers["replace_status"] = [Unavailable("the answer was lost")]
        await world.ask("n1", 3)
        await moment(30)
        assert replica.cluster.about("NodeNetworkConfig") == ["status NodeNetworkConfig"]
        assert len(await world.names("n1")) == 3


async def test_a_config_whose_creation_lost_its_answer_is_not_made_twice() -> None:
    async with a_world() as world:
        faults = Script()
        world.replica(faults=faults).start()
        await moment()
        faults.lost_answers["create"] = [Unavailable("the answer was lost")]
        await world.add_node("n1")
        await moment(30)
        assert (await world.granted("n1")).status == "True"


async def test_an_agent_that_writes_while_its_request_is_carried_out_gets_what_it_said_last() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        world.allocator.faults = Script(put=[1.0])  # the allocator takes its time
        await world.ask("n1", 5)
        await moment(0.5)
        await world.ask("n1", 9)
        await moment(5)
        assert len(await world.names("n1")) == 9
        config = await world.config("n1")
        assert (await world.granted("n1")).observed_generation == config.metadata.generation


async def test_a_restart_writes_nothing_and_asks_once_for_each_node() -> None:
    async with a_world() as world:
        first = world.replica()
        first.start()
        nodes = [f"n{number}" for number in range(10)]
        for node in nodes:
            await world.add_node(node)
        await moment()
        for node in nodes:
            await world.ask(node, 15)
        await moment(60)
        await first.stop()
        world.allocator.wishes.clear()
        second = world.replica()
        second.start()
        await moment(120)
        assert second.cluster.writes == []
        assert sorted(wish.node for wish in world.allocator.wishes) == nodes


class Weather:
    """Faults that come by chance, on every call, as long as it is bad."""

    def __init__(self, randomness: Random) -> None:
        self.is_bad = True
        self._randomness = randomness

    async def before(self, call: str) -> None:
        self._strike(call)

    async def after(self, call: str) -> None:
        self._strike(call)

    def _strike(self, call: str) -> None:
        if self.is_bad and self._randomness.random() < 0.15:
            if call in {"put", "delete", "get_subnet"}:
                raise AllocatorUnavailable(f"no answer to {call}")
            raise self._randomness.choice(
                [
                    Unavailable(f"no answer to {call}"),
                    Conflict("somebody was quicker"),
                    Throttled("slow down"),
                ]
            )


async def ask_as_an_agent(world: World, name: str, count: int, waiting: int = 0) -> None:
    """State a request: what was named for release stays named until it is gone."""
    named, held = (await world.config(name)).spec.ips_not_in_use, await world.names(name)
    kept = [each for each in held if each not in named]
    release = [each for each in held if each in named] + kept[count:]
    await world.ask(name, count, release=release, waiting=waiting)


async def live(world: World, randomness: Random, nodes: dict[str, int]) -> None:
    """Something happens to some node."""
    name = f"n{randomness.randrange(5)}"
    chance = randomness.random()
    if name not in nodes:
        await world.add_node(name)
        nodes[name] = 0
    elif chance < 0.15:
        await world.remove_node(name)
        del nodes[name]
    elif (config := await world.find_config(name)) is not None and config.status.network_containers:
        count = randomness.randrange(6)
        await ask_as_an_agent(world, name, count, waiting=randomness.randrange(3))
        nodes[name] = count


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))])
async def test_whatever_fails_and_whoever_dies_in_the_end_everybody_has_what_he_asked_for(seed: int) -> None:
    async with a_world(
        "10.1.0.0/27"
    ) as world:  # 29 addresses: five nodes with five each and a primary are 30
        randomness = seeded_randomness(seed)
        weather = Weather(seeded_randomness(f"{seed}/weather"))
        world.allocator.faults = weather
        replica = world.replica(name=f"{seed}/0", faults=weather)
        replica.start()
        nodes: dict[str, int] = {}
        for turn in range(60):
            await live(world, randomness, nodes)
            await moment(randomness.choice([0.0, 0.01, 0.3, 4.0, 60.0]))
            await world.everybody()
            if randomness.random() < 0.2:
                await replica.stop()
                replica = world.replica(name=f"{seed}/{turn}", faults=weather)
                replica.start()
        weather.is_bad = False
        await moment(1200)
        for _ in range(3):  # agents go on saying what they want, and name what they have beyond it
            for name, count in nodes.items():
                await ask_as_an_agent(world, name, count)
            await moment(10)
        held = {name: len(await world.names(name)) for name in nodes}
        missing = max(0, sum(nodes.values()) + len(nodes) - 29)
        assert sum(held.values()) == sum(nodes.values()) - missing
        assert all(held[name] <= count for name, count in nodes.items())
        await moment(400)  # until the addresses of nodes that went are free
        shown = await world.everybody()
        assert (await world.subnet()).reserved == len(shown)
        assert (await world.subnet()).containers == len(nodes)
        replica.cluster.writes.clear()
        await moment(600)
        assert replica.cluster.work() == []
