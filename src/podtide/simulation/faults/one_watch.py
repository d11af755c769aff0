"""Trouble with one watch alone: one program falls behind in one kind of object, and in no other.

A program that is cut off knows that it knows nothing. One whose watch of pods goes on while that of its
NodeNetworkConfig does not, puts things together that were never so at the same time.
"""

import asyncio
from random import Random

from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.pod import Pod
from podtide.simulation.faults.conditions import OneWatch, WatchTrouble
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_SHORTEST_SECONDS = 5.0
_LONGEST_SECONDS = 75.0
"""By then an adapter takes a watch that says nothing for dead."""
_OF_AGENTS: tuple[type[Resource], ...] = (Pod, NodeNetworkConfig, Node, ClusterSubnet)
_OF_CONTROLLERS: tuple[type[Resource], ...] = (
    Node,
    NodeNetworkConfig,
    ClusterSubnet,
    NetworkAttachmentDefinition,
    NodeSlicePool,
    IPPool,
)


class OneWatchAlone(Mishap):
    """For a while, what happens to one kind of object does not reach one program, or late, or its watch is refused."""

    name = "one-watch"
    every_seconds = 40.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Spoil a program's watch of one kind."""
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

        seconds = chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS)
        scene.plan(seconds, mend)
        return f"of {kind.api.kind} by {program} is {trouble} for {seconds:.1f} s"
