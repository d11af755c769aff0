"""The one-lease design that slices replace, under the conditions of `networks`: every ADD of the cluster takes turns.

It is a model, but it contends for a real Lease object: each ADD takes the cluster's one Lease with the terms and pauses
that Whereabouts has, makes the calls that an ADD makes there (WIRE.md §6), and gives it up. The kubelet waits for a pod's
sandbox for four minutes; what is not there by then it tears down and begins anew.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import Struct, structs

from busy_api_server import BusyApiServer, CountedLine, percentile
from podtide.cluster.lease_record import Claim, held, released
from podtide.cluster.port import Cluster, Conflict
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.timestamps import to_micro_time, to_wall_seconds
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness

PART = "networks"
SIZES = (32, 128, 256)
NETWORKS = 10
TERM_SECONDS, RETRY_SECONDS, JITTER = 1.5, 0.5, 1.2
CALLS_UNDER_LEASE = 7
"""Of ten calls per ADD, those between taking the Lease and giving it up."""
KUBELET_SECONDS = 240.0
_NAME, _NAMESPACE = "whereabouts", "kube-system"


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one pod on every node."""

    nodes: int
    ready: int
    seconds: float
    p99_seconds: float
    writes: int
    adds: int


def measure() -> Iterator[tuple[str, str]]:
    """Sizes up to the one at which the paper saw kubelets give up."""
    for nodes in SIZES:
        outcome = virtual_time.run(_run(nodes))
        size = f"one lease: {nodes} nodes, {NETWORKS} networks"
        late = nodes - outcome.ready
        yield (
            f"{size}: pods ready before the kubelet gives up",
            f"{outcome.ready} of {nodes}" + (f", {late} timed out" if late else ""),
        )
        yield f"{size}: until then", f"{outcome.seconds:.0f} s"
        yield f"{size}: writes per ADD", f"{outcome.writes / outcome.adds:.2f}"
        yield f"{size}: ADD, p99", f"{outcome.p99_seconds * 1e3:,.0f} ms"


async def _run(nodes: int) -> Outcome:
    server, calls, clock = BusyApiServer(), Counter[str](), LoopClock()
    place = ObjectMeta(name=_NAME, namespace=_NAMESPACE)
    await server.cluster.create(Lease(metadata=place, spec=LeaseSpec()), manager="bench")
    took: list[float] = []
    ready = 0

    async def attach(number: int) -> None:
        nonlocal ready
        line = CountedLine(server, calls, Counter(), "nodes")
        randomness = seeded_randomness(f"node-{number}")
        try:
            async with asyncio.timeout(KUBELET_SECONDS):
                for _ in range(NETWORKS):
                    began = clock.monotonic()
                    await _add(line, f"node-{number}", clock, randomness.random)
                    took.append(clock.monotonic() - began)
        except TimeoutError:
            return
        ready += 1

    await asyncio.gather(*map(attach, range(nodes)))
    outcome = Outcome(
        nodes=nodes,
        ready=ready,
        seconds=clock.monotonic(),
        p99_seconds=percentile(took, 0.99),
        writes=calls["nodes writes"],
        adds=len(took),
    )
    server.cluster.close()
    return outcome


async def _add(line: Cluster, node: str, clock: LoopClock, draw: Callable[[], float]) -> None:
    lease = None
    while lease is None:
        lease = await _try_to_take(line, node, clock)
        if lease is None:
            await asyncio.sleep(RETRY_SECONDS * (1 + JITTER * draw()))
    for _ in range(CALLS_UNDER_LEASE):
        await line.list(IPPool, limit=1)
    await line.replace(structs.replace(lease, spec=released(lease.spec)), manager=node)


async def _try_to_take(line: Cluster, node: str, clock: LoopClock) -> Lease | None:
    """The Lease, if nobody holds it and nobody else was quicker."""
    there = await line.get(Lease, _NAME, _NAMESPACE)
    now = clock.wall()
    if there.spec.holder_identity and now < to_wall_seconds(there.spec.renew_time or "") + TERM_SECONDS:
        return None
    claim = Claim(node, there.spec.lease_transitions + 1, to_micro_time(now))
    taken = structs.replace(there, spec=held(there.spec, claim, TERM_SECONDS, now))
    try:
        return await line.replace(taken, manager=node)
    except Conflict:
        return None
