"""The stories, and the sizes of subnets that they need."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.subnet.layout import SubnetLayout, choose_gateways
from podtide.simulation.demo.chapters import burst_on, quiet_water
from podtide.simulation.demo.exact_fit import tell_exact_fit
from podtide.simulation.demo.slices import storage_network, tell_slices
from podtide.simulation.demo.stage import DemoStage
from podtide.simulation.demo.tide import tell_tide
from podtide.simulation.nodes.network_definitions import Definition

_LONGEST_PREFIX = 29
_CALM_SECONDS = 2.0


class Story(Struct, frozen=True, kw_only=True):
    """A story, and how large a subnet it needs and can fill, for so many nodes."""

    name: str
    sentence: str
    tell: Callable[[DemoStage], Awaitable[None]]
    least_capacity: Callable[[int], int]
    most_capacity: Callable[[int], int]
    nodes: int = 20
    """On how many nodes it is told, unless another number is asked for."""
    networks: Callable[[int], tuple[Definition, ...]] = lambda _nodes: ()
    """The secondary networks that every pod is attached to, for so many nodes."""


async def _tell_burst(stage: DemoStage) -> None:
    """Tell of many pods at once on one node, and of their addresses when the pods are deleted."""
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


STORIES = {
    story.name: story
    for story in (
        Story(
            name="tide",
            sentence="quiet, a burst, load until the subnet is exhausted, give-back, recovery, a node leaving",
            tell=tell_tide,
            least_capacity=lambda nodes: 20 * nodes + 60,
            most_capacity=lambda nodes: 60 * nodes + 200,
        ),
        Story(
            name="burst",
            sentence="35 pods at once on one node: one request, and none of them waits for a second one",
            tell=_tell_burst,
            least_capacity=lambda nodes: 20 * nodes + 60,
            most_capacity=lambda _nodes: 2**24,
        ),
        Story(
            name="exact-fit",
            sentence="as many pods as there are addresses, then one more, which waits until another goes",
            tell=tell_exact_fit,
            least_capacity=lambda nodes: 3 * nodes,
            most_capacity=lambda nodes: 20 * nodes + 200,
        ),
        Story(
            name="slices",
            sentence="a secondary network cut into a slice for each node, a burst, a node replaced",
            tell=tell_slices,
            least_capacity=lambda nodes: 20 * nodes + 80,
            most_capacity=lambda _nodes: 2**24,
            nodes=10,
            networks=storage_network,
        ),
    )
}


def default_subnet(story: Story, nodes: int) -> str:
    """The smallest subnet that the story fits into."""
    for prefix in range(_LONGEST_PREFIX, 7, -1):
        cidr = f"10.240.0.0/{prefix}"
        if capacity_of(cidr) >= story.least_capacity(nodes):
            return cidr
    raise InvalidInput(f"{nodes} nodes are too many for a demonstration: give fewer with --nodes")


def check_subnet(story: Story, nodes: int, cidr: str) -> None:
    """Refuse a subnet that is too small or too large for the story."""
    capacity, least, most = capacity_of(cidr), story.least_capacity(nodes), story.most_capacity(nodes)
    if capacity < least:
        raise InvalidInput(
            f"subnet {cidr} has {capacity} addresses, and story {story.name} on {nodes} nodes needs {least}: "
            f"give a larger one, such as {default_subnet(story, nodes)}, or fewer nodes"
        )
    if capacity > most:
        raise InvalidInput(
            f"subnet {cidr} has {capacity} addresses, which story {story.name} on {nodes} nodes would take too long "
            f"to fill: give a smaller one, such as {default_subnet(story, nodes)}, or more nodes"
        )


def capacity_of(cidr: str) -> int:
    """How many addresses of a CIDR can be reserved."""
    return SubnetLayout((cidr,), choose_gateways((cidr,))).capacity
