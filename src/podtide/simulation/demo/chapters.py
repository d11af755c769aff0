"""Chapters that several stories share."""

from podtide.simulation.demo.stage import DemoStage

PODS_EACH = 2
BURST_PODS = 35
_CALM_SECONDS = 2.0


async def quiet_water(stage: DemoStage) -> None:
    """All nodes join, and their first pods get their addresses; then demand is constant, and nothing is written."""
    nodes = len(stage.names)
    stage.begin(
        "Quiet water", f"{nodes} nodes join, with {PODS_EACH} pods each. Every node asks once, for a batch."
    )
    beginning = stage.now
    for name in stage.names:
        await stage.world.add_node(name)
        await stage.add_pods(name, PODS_EACH)
    await stage.until(stage.all_served)
    await stage.pause(_CALM_SECONDS)
    requests = stage.requests_since(beginning)
    stage.say(
        f"{stage.pod_count} pods have their addresses, by {len(requests)} requests "
        f"of {nodes} nodes: {_distinct(requests)}."
    )
    calm = stage.now
    await stage.pause(_CALM_SECONDS)
    written = requests_text(len(stage.requests_since(calm)))
    stage.say(f"And then? {written} in the next {_CALM_SECONDS:g} seconds: demand stands still.")


async def burst_on(stage: DemoStage, node: str) -> None:
    """Thirty-five pods at once on one node."""
    stage.begin(
        "A burst",
        f"{BURST_PODS} pods are scheduled to {node} at once. It asks for all they need in one step.",
    )
    beginning, began = stage.now, stage.world.clock.monotonic()
    await stage.add_pods(node, BURST_PODS)
    await stage.until(stage.all_served)
    adds = stage.adds_since(beginning)
    failed = sum(not add.ok for add in adds)
    requests = stage.requests_since(beginning, node)
    stage.say(
        f"{requests_text(len(requests))}: {_distinct(requests)}. All {BURST_PODS} had their addresses after "
        f"{adds[-1].at - began:.2f} s; {failed or 'no'} ADD failed."
    )


def _distinct(requests: list[int]) -> str:
    return ", ".join(str(request) for request in dict.fromkeys(requests)) or "none"


def requests_text(number: int) -> str:
    """`No requests`, `1 request` or `3 requests`."""
    return "1 request" if number == 1 else f"{number or 'No'} requests"
