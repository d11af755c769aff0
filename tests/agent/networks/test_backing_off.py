"""Where nodes are in each other's way in a shared pool, they get out of step: each waits a time of its own, and longer.

Two who failed at one instant and waited alike would meet again at the next. The waits are drawn from the randomness that
an agent is given, so with a seed they are the same in every run.
"""

import asyncio
from itertools import pairwise

import pytest

from agent.networks.network_bench import CLASSIC, Bench, Machine
from podtide.agent.port import NoAddress
from podtide.cluster.port import Conflict, R

FLOOR_SECONDS = 0.005
CAP_SECONDS = 1.0


async def attempts(bench: Bench, node: Machine, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the node tries to write the pool, which somebody else has always just written."""
    instants: list[float] = []

    async def come_too_late(item: R, *, manager: str) -> R:
        del manager
        instants.append(bench.clock.monotonic())
        raise Conflict(f"{item.key} was changed by somebody else")

    monkeypatch.setattr(node.line, "replace", come_too_late)
    with pytest.raises(NoAddress):
        await node.add("c1", CLASSIC)
    return instants


def waits(instants: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(instants)]


async def test_each_wait_is_drawn_between_a_floor_and_a_ceiling_that_doubles_up_to_a_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    async with bench.machine() as node:
        drawn = waits(await attempts(bench, node, monkeypatch))
    assert len(drawn) > 15
    for failures, seconds in enumerate(drawn, start=1):
        ceiling = min(CAP_SECONDS, FLOOR_SECONDS * 2.0**failures)
        assert FLOOR_SECONDS - 1e-9 <= seconds <= ceiling + 1e-9
    assert max(drawn) > CAP_SECONDS / 2, "it comes to wait long"
    assert len(set(drawn)) == len(drawn), "no two waits are the same"


async def test_two_nodes_that_failed_at_one_instant_do_not_meet_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await asyncio.gather(one.networks.require_ready(), other.networks.require_ready())
        first, second = await asyncio.gather(
            attempts(bench, one, monkeypatch), attempts(bench, other, monkeypatch)
        )
    assert not set(first[1:]) & set(second[1:])


async def test_with_the_same_seed_the_waits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for _ in range(2):
        bench = Bench()
        async with bench.machine() as node:
            runs.append(waits(await attempts(bench, node, monkeypatch)))
    assert runs[0] == pytest.approx(runs[1])


async def test_after_a_write_that_succeeds_the_waits_begin_anew() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [Conflict("409")] * 8
        await node.add("c1", CLASSIC)
        node.line.before["replace IPPool"] = [Conflict("409")]
        started = bench.clock.monotonic()
        await node.add("c2", CLASSIC)
        assert bench.clock.monotonic() - started <= 2 * FLOOR_SECONDS
