"""Faults of watches: they break, fall behind, or cannot be resumed.

One fault strikes a single watch: one program falls behind in one kind of object, and in no other. A program that is
disconnected knows that its caches are stale. One whose watch of pods goes on while that of its NodeNetworkConfig does
not combines states that never existed at the same time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random

from podtide.cluster.port import Gone, R, Unavailable, WatchEvent
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.pod import Pod
from podtide.simulation.faults.conditions import OneWatch, WatchTrouble
from podtide.simulation.faults.line_fault import FaultPhase, WatchFault
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene

_MEAN_LIFE_SECONDS = 20.0
_LATEST_SECONDS = 3.0
_SHORTEST_TROUBLE_SECONDS = 5.0
_LONGEST_TROUBLE_SECONDS = 75.0
"""By then an adapter takes a silent watch for dead."""
_SHORTEST_DEAFNESS_SECONDS = 30.0
_LONGEST_DEAFNESS_SECONDS = 420.0
_OF_AGENTS: tuple[type[Resource], ...] = (Pod, NodeNetworkConfig, Node, ClusterSubnet)
_OF_CONTROLLERS: tuple[type[Resource], ...] = (
    Node,
    NodeNetworkConfig,
    ClusterSubnet,
    NetworkAttachmentDefinition,
    NodeSlicePool,
    IPPool,
)


class DroppedWatch(WatchFault):
    """A watch whose connection breaks, or which the server ends, as it does every few minutes."""

    name = "dropped-watch"
    rate = 0.5

    async def wrap(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, phase: FaultPhase
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """End after some time, with an error or without."""
        ends_at = asyncio.get_running_loop().time() + chance.expovariate(1 / _MEAN_LIFE_SECONDS)
        breaks = chance.random() < 0.5  # noqa: PLR2004 - one as likely as the other
        async with aclosing(events):
            while True:
                try:
                    async with asyncio.timeout_at(ends_at if phase.is_bad else None):
                        event = await anext(events)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    if breaks:
                        raise Unavailable("the watch's connection broke") from None
                    return
                yield event


class GoneWatch(WatchFault):
    """410: the server has compacted its history and cannot resume the watch."""

    name = "gone"
    rate = 0.1

    async def wrap(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, phase: FaultPhase
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """Refuse to begin."""
        del chance, phase
        await events.aclose()
        nothing: tuple[WatchEvent[R], ...] = ()
        for event in nothing:
            yield event
        raise Gone("too old resource version: list anew")


class LateWatch(WatchFault):
    """A watch that is behind: an API server with a slow cache. The order is kept."""

    name = "late-watch"
    rate = 0.3

    async def wrap(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, phase: FaultPhase
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """Pass every event on some time after it came."""
        longest = chance.uniform(0.0, _LATEST_SECONDS)
        async with aclosing(events):
            async for event in events:
                if phase.is_bad:
                    await asyncio.sleep(chance.uniform(0.0, longest))
                yield event


class OneWatchAlone(Mishap):
    """For a while, one program's watch of one kind is silent, late or refused."""

    name = "one-watch"
    every_seconds = 40.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Break a program's watch of one kind, and repair it later."""
        controllers = sorted(scene.controllers().values())
        agents = [machine.agent_program for machine in scene.world.machines.values()]
        if not controllers and not agents:
            return ""  # all of them are down or replaced at the moment
        program = chance.choice([*controllers, *agents])
        kind = chance.choice(_OF_CONTROLLERS if program in controllers else _OF_AGENTS)
        trouble = chance.choice(tuple(WatchTrouble))
        conditions = scene.conditions
        if program in conditions.spoilt or program in conditions.told_the_truth:
            return ""
        spoilt = conditions.spoilt[program] = OneWatch(kind, trouble, asyncio.Event())

        async def mend() -> None:
            spoilt.is_over.set()
            del conditions.spoilt[program]

        seconds = chance.uniform(_SHORTEST_TROUBLE_SECONDS, _LONGEST_TROUBLE_SECONDS)
        scene.plan(seconds, mend)
        return f"of {kind.api.kind} by {program} is {trouble} for {seconds:.1f} s"


class DeafAgent(Mishap):
    """An agent can neither list nor watch its NodeNetworkConfig, for longer than it may go on without; all else works.

    As when its permission for that kind is lost, or the API server fails to convert it.
    """

    name = "deaf-agent"
    every_seconds = 60.0
    only_by_name = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Let nothing of the kind through, and mend that later."""
        machine = scene.pick_machine(chance)
        if machine is None or machine.agent is None:
            return ""
        program, conditions = machine.agent_program, scene.conditions
        if program in conditions.deaf_since or program in conditions.told_the_truth:
            return ""
        conditions.deafen(program)

        async def mend() -> None:
            del conditions.deaf_since[program]

        seconds = chance.uniform(_SHORTEST_DEAFNESS_SECONDS, _LONGEST_DEAFNESS_SECONDS)
        scene.plan(seconds, mend)
        return f"{program} for {seconds:.1f} s"
