"""The story of a burst: many pods at once on one node, and what becomes of their addresses when they go."""

from podtide.simulation.demo.chapters import burst_on, quiet_water
from podtide.simulation.demo.stage import Stage

_CALM_SECONDS = 2.0


async def tell_burst(stage: Stage) -> None:
    """Three chapters."""
    node = stage.names[0]
    await quiet_water(stage)
    await burst_on(stage, node)
    await stage.pause(_CALM_SECONDS)
    stage.begin("Ebb", f"The pods go. {node} waits a while, for more may come, then gives back in one step.")
    beginning, before = stage.now, await stage.reserved()
    await stage.remove_pods(node, len(stage.pods[node]) - 1)
    await stage.until(lambda: stage.all_served() and bool(stage.requests_since(beginning, node)))
    while (after := await stage.reserved()) == before:
        await stage.pause(_CALM_SECONDS / 4)
    stage.say(f"From {before} reserved addresses to {after}.")
