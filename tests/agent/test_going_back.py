"""A cluster restored from a backup under a running agent: what pods have stays theirs, and the request is made anew."""

from typing import Any

import pytest

from agent.node_bench import Bench
from podtide.core.pool.states import State


async def test_a_request_that_went_with_the_restore_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its answer is all that was ever heard of it."""
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle(30)
        await bench.schedule_many(20)
        backup, apply = bench.server.snapshot(), bench.server.apply

        async def apply_and_restore(*arguments: Any, **more: Any) -> Any:
            answer = await apply(*arguments, **more)
            bench.server.restore(backup)
            monkeypatch.undo()
            return answer

        monkeypatch.setattr(bench.server, "apply", apply_and_restore)
        await bench.settle(60)
        assert bench.cluster.requests == [15, 31, 31]
        assert (await bench.config()).spec.requested_ip_count == 31


async def test_an_agent_that_has_seen_newer_grants_keeps_them_through_a_restore() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle(30)
        backup = bench.server.snapshot()
        pods = await bench.schedule_many(20)
        had = [await bench.add(pod.metadata.name, pod) for pod in pods]
        newest = await bench.config()
        bench.server.restore(backup)
        await bench.settle(10)
        state = bench.agent.addresses.state()
        assert (state.alarms, state.counts[State.ASSIGNED]) == (0, 20)
        one_more = await bench.schedule("one-more")
        given = await bench.add("one-more", one_more)
        assert given not in had
        await bench.fill_in(newest.status.network_containers)  # the controller writes it anew
        await bench.settle(60)
        assert bench.agent.addresses.state().alarms == 0
        assert [await bench.add(pod.metadata.name, pod) for pod in pods] == had
