"""A journal is lost only where the cluster still tells what the node has: without both, nobody who is asked knows."""

from random import Random
from typing import Any, cast

from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.disks import JournalLost
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.world.world import World
from simulation.test_node_restored import a_node_back, cluster_of
from simulation.test_registered_again import NODE

TRIES = 8


def scene_of(world: World) -> FaultScene:
    """The scene of a world in which only journals are lost."""
    unused = cast("Any", None)
    return FaultScene(
        world,
        Conditions(1, [], lambda _fault, _words: None),
        cluster=cluster_of(world),
        doors=unused,
        allocator=cast("Any", world.allocator),
        clock=unused,
        agenda=unused,
    )


async def struck(world: World) -> set[str]:
    scene = scene_of(world)
    return {await JournalLost().happen(scene, Random(seed)) for seed in range(TRIES)} - {""}


async def test_a_node_that_is_back_loses_no_journal_before_the_controller_has_confirmed_its_addresses() -> (
    None
):
    async with a_node_back(room=True, controller="is away", agent="lives") as (world, _):
        assert NODE not in await struck(world)


async def test_it_may_lose_it_afterwards() -> None:
    async with a_node_back(room=True, controller="lives", agent="lives") as (world, _):
        await world.pass_time(120)
        assert NODE in await struck(world)
