"""Calls of the plugin with faults between the kubelet and the agent."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from random import Random

from podtide.agent.api.cni_calls import refusal
from podtide.agent.port import NotReady
from podtide.agent.program import NodeAgent
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.plugin_fault import PluginFault, verb_of
from podtide.simulation.nodes.plugin_caller import AgentDoors


class FaultyDoors:
    """Passes calls on to the agents, with the faults of the plan."""

    def __init__(
        self,
        doors: AgentDoors,
        faults: Iterable[PluginFault],
        conditions: Conditions,
        *,
        seed: int | str,
        report: Callable[[str, str], None],
    ) -> None:
        self._doors = doors
        self._faults = tuple(faults)
        self._conditions = conditions
        self._seed = seed
        self._report = report
        self._streams: dict[tuple[str, str], Random] = {}
        self._boots: Counter[str] = Counter()

    def switch_off(self, node: str) -> None:
        """The machine is switched off: calls in flight to it do not arrive."""
        self._boots[node] += 1

    async def open(self, node: str, agent: NodeAgent) -> None:
        """The node's agent serves."""
        await self._doors.open(node, agent)

    async def close(self, node: str) -> None:
        """The node's agent was killed."""
        await self._doors.close(node)

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Exit status and standard output."""
        boot = self._boots[node]

        async def arrive() -> tuple[int, bytes]:
            if boot != self._boots[node]:
                # A kubelet that calls twice may still be running to get this answer.
                off = refusal(NotReady(f"{node} is switched off"), stdin)
                return off.exit_status, off.output
            return await self._doors.call(node, environment, stdin)

        call: Callable[[], Awaitable[tuple[int, bytes]]] = arrive
        verb = verb_of(environment)
        for fault in self._faults:
            chance = self._stream(fault, node)
            rate = fault.rate * self._conditions.frequencies.get(fault.name, 1.0)
            if self._conditions.is_bad and verb in fault.verbs and chance.random() < rate:
                self._report(fault.name, f"{verb} on {node}")
                call = partial(fault.call, call, self._conditions.leave, chance)
        return await call()

    def _stream(self, fault: PluginFault, node: str) -> Random:
        key = (fault.name, node)
        if key not in self._streams:
            self._streams[key] = seeded_randomness(f"{self._seed}/{fault.name} {node}")
        return self._streams[key]
