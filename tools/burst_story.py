"""The design papers' story: a node has one pod, then thirty-five more are scheduled at once.

It is told twice, in the same cluster with the same delays and the same serial kubelet, and only two things are
swapped: how the agent decides what to ask for, and whether an ADD waits for what is on its way. So what differs in
the outcome is due to these two.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, structs

from podtide.agent.request.sizing_policy import ExactPolicy, RequestPolicy
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.other_agents import ReactivePolicy
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.slow_grants import SlowGrants
from podtide.simulation.world.world import PortWrappers, World, WorldDefaults

CIDR = "10.0.0.0/16"
NODE = "node-0"
MORE_PODS = 35
ARRIVAL_SECONDS = 0.01
GRANT_SECONDS = 5.0
"""From a request to its grant: "several seconds", say the papers."""
SANDBOX_SECONDS = 0.15
_LULL_SECONDS = 60.0
_PATIENCE_SECONDS = 300.0


class Contestant(Struct, frozen=True):
    """A way to size a node's pool."""

    name: str
    policy: RequestPolicy
    waits: bool
    """Whether an ADD waits for an address that is on its way."""


PODTIDE = Contestant("podtide", ExactPolicy(), waits=True)
REACTIVE = Contestant("reactive baseline", ReactivePolicy(), waits=False)


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of the thirty-five, counted from when the first was scheduled."""

    requests: tuple[int, ...]
    """Every `requestedIPCount` that was written."""
    allocator_calls: int
    failed_adds: int
    ready_seconds: float
    """Until the last of them had its address."""


@asynccontextmanager
async def before_the_burst(contestant: Contestant, *, clock: Clock, log: Logger) -> AsyncIterator[World]:
    """A world of its own in which the story has come to T0."""
    defaults = defaults_for(contestant, Settings(), KubeletHabits(sandbox_seconds=SANDBOX_SECONDS))
    async with open_embedded_world(CIDR, defaults=defaults, clock=clock, seed=1, log=log) as world:
        await first_pod(world, GRANT_SECONDS)
        await world.pass_time(_LULL_SECONDS)
        world.trace.mark()
        yield world


def defaults_for(contestant: Contestant, settings: Settings, habits: KubeletHabits) -> WorldDefaults:
    """These settings and habits, as far as the contestant and the papers' serial kubelet leave them."""
    add_wait_seconds = settings.add_wait_seconds if contestant.waits else 0.0
    return WorldDefaults(
        settings=structs.replace(settings, add_wait_seconds=add_wait_seconds),
        policy=contestant.policy,
        habits=structs.replace(habits, at_once=1),
    )


async def first_pod(world: World, grant_seconds: float) -> None:
    """T0: a node with one pod. It has its first batch of addresses, or will have it in a moment."""
    world.wrappers = PortWrappers(allocator=lambda _program, line: SlowGrants(line, grant_seconds))
    world.start_controller()
    await world.add_node(NODE)
    await world.workload.add_pods(NODE, 1)
    await world.until(lambda: world.running_pods() == 1, within=_PATIENCE_SECONDS)


async def burst(world: World, *, lull_seconds: float = _LULL_SECONDS) -> Outcome:
    """T1 and on: the others are scheduled, and everybody does their part until all have their addresses."""
    began = world.clock.monotonic()
    for _ in range(MORE_PODS):
        await world.workload.add_pods(NODE, 1)
        await asyncio.sleep(ARRIVAL_SECONDS)
    await world.until(lambda: world.running_pods() == 1 + MORE_PODS, within=_PATIENCE_SECONDS)
    ready = world.trace.plugin_calls("ADD", ok=True)[-1].at
    await world.pass_time(lull_seconds)  # whatever is still to come of it
    return Outcome(
        requests=requests_of(world),
        allocator_calls=len(world.trace.allocator_calls()),
        failed_adds=len(world.trace.plugin_calls("ADD", ok=False)),
        ready_seconds=ready - began,
    )


def requests_of(world: World) -> tuple[int, ...]:
    """What agents asked for since the trace's mark, in order."""
    return tuple(
        write.item.spec.requested_ip_count
        for write in world.trace.writes(NodeNetworkConfig, "apply")
        if isinstance(write.item, NodeNetworkConfig)
    )
