"""Pods created and ended at random, in all clusters of a subnet together about as many as the plan says."""

import asyncio
from collections.abc import Sequence
from random import Random

from podtide.cluster.port import NotFound
from podtide.simulation.world.workload import Workload
from podtide.simulation.world.world import World

_MEAN_PAUSE_SECONDS = 1.5
_LARGEST_BURST = 12
_COMPLETING = 0.3


class Churn:
    """Adds pods to machines in bursts, completes some, and deletes others."""

    def __init__(
        self, worlds: Sequence[World], *, most_pods: int, chance: Random, on_one_node: float = 0.0
    ) -> None:
        """Where a scheduler places pods, `on_one_node` is the part of those that fit on one node alone."""
        self._worlds = worlds
        self._on_one_node = on_one_node
        self._most_pods = most_pods
        self._chance = chance
        self._running = list[tuple[Workload, str]]()
        self._completed = list[tuple[Workload, str]]()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(self._chance.expovariate(1 / _MEAN_PAUSE_SECONDS))
            room = self._most_pods - len(self._running)
            if self._chance.uniform(0, self._most_pods) < room:
                await self._add(min(room, self._chance.randint(1, _LARGEST_BURST)))
            elif self._running:
                await self._end(self._chance.randint(1, _LARGEST_BURST))

    async def _add(self, count: int) -> None:
        nodes = [
            (world.workload, machine.name)
            for world in self._worlds
            for machine in world.machines.values()
            if machine.uid
        ]
        if nodes:
            workload, node = self._chance.choice(nodes)
            if workload.policy is not None and self._chance.random() >= self._on_one_node:
                node = ""
            self._running += [(workload, name) for name in await workload.add_pods(node, count)]

    async def _end(self, count: int) -> None:
        for _ in range(min(count, len(self._running))):
            workload, name = self._running.pop(self._chance.randrange(len(self._running)))
            try:
                if self._chance.random() < _COMPLETING:
                    await workload.complete_pod(name)
                    self._completed.append((workload, name))
                else:
                    await workload.remove_pod(name)
            except NotFound:
                continue  # it went some other way
        while len(self._completed) > _LARGEST_BURST:
            workload, name = self._completed.pop(0)
            try:
                await workload.remove_pod(name)
            except NotFound:
                continue
