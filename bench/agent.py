"""What a pod's start and end cost on a node: calls over a real agent's socket, its memory, and how soon it is back.

Cluster, controller and agent are processes; the journal is on the disk. Callers speak as the plugin does, a new
connection for each call, from threads of this process: what they cost themselves is in the figures too.
"""

import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, sleep

from msgspec import Struct

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from node_with_agent import NodeWithAgent
from plugin_calls import output, request
from process_costs import cpu_seconds, memory_bytes

PART = "agent"
ADDRESSES = 250
CALLERS = (1, 16)
PAIRS = 3_000
WARM_UP_PAIRS = 200
IDLE_SECONDS = 3.0
STARTS = 5


class Pair(Struct, frozen=True):
    """Seconds that one sandbox's calls took."""

    add: float
    delete: float


class Runtime:
    """Calls a node's agent."""

    def __init__(self, node: NodeWithAgent) -> None:
        self._path = str(node.socket)
        self._numbers = count()

    def pairs(self, callers: int, how_many: int) -> tuple[list[Pair], float]:
        """ADD and DEL of so many sandboxes, that many at a time; and the seconds that all of it took."""
        with ThreadPoolExecutor(callers) as pool:
            begin = perf_counter()
            pairs = list(pool.map(lambda _: self._pair(), range(how_many)))
            return pairs, perf_counter() - begin

    def fill(self, sandboxes: int) -> None:
        """Let so many sandboxes have an address each."""
        for _ in range(sandboxes):
            self._call("ADD", f"sandbox-{next(self._numbers)}")

    def _pair(self) -> Pair:
        sandbox = f"sandbox-{next(self._numbers)}"
        return Pair(self._call("ADD", sandbox), self._call("DEL", sandbox))

    def _call(self, verb: str, sandbox: str) -> float:
        call = request(verb, sandbox, pod=f"pod-of-{sandbox}", uid=f"uid-of-{sandbox}")
        begin = perf_counter()
        with socket.socket(socket.AF_UNIX) as agent:
            agent.connect(self._path)
            agent.sendall(call)
            with agent.makefile("rb") as answer:
                response = answer.read()
        seconds = perf_counter() - begin
        output(response)
        return seconds


def measure() -> Iterator[tuple[str, str]]:
    """Memory, then calls, then memory again, then starts."""
    with NodeWithAgent(addresses=ADDRESSES) as node:
        sleep(IDLE_SECONDS)
        yield f"memory of an idle agent with {ADDRESSES} addresses", _memory(node.agent_pid)
        runtime = Runtime(node)
        runtime.pairs(max(CALLERS), WARM_UP_PAIRS)
        for callers in CALLERS:
            cpu_before = cpu_seconds(node.agent_pid)
            pairs, seconds = runtime.pairs(callers, PAIRS)
            agent_seconds = (cpu_seconds(node.agent_pid) - cpu_before) / PAIRS
            yield f"ADD + DEL over the socket, {callers} at a time", f"{PAIRS / seconds:,.0f} pairs/s"
            yield f"ADD + DEL, {callers} at a time, of the agent", f"{agent_seconds * 1e3:.2f} CPU ms"
            yield f"ADD, {callers} at a time, p50 / p99", _percentiles([pair.add for pair in pairs])
            yield f"DEL, {callers} at a time, p50 / p99", _percentiles([pair.delete for pair in pairs])
        came_and_went = WARM_UP_PAIRS + len(CALLERS) * PAIRS
        yield f"memory after {came_and_went:,} pods came and went", _memory(node.agent_pid)
        yield "from start to ready, no pod", f"{_start_seconds(node):.2f} s"
        runtime.fill(ADDRESSES)
        yield f"from start to ready, {ADDRESSES} pods in the journal", f"{_start_seconds(node):.2f} s"


def _memory(pid: int) -> str:
    return f"{memory_bytes(pid) / 1e6:.1f} MB"


def _percentiles(seconds: list[float]) -> str:
    each = quantiles(seconds, n=100)
    return f"{each[49] * 1e3:.2f} / {each[98] * 1e3:.2f} ms"


def _start_seconds(node: NodeWithAgent) -> float:
    """From a kill until the next agent is ready, which is looked at every few hundredths of a second."""
    times = []
    for _ in range(STARTS):
        begin = perf_counter()
        node.restart_agent()
        times.append(perf_counter() - begin)
    return median(times)
