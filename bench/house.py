"""How large the code base is for those who read it: figures that are the same on every machine.

Functions walked: how many of an agent's functions a reader follows from a request to its answer, each counted once. The
API server, and the client that calls it, are not counted.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Self

import podtide
from network_fleet import network_text
from plugin_calls import CONFIGURATION, body
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.resources.base import ObjectMeta
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.runtime import virtual_time
from podtide.runtime.memory_disk import MemoryDisk
from podtide.simulation.world.world import World
from simulated_cluster import cluster

PART = "house"
BURST = 35
_NETWORK = network_text("slices", range="10.8.0.0/16", node_slice_size="/26")
_SOURCE = Path(podtide.__file__).parent
_AGENT = tuple(
    f"{_SOURCE}/{package}/" for package in ("agent", "cni", "core", "networks", "resources", "runtime")
)
"""What an agent is made of, beside the client of the API server."""


class Walked:
    """The functions of an agent that are entered in a block of code."""

    def __init__(self) -> None:
        self._functions: set[CodeType] = set()

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def __str__(self) -> str:
        return f"{len(self._functions)} functions"

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name[0] != "<" and code.co_filename.startswith(_AGENT):
            self._functions.add(code)


def measure() -> Iterator[tuple[str, str]]:
    """What the files show, then what calls enter."""
    texts = [path.read_text() for path in _SOURCE.rglob("*.py")]
    lengths = [len(text.splitlines()) for text in texts]
    yield "modules", f"{len(texts)}"
    yield "lines", f"{sum(lengths):,}"
    yield "median and longest module", f"{median(lengths):.0f}, {max(lengths)} lines"
    yield "longest class", f"{max(map(_longest_class, texts))} lines"
    suppressed = [rule for text in texts for rule in _suppressed(text)]
    yield "suppressed rules", f"{len(suppressed)}"
    for rule, times in Counter(suppressed).most_common(5):
        yield f"… {rule}", f"{times}"
    yield from virtual_time.run(_walked())


def _longest_class(text: str) -> int:
    classes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))
    return max(((node.end_lineno or 0) - node.lineno + 1 for node in classes), default=0)


def _suppressed(text: str) -> Iterator[str]:
    """The rules of ruff that are off for a line, and a word for what mypy is told to ignore."""
    for rules in re.findall(r"# noqa: ([A-Z0-9, ]+)", text):
        yield from re.findall(r"[A-Z]+[0-9]+", rules)
    yield from ["type: ignore"] * len(re.findall(r"# type: ignore", text))


async def _walked() -> list[tuple[str, str]]:
    """An ADD of each kind, after one that nothing was counted of, and a burst of pods."""
    async with cluster(1, "10.0.0.0/16", audited=False) as world:
        (node,) = world.machines
        place = ObjectMeta(name="slices", namespace="default")
        spec = NetworkAttachmentDefinitionSpec(config=_NETWORK)
        await world.cluster.create(NetworkAttachmentDefinition(metadata=place, spec=spec), manager="bench")
        await world.pass_time(60)
        with Walked() as burst:
            await world.workload.add_pods(node, BURST)
            await world.until(lambda: world.running_pods(node) == BURST, within=60)
        await world.pass_time(60)
        await world.programs.kill("controller")
        from_pool = await _add(world, node, CONFIGURATION)
        from_slice = await _add(world, node, _NETWORK.encode())
    return [
        ("functions walked: ADD from the pool", str(from_pool)),
        ("functions walked: ADD from a node's slice, warm", str(from_slice)),
        (f"functions walked: {BURST} pods for which the pool is too small", str(burst)),
    ]


async def _add(world: World, node: str, configuration: bytes) -> Walked:
    """What a second ADD enters, from its request to its answer."""
    agent = world.machines[node].agent
    assert agent is not None
    notes = DeletionNotes(MemoryDisk(), agent.addresses, agent.networks, log=world.log)
    calls = CniCalls(agent.addresses, notes, agent.networks, clock=world.clock, log=world.log)

    async def add(pod: str) -> Walked:
        call = body("ADD", f"sandbox-of-{pod}", pod=pod, uid=f"uid-of-{pod}", configuration=configuration)
        with Walked() as walked:
            answer = await calls.reply(call, arrived=world.clock.monotonic())
        assert answer.exit_status == 0, answer.output
        return walked

    await add("first")
    return await add("second")
