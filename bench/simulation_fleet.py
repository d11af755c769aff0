"""How large a simulated cluster can be: nodes join, thirty pods come to each, and all go, for more and more nodes.

Each size has a process of its own, so that what one needs is not what another left behind.
"""

import asyncio
import multiprocessing
import resource
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from podtide.runtime import virtual_time
from podtide.simulation.world.world import World
from simulated_cluster import PATIENCE_SECONDS, SECONDS_BETWEEN_NODES, Passed, Stopwatch, cluster

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

PART = "simulation"
SIZES = (500, 1_000, 2_000, 5_000)
PODS_PER_NODE = 30
SUBNET = "10.0.0.0/13"

_spawn = multiprocessing.get_context("spawn")


class Course(Struct, frozen=True):
    """How it went."""

    passed: Passed
    peak_megabytes: float


def measure() -> Iterator[tuple[str, str]]:
    """Every size: seconds on the wall and on the processor, and memory; then what a node costs in the largest."""
    courses = {}
    for nodes in SIZES:
        course = courses[nodes] = _in_a_process(nodes)
        yield (
            f"{nodes:,} nodes, {nodes * PODS_PER_NODE:,} pods: come and gone in",
            f"{course.passed.wall:,.0f} s, {course.passed.processor:,.0f} CPU s",
        )
        yield "… peak memory", f"{course.peak_megabytes:,.0f} MB"
    smallest, largest = (courses[nodes].passed.processor / nodes for nodes in (SIZES[0], SIZES[-1]))
    yield f"processor time per node, {SIZES[-1]:,} nodes : {SIZES[0]:,}", f"{largest / smallest:.2f}"


def _in_a_process(nodes: int) -> Course:
    results: SimpleQueue[Course] = _spawn.SimpleQueue()
    process = _spawn.Process(target=_report, args=(nodes, results))
    process.start()
    course = results.get()
    process.join()
    return course


def _report(nodes: int, results: "SimpleQueue[Course]") -> None:
    passed = virtual_time.run(_fill_and_empty(nodes))
    results.put(Course(passed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


async def _fill_and_empty(nodes: int) -> Passed:
    stopwatch = Stopwatch()
    async with cluster(nodes, SUBNET, audited=True) as world:
        names = await asyncio.gather(
            *(_fill(world, node, place) for place, node in enumerate(world.machines))
        )
        await world.until(lambda: world.running_pods() == nodes * PODS_PER_NODE, within=PATIENCE_SECONDS)
        await asyncio.gather(*(_empty(world, pods, place) for place, pods in enumerate(names)))
        await world.until(lambda: world.running_pods() == 0, within=PATIENCE_SECONDS)
        return stopwatch.read()


async def _fill(world: World, node: str, place: int) -> list[str]:
    await asyncio.sleep(place * SECONDS_BETWEEN_NODES)
    return await world.workload.add_pods(node, PODS_PER_NODE)


async def _empty(world: World, pods: list[str], place: int) -> None:
    await asyncio.sleep(place * SECONDS_BETWEEN_NODES)
    for pod in pods:
        await world.workload.remove_pod(pod)
