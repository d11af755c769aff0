"""When a node whose request stays as it is states its demand anew (see `statements` for the numbers)."""

from itertools import pairwise

import pytest

from agent.node_bench import Bench
from agent.statements import AN_HOUR, demand_of_25_after_24, demands, last_stated, stated
from cluster.faulty_cluster import Script
from podtide.cluster.port import Unavailable
from podtide.core.subnet.statement_refresh import EVERY_SECONDS, JITTER_SECONDS, REST_SECONDS
from podtide.resources.statement_annotation import number_in


async def test_below_the_top_a_demand_that_makes_a_difference_is_stated_once_it_has_rested() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running() as agent:
        at = await demand_of_25_after_24(bench)
        await bench.settle(AN_HOUR)
        assert (bench.cluster.requests, demands(bench)) == ([31, 31], [24, 25])
        rested = bench.cluster.applied_at[-1] - at
        assert REST_SECONDS < rested < REST_SECONDS + JITTER_SECONDS + 1
        assert agent.addresses.state().restatements == 1


@pytest.mark.parametrize("top", [8, None])
async def test_at_the_top_nobody_states_anew(top: int | None) -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=top)
    async with bench.controller(), bench.running():
        await demand_of_25_after_24(bench)
        await bench.settle(AN_HOUR)
        assert demands(bench) == [24]


async def test_a_demand_that_makes_no_difference_at_a_larger_batch_is_not_stated_anew() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await bench.schedule_many(22)
        await bench.settle()
        await bench.schedule_many(2, "more")
        await bench.settle(AN_HOUR)
        assert demands(bench) == [22]


async def test_a_demand_that_does_not_rest_is_not_stated_anew() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await demand_of_25_after_24(bench)
        for number in range(60):
            await bench.settle(REST_SECONDS / 2)
            pod = await bench.schedule(f"passing-{number}")
            await bench.settle(REST_SECONDS / 2)
            await bench.remove(pod)
        assert demands(bench) == [24]


async def test_a_demand_that_comes_and_goes_is_stated_at_most_every_five_minutes() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await bench.schedule_many(24)
        await bench.settle()
        for number in range(40):
            pod = await bench.schedule(f"passing-{number}")
            await bench.settle(100)
            await bench.remove(pod)
            await bench.settle(100)
        times = bench.cluster.applied_at[1:]
        assert len(times) > 10
        assert all(later - earlier >= EVERY_SECONDS for earlier, later in pairwise(times))


async def test_a_new_request_makes_stating_anew_moot() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running() as agent:
        await demand_of_25_after_24(bench)
        await bench.settle(REST_SECONDS / 2)
        await bench.schedule_many(5, "more")
        await bench.settle(AN_HOUR)
        assert (bench.cluster.requests, demands(bench)) == ([31, 39], [24, 30])
        assert agent.addresses.state().restatements == 0


async def test_an_answer_to_a_new_batch_does_not_count_towards_the_five_minutes() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await bench.schedule_many(24)
        await bench.settle()
        await bench.set_subnet(batch=8, top=16)
        await bench.settle()
        await bench.schedule("one-more")
        await bench.settle(REST_SECONDS + JITTER_SECONDS + 1)
        assert demands(bench) == [24, 24, 25]


async def test_when_the_top_is_raised_what_was_stated_at_the_old_one_is_stated_anew_once() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await bench.settle(AN_HOUR)
        await bench.set_subnet(batch=16, top=32)
        await bench.settle(AN_HOUR)
        assert [each.top for each in stated(bench) if each is not None] == [16, 32]


async def test_a_lost_answer_to_a_statement_is_not_stated_again() -> None:
    faults = Script()
    bench = Bench(faults=faults)
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await demand_of_25_after_24(bench)
        faults.lost_answers["apply"] = [Unavailable("the connection broke")]
        await bench.settle(AN_HOUR)
        assert demands(bench) == [24, 25]


async def test_a_statement_that_could_not_be_written_is_tried_again() -> None:
    faults = Script()
    bench = Bench(faults=faults)
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await demand_of_25_after_24(bench)
        faults.steps["apply"] = [Unavailable("down")] * 2
        await bench.settle(REST_SECONDS + JITTER_SECONDS + 30)
        assert demands(bench) == [24, 25, 25, 25]
        config = await bench.config()
        assert number_in(config.metadata.annotations) == last_stated(bench).number
