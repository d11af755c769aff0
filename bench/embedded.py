"""How quickly the embedded cluster takes writes, and whether watchers that a write does not concern slow it down."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from podtide.cluster.embedded import EmbeddedCluster
from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodSpec

PART = "cluster"
CREATES = 2_000
CREATES_IN_A_FILE = 300
WATCHERS = 5_000
ROUNDS = 5


def measure() -> Iterator[tuple[str, str]]:
    """Creates of pods of one node, watched by that node alone and by 5,000 nodes; the rounds take turns."""
    rates: dict[int, list[float]] = {1: [], WATCHERS: []}
    for _ in range(ROUNDS):
        for watchers, measured in rates.items():
            measured.append(asyncio.run(_creates_per_second(watchers)))
    one, many = median(rates[1]), median(rates[WATCHERS])
    yield "embedded: creates, one watcher in all", f"{one:,.0f}/s"
    yield f"embedded: creates, {WATCHERS:,} node-scoped watchers, one concerned", f"{many:,.0f}/s"
    yield f"embedded: {WATCHERS:,} watchers : one watcher", f"{many / one:.2f}"
    with TemporaryDirectory() as directory:
        rate = asyncio.run(_creates_per_second(1, Path(directory) / "cluster.db", CREATES_IN_A_FILE))
    yield "embedded in a file: creates, each on the disk before its answer", f"{rate:,.0f}/s"


async def _creates_per_second(watchers: int, file: Path | None = None, creates: int = CREATES) -> float:
    cluster = EmbeddedCluster(file)
    start = (await cluster.list(Pod)).resource_version
    watching = [asyncio.create_task(_watch(cluster, f"node-{number}", start)) for number in range(watchers)]
    await asyncio.sleep(0.1)  # until every watch is open
    pods = [
        Pod(metadata=ObjectMeta(name=f"pod-{number}", namespace="default"), spec=PodSpec(node_name="node-0"))
        for number in range(creates)
    ]
    begin = perf_counter()
    for pod in pods:
        await cluster.create(pod, manager="bench")
    seconds = perf_counter() - begin
    cluster.close()
    seen = await asyncio.gather(*watching)
    assert seen == [creates] + [0] * (watchers - 1)
    return creates / seconds


async def _watch(cluster: EmbeddedCluster, node: str, start: str) -> int:
    seen = 0
    async with aclosing(cluster.watch(Pod, resource_version=start, fields=f"spec.nodeName={node}")) as events:
        async for _ in events:
            seen += 1
    return seen
