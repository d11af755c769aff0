"""An agent that must stop, stops; one that is killed leaves nothing that its successor depends on."""

import asyncio
from typing import NoReturn

import pytest

from agent.node_bench import Bench
from podtide.agent.program import NodeAgent
from podtide.core.pool.states import BrokenPool
from podtide.runtime.disk import DiskFailed
from podtide.runtime.randomness import seeded_randomness


async def test_a_journal_that_cannot_be_written_ends_the_program_and_nothing_more_is_handed_out() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller():
        agent, ended = await started(bench)
        await bench.add("before")
        bench.disk.crash(seeded_randomness(1))
        with pytest.raises(DiskFailed):
            await bench.add("sandbox")
        with pytest.raises(DiskFailed):
            await bench.add("another")
        with pytest.raises(DiskFailed):
            bench.delete("before")
        with pytest.raises(DiskFailed):
            await ended
        agent.close()


async def test_a_contradiction_in_what_the_cluster_says_ends_the_program() -> None:
    bench = Bench()
    await bench.join()
    agent, ended = await started(bench)

    def contradict(*_: object) -> None:
        raise BrokenPool("the pool's records contradict themselves")

    agent._journaled.pool.apply = contradict  # type: ignore[assignment,method-assign] # to break an invariant
    await bench.settle()
    await bench.grant()
    with pytest.raises(BrokenPool):
        await ended
    agent.close()


async def started(bench: Bench) -> tuple[NodeAgent, "asyncio.Task[NoReturn]"]:
    """An agent that is expected to end by itself."""
    agent = bench.make_agent()
    task = asyncio.create_task(agent.run())
    await agent.synced.wait()
    return agent, task


@pytest.mark.parametrize("seed", range(8))
async def test_killed_at_any_moment_it_comes_back_with_everything(seed: int) -> None:
    bench = Bench()
    await bench.join()
    randomness = seeded_randomness(seed)
    held: dict[str, tuple[str, ...]] = {}
    async with bench.controller():
        for life in range(6):
            async with bench.running(sync=False) as agent:
                turns = randomness.randrange(200)
                for _ in range(turns):
                    await asyncio.sleep(0)
                for number in range(randomness.randrange(12)):
                    sandbox = f"{life}-{number}"
                    held[sandbox] = await bench.add(sandbox)
                for sandbox in randomness.sample(sorted(held), len(held) // 3):
                    assert bench.delete(sandbox) == held.pop(sandbox)
                agent._journaled.close()
                bench.disk.locked.clear()
            assert len(set(held.values())) == len(held)
        async with bench.running():
            for sandbox, addresses in held.items():
                assert await bench.add(sandbox) == addresses
            await bench.settle(60)
            assert bench.agent.addresses.state().demand == len(held)
