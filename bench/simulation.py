"""How fast whole clusters are simulated: production's controller, agents and allocator, every ADD and DEL of every pod."""

import asyncio
from collections.abc import Iterator

from podtide.runtime import virtual_time
from podtide.simulation.world.world import World
from simulated_cluster import SECONDS_BETWEEN_NODES, Passed, Stopwatch, cluster

PART = "simulation"
NODES = 100
BURST = 10
BURSTS = 10
LIFECYCLES = NODES * BURST * BURSTS


def measure() -> Iterator[tuple[str, str]]:
    """Pods through their whole life, with the invariants looked at after every step and without."""
    for audited, how in ((True, "invariants checked"), (False, "not checked")):
        passed = virtual_time.run(_churn(audited=audited))
        yield f"pod lifecycles, {NODES} nodes, {how}", f"{LIFECYCLES / passed.wall:,.0f}/s"
        yield "… per second of processor time", f"{LIFECYCLES / passed.processor:,.0f}/s"
        yield "… simulated seconds per second", f"{passed.simulated / passed.wall:,.1f}"


async def _churn(*, audited: bool) -> Passed:
    async with cluster(NODES, "10.0.0.0/16", audited=audited) as world:
        await world.pass_time(60)
        stopwatch = Stopwatch()
        await asyncio.gather(*(_live(world, node, place) for place, node in enumerate(world.machines)))
        return stopwatch.read()


async def _live(world: World, node: str, place: int) -> None:
    """Let bursts of pods come to a node and go."""
    await asyncio.sleep(place * SECONDS_BETWEEN_NODES)
    for _ in range(BURSTS):
        names = await world.workload.add_pods(node, BURST)
        await asyncio.sleep(1)
        assert world.running_pods(node) == BURST
        for name in names:
            await world.workload.remove_pod(name)
        await asyncio.sleep(1)
        assert world.running_pods(node) == 0
