"""The story of the exact fit: every address is assigned to a pod, and the next pod waits until one is free."""

from podtide.core.subnet.count_text import are_text
from podtide.simulation.demo.chapters import requests_text
from podtide.simulation.demo.stage import DemoStage

_POD_EVERY_SECONDS = 0.08
_CALM_SECONDS = 3.0


async def tell_exact_fit(stage: DemoStage) -> None:
    """Tell the three chapters."""
    await _fill(stage)
    late = await _one_more(stage)
    await _one_goes(stage, late)


async def _fill(stage: DemoStage) -> None:
    for name in stage.names:
        await stage.world.add_node(name)
    await stage.until(lambda: stage.decided.containers == len(stage.names))
    capacity, nodes = stage.decided.capacity, len(stage.names)
    pods = capacity - nodes
    stage.begin(
        "Full to the brim",
        f"{capacity} addresses, of which {nodes} nodes need one each: exactly {pods} pods arrive, unevenly.",
    )
    weights = [stage.randomness.randint(1, 5) for _ in stage.names]
    for node in stage.randomness.choices(stage.names, weights, k=pods):
        await stage.add_pods(node)
        await stage.pause(_POD_EVERY_SECONDS)
    await stage.until(lambda: stage.all_served() and stage.decided.unanswered == 0)
    stage.say(
        f"All {pods} pods have an address, {await stage.reserved()} of {capacity} are reserved, none is left."
    )
    calm = stage.now
    await stage.pause(_CALM_SECONDS)
    written = requests_text(len(stage.requests_since(calm)))
    stage.say(f"{written} in the next {_CALM_SECONDS:g} seconds.")


async def _one_more(stage: DemoStage) -> str:
    node = stage.names[0]
    (late,) = await stage.add_pods(node)
    stage.begin(
        "One more",
        f"{late} comes to {node}, and there is no address for it. This says so:",
        f"{stage.why} {late}",
    )
    await stage.until(lambda: stage.decided.starved and stage.decided.owed > 0)
    await stage.pause(_CALM_SECONDS)
    stage.say(
        f"{late} waits; {are_text(stage.decided.owed, 'address', 'addresses')} owed. Everybody else goes on undisturbed."
    )
    return late


async def _one_goes(stage: DemoStage, late: str) -> None:
    node = max(stage.names[1:] or stage.names, key=lambda name: len(stage.pods[name]))
    stage.begin("One goes", f"A pod on {node} ends. Its address finds its way to {late}.")
    await stage.remove_pods(node)
    await stage.until(stage.all_served)
    stage.say(f"{late} has its address, and again none is left.")
