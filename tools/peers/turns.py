"""One contender's turn at a load: the ADDs at once, then their DELs, and what they cost everybody.

The addresses that are answered are checked in every turn: no two pods may have the same, and after the DELs nobody may
have any.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

from msgspec import Struct

from control_plane.cluster import ControlPlane
from peers.background import Background
from peers.contenders import Contender, PeerPod
from peers.plugin_process import PluginAnswer, run_at_once
from peers.request_counts import Asked, counted
from process_costs import cpu_seconds, exact_cpu_seconds

_SETTLING_SECONDS = 0.3
"""In which what a program asks for after its answer has been asked for."""
_EMPTYING_SECONDS = 10.0


class Bill(Struct, frozen=True, kw_only=True):
    """Calls that were made at once, and what they cost."""

    answers: Sequence[PluginAnswer]
    seconds: float
    """Until all was done that came of them."""
    agents: int
    """Those of the nodes that calls were made on."""
    agents_cpu_seconds: float
    api_server_cpu_seconds: float
    requests: Counter[Asked]

    @property
    def rate(self) -> float:
        """Calls that were answered per second, from the first start to the last end."""
        took = max(each.ended for each in self.answers) - min(each.began for each in self.answers)
        return sum(each.is_answered for each in self.answers) / took


class Turn(Struct, frozen=True):
    """ADDs and their DELs."""

    adds: Bill
    dels: Bill
    faults: Sequence[str]
    """What was not as it must be."""


class Meters:
    """Reads what calls cost those that they do not start themselves."""

    def __init__(self, control_plane: ControlPlane, directory: Path) -> None:
        self._control_plane = control_plane
        self._directory = directory

    def idle(self, seconds: float, agents: Sequence[int]) -> Background:
        """What is counted in so many seconds while nobody calls."""
        before, began = self._requests(), monotonic()
        agents_cpu, server_cpu = self._cpu(agents)
        sleep(seconds)
        agents_cpu_after, server_cpu_after = self._cpu(agents)
        return Background(
            seconds=monotonic() - began,
            requests=self._requests() - before,
            api_server_cpu_seconds=server_cpu_after - server_cpu,
            agent_cpu_seconds=(agents_cpu_after - agents_cpu) / max(1, len(agents)),
        )

    def take_turn(self, contender: Contender, pods: Sequence[PeerPod], sandboxes: Sequence[str]) -> Turn:
        """ADD all of these at once, then DEL all, those without an answer too, as runtimes do."""
        adds = self._bill(contender, "ADD", pods, sandboxes)
        dels = self._bill(contender, "DEL", pods, sandboxes)
        return Turn(adds, dels, [*faults_in(adds.answers), *_left_behind(contender)])

    def _bill(
        self, contender: Contender, verb: str, pods: Sequence[PeerPod], sandboxes: Sequence[str]
    ) -> Bill:
        calls = [contender.call(verb, pod, sandbox) for pod, sandbox in zip(pods, sandboxes, strict=True)]
        agents = contender.agent_pids(dict.fromkeys(pod.node for pod in pods))
        before = self._requests()
        agents_cpu, server_cpu = self._cpu(agents)
        began = monotonic()
        answers = run_at_once(calls, self._directory)
        sleep(_SETTLING_SECONDS)
        agents_cpu_after, server_cpu_after = self._cpu(agents)
        seconds = monotonic() - began
        return Bill(
            answers=answers,
            seconds=seconds,
            agents=len(agents),
            agents_cpu_seconds=agents_cpu_after - agents_cpu,
            api_server_cpu_seconds=server_cpu_after - server_cpu,
            requests=self._requests() - before,
        )

    def _requests(self) -> Counter[Asked]:
        """All that the API server has answered so far."""
        return counted(self._control_plane.admin.text("/metrics"))

    def _cpu(self, agents: Sequence[int]) -> tuple[float, float]:
        return sum(map(exact_cpu_seconds, agents)), cpu_seconds(self._control_plane.api_server_pid)


def faults_in(adds: Sequence[PluginAnswer]) -> list[str]:
    """Addresses that two calls were answered with."""
    times = Counter(
        ip["address"].partition("/")[0]
        for answer in adds
        if answer.is_answered
        for ip in json.loads(answer.output)["ips"]
    )
    return [f"{address} was given to {count} pods" for address, count in times.items() if count > 1]


def _left_behind(contender: Contender) -> list[str]:
    deadline = monotonic() + _EMPTYING_SECONDS
    while (held := contender.held()) and monotonic() < deadline:
        sleep(_SETTLING_SECONDS)
    return [f"after all DELs it still has {', '.join(held)}"] if held else []
