"""The story of the tide: load rises until the subnet is exhausted, every node gives back, and the load falls again."""

from podtide.core.exact import text
from podtide.simulation.demo.chapters import PODS_EACH, burst_on, quiet_water
from podtide.simulation.demo.stage import DemoStage

_POD_EVERY_SECONDS = 0.05
_CALM_SECONDS = 2.0
_STEP_SECONDS = 7.5
"""Longer than the next change of the batch may have to wait, by `real_world`."""


async def tell_tide(stage: DemoStage) -> None:
    """Tell the six chapters, in about a minute."""
    await quiet_water(stage)
    await burst_on(stage, stage.names[0])
    await stage.pause(_CALM_SECONDS)
    await _give_back(stage, await _rise(stage))
    await _go_out(stage)
    await _leave(stage, stage.names[0])


async def _rise(stage: DemoStage) -> int:
    """Add pods to all nodes until the subnet is exhausted. Returns how many addresses are reserved then."""
    capacity, upper = stage.decided.capacity, stage.world.defaults.settings.upper_threshold
    stage.begin(
        "The tide rises",
        f"Pods arrive on all nodes until the subnet is exhausted: more than {text(upper)} of its {capacity} addresses "
        "are reserved.",
    )
    # On a busy machine pods come faster than the controller looks: leave room for the primaries and for the next chapter's
    # pods. With what nodes keep to spare, so many pods exhaust the subnet for certain.
    most = capacity - 2 * len(stage.names)
    while not stage.is_exhausted() and stage.pod_count < most:
        for node in stage.randomness.sample(stage.names, len(stage.names)):
            if stage.is_exhausted() or stage.pod_count >= most:
                break
            await stage.add_pods(node)
            await stage.pause(_POD_EVERY_SECONDS)
    await stage.until(stage.is_exhausted)
    reserved = await stage.reserved()
    stage.say(
        f"Exhausted: {reserved} of {capacity} addresses reserved, for {stage.pod_count} pods. "
        "What is between is spare, spread over the nodes."
    )
    return reserved


async def _give_back(stage: DemoStage, before: int) -> None:
    nodes = len(stage.names)
    stage.begin(
        "Give-back",
        f"The batch goes down to one that fits, and every node keeps less to spare. {nodes} more pods arrive all the same.",
    )
    beginning = stage.now
    for node in stage.names:
        await stage.add_pods(node)
    await stage.until(stage.all_served)
    await stage.pause(_CALM_SECONDS)
    now = await stage.reserved()
    stage.say(
        f"They have their addresses, and {stage.given_back_since(beginning)} went back to the subnet: from {before} "
        f"reserved to {now}, which are {stage.pod_count} pods, {nodes} primaries and "
        f"{now - stage.pod_count - nodes} to spare."
    )


async def _go_out(stage: DemoStage) -> None:
    stage.begin("Recovery", "Pods leave. The batch goes up again, as far as R is sure to stay low.")
    while stage.pod_count > PODS_EACH * len(stage.names):
        for node in stage.names:
            await stage.remove_pods(node, min(1, len(stage.pods[node]) - PODS_EACH))
        await stage.pause(_POD_EVERY_SECONDS)
    await stage.until(lambda: stage.all_served() and not stage.is_exhausted())
    configured = stage.world.defaults.settings.batch
    await _until_the_batch_stays(stage, configured)
    batch = stage.decided.batch
    rest = "" if batch == configured else f": with {configured}, R could come over t·Q again"
    stage.say(f"Not exhausted any more, and the batch is {batch} of {configured}{rest}.")


async def _until_the_batch_stays(stage: DemoStage, configured: int) -> None:
    """Wait until the batch is the configured one, or has not changed for longer than a step takes."""
    while (before := stage.decided.batch) < configured:
        await stage.pause(_STEP_SECONDS)
        if stage.decided.batch == before:
            return


async def _leave(stage: DemoStage, node: str) -> None:
    stage.begin(
        "A node leaves", f"{node} is switched off and removed. No other node may have its addresses at once."
    )
    await stage.remove_node(node)
    await stage.until(lambda: stage.decided.containers == len(stage.names) - 1)
    resting = await stage.reserved()
    await stage.pause(_CALM_SECONDS)
    stage.say(f"{resting} addresses are reserved while its own rest in quarantine.")
    while (now := await stage.reserved()) == resting:
        await stage.pause(_CALM_SECONDS / 4)
    stage.say(f"Then they are free: {now} reserved, none of them lost.")
