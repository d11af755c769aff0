"""What a node states beside its request, when it does so, and when it is in a hurry.

By batch 8 the demands 21 to 28 lead to the request 31. By batch 16 those up to 24 lead to 31, and from 25 on to 47.
"""

import asyncio
from itertools import pairwise

import pytest
from msgspec import structs

from agent.node_bench import Bench, CountingCluster, container
from cluster.faulty_cluster import Script
from podtide.agent.policy import ReactivePolicy
from podtide.cluster.port import R, Unavailable
from podtide.core.restating import EVERY_SECONDS, JITTER_SECONDS, REST_SECONDS
from podtide.core.statement import Statement
from podtide.resources.marks import STATEMENT_ANNOTATION
from podtide.resources.node_network_config import NodeNetworkConfig, Scaler
from podtide.resources.statements import MOST_NUMBER, number_in, render, statement_in
from podtide.runtime.clock import LoopClock

AN_HOUR = 3600.0


def stated(bench: Bench) -> list[Statement | None]:
    """What stood beside each request that was written."""
    return [
        statement_in(config.metadata.annotations, config.spec.requested_ip_count)
        for config in bench.cluster.applied
    ]


def demands(bench: Bench) -> list[int | None]:
    return [statement.demand if statement is not None else None for statement in stated(bench)]


def last_stated(bench: Bench) -> Statement:
    statement = stated(bench)[-1]
    assert statement is not None
    return statement


async def demand_of_25_after_24(bench: Bench) -> float:
    """The node has settled with 24 pods, and gets one more. Answers when."""
    await bench.schedule_many(24)
    await bench.settle(AN_HOUR)
    assert demands(bench) == [24]
    await bench.schedule("one-more")
    return bench.clock.monotonic()


# The statement


async def test_a_request_and_what_it_follows_from_are_one_write() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    await bench.schedule_many(22)
    async with bench.controller(), bench.running():
        await bench.settle(AN_HOUR)
        [statement] = stated(bench)
        assert statement is not None
        wall_ms = int((bench.clock.wall() - bench.clock.monotonic() + bench.cluster.applied_at[0]) * 1000)
        assert render(statement) == (
            '{"demand":22,"batch":8,"buffer":0.5,"max":250,"primaries":1,"request":31,'
            f'"number":{wall_ms},"top":16}}'
        )
        assert statement_in((await bench.config()).metadata.annotations, 31) == statement


async def test_without_a_cluster_subnet_the_nodes_own_parameters_are_stated_and_no_top() -> None:
    bench = Bench()
    config = await bench.join()
    await bench.fill_in(
        config.status.network_containers, scaler=Scaler(batch_size=8, request_threshold_percent=50)
    )
    async with bench.controller(), bench.running():
        await bench.settle()
        assert (last_stated(bench).batch, last_stated(bench).top) == (8, 0)
        assert "top" not in bench.cluster.applied[-1].metadata.annotations[STATEMENT_ANNOTATION]


async def test_several_containers_of_a_family_state_the_demand_of_the_node() -> None:
    bench = Bench()
    await bench.join(container("one"), container("two"))
    await bench.schedule_many(36)
    async with bench.controller(), bench.running():
        await bench.settle(AN_HOUR)
        [statement] = stated(bench)
        assert statement is not None
        assert (statement.demand, statement.primaries, statement.request) == (36, 2, 23)


async def test_of_two_subnets_the_top_is_that_of_the_one_that_decides() -> None:
    bench = Bench()
    await bench.join(container("four"), container("six", subnet="pods-v6", family=6))
    await bench.make_subnet(batch=16, top=64)
    await bench.make_subnet("pods-v6", batch=4, top=32)
    await bench.schedule_many(5)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert (last_stated(bench).batch, last_stated(bench).top) == (4, 32)
        await bench.set_subnet(batch=2, top=64)
        await bench.settle(60)
        assert (last_stated(bench).batch, last_stated(bench).top) == (2, 64)


async def test_of_two_subnets_that_ask_for_the_same_the_smaller_batch_is_stated() -> None:
    bench = Bench()
    await bench.join(container("four"), container("six", subnet="pods-v6", family=6))
    await bench.make_subnet(batch=16, top=16)
    await bench.make_subnet("pods-v6", batch=8, top=16)
    await bench.schedule_many(7)  # 15 by either batch
    async with bench.controller(), bench.running():
        await bench.settle()
        assert (last_stated(bench).batch, last_stated(bench).request) == (8, 15)


async def test_a_node_whose_maximum_is_below_the_batch_is_at_its_top() -> None:
    bench = Bench()
    config = await bench.join()
    await bench.fill_in(config.status.network_containers, scaler=Scaler(max_ip_count=10))
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert (last_stated(bench).batch, last_stated(bench).top) == (10, 10)
        await bench.schedule_many(3)
        await bench.settle(AN_HOUR)
        assert len(bench.cluster.applied) == 1


@pytest.mark.parametrize(("batch", "buffer"), [(8, 0.5), (1, 1.0)])
async def test_a_policy_that_does_not_go_by_demand_states_nothing(batch: int, buffer: float) -> None:
    bench = Bench(policy=ReactivePolicy())
    await bench.join()
    await bench.make_subnet(batch=batch, buffer=buffer, top=16)
    async with bench.controller(), bench.running():
        await bench.settle()
        await bench.edit_request(500)
        await bench.settle(AN_HOUR)
        assert len(bench.cluster.applied) > 1
        assert all(STATEMENT_ANNOTATION not in each.metadata.annotations for each in bench.cluster.applied)


async def test_a_policy_that_states_nothing_does_not_keep_what_another_stated() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=1, buffer=1.0, top=16)
    async with bench.controller():
        async with bench.running():
            await bench.settle()
            assert demands(bench) == [0]
        bench.policy = ReactivePolicy()
        async with bench.running():
            await name_for_release(bench, "somebody-elses")
            await bench.settle()
            assert (bench.cluster.requests[-1], demands(bench)[-1]) == (1, None)


async def test_parameters_that_nobody_would_read_are_followed_and_not_stated() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, buffer=1e-100, top=16)
    async with bench.controller(), bench.running():
        await bench.settle(AN_HOUR)
        assert (bench.cluster.requests, stated(bench)) == ([15], [None])


# Its number


async def test_the_number_grows_over_a_restart_with_a_clock_that_was_set_back() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    async with bench.controller():
        async with bench.running():
            await bench.settle()
        bench.clock = LoopClock(epoch=1_000_000.0)
        async with bench.running():
            await bench.schedule_many(36)
            await bench.settle()
            await bench.edit_request(3)
            await bench.settle()
    numbers = [statement.number for statement in stated(bench) if statement is not None]
    assert len(numbers) == 3
    assert (numbers[1], numbers[2]) == (numbers[0] + 1, numbers[0] + 2)


async def test_the_number_grows_over_a_restart_that_knows_of_no_earlier_one() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    async with bench.controller():
        async with bench.running():
            await bench.settle()
        await bench.annotate(STATEMENT_ANNOTATION, None)
        async with bench.running():
            await bench.settle()
    first, second = stated(bench)
    assert first is not None
    assert second is not None
    assert second.number > first.number


async def test_the_number_grows_while_the_annotation_is_gone_and_the_clock_set_back() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    bench.clock = clock = ClockSetBack()
    async with bench.controller(), bench.running():
        await bench.settle()
        clock.set_back_by = 1_000_000.0
        await bench.annotate(STATEMENT_ANNOTATION, None)
        await bench.settle()
        first, second = stated(bench)
        assert first is not None
        assert second is not None
        assert second.number == first.number + 1


class ClockSetBack(LoopClock):
    """Somebody sets the wall clock back."""

    set_back_by = 0.0

    def wall(self) -> float:
        return super().wall() - self.set_back_by


async def test_a_number_that_cannot_grow_ends_no_statement_and_starts_no_endless_writing() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    async with bench.controller(), bench.running():
        await bench.settle()
        odd = structs.replace(last_stated(bench), number=MOST_NUMBER)
        await bench.annotate(STATEMENT_ANNOTATION, render(odd))
        await bench.schedule_many(36)
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [15, 47]
        assert last_stated(bench).number == MOST_NUMBER


# Answers to a new batch


async def test_the_answer_to_a_new_batch_that_leaves_the_request_as_it_is_is_one_write() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    await bench.schedule_many(22)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        await bench.set_subnet(batch=8, top=16)
        at = bench.clock.monotonic()
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [31, 31]
        assert bench.cluster.applied_at[-1] == pytest.approx(at + bench.settings.gather_seconds, abs=0.02)
        assert (last_stated(bench).batch, last_stated(bench).demand) == (8, 22)
        assert agent.addresses.state().restatements == 1


async def test_the_answer_to_a_batch_that_changes_the_request_is_that_request() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    await bench.schedule_many(20)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        await bench.set_subnet(batch=32, top=32)
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [31, 63]
        assert last_stated(bench).batch == 32
        assert agent.addresses.state().restatements == 0


@pytest.mark.parametrize("text", [None, "?", '{"demand":3}'])
async def test_what_people_make_of_the_annotation_is_mended_by_one_write(text: str | None) -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle()
        await bench.annotate(STATEMENT_ANNOTATION, text)
        await bench.settle(AN_HOUR)
        assert demands(bench) == [0, 0]
        assert statement_in((await bench.config()).metadata.annotations, 15) == last_stated(bench)


async def test_a_request_from_before_statements_is_stated_once() -> None:
    bench = Bench()
    await bench.join()
    await bench.edit_request(15)
    async with bench.controller(), bench.running():
        await bench.settle(AN_HOUR)
        assert (bench.cluster.requests, demands(bench)) == ([15], [0])


class Dropping(CountingCluster):
    """Somebody between agent and store drops annotations, as an admission webhook can."""

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        metadata = structs.replace(item.metadata, annotations={})
        return await super().apply(structs.replace(item, metadata=metadata), manager=manager, force=force)


async def test_a_cluster_that_drops_statements_is_not_told_without_end() -> None:
    bench = Bench()
    bench.cluster = Dropping(bench.server, Script())
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [7]
        await bench.schedule_many(36)
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [7, 39]
        [warning] = [line for line in bench.lines.getvalue().splitlines() if "dropped an annotation" in line]
        assert STATEMENT_ANNOTATION in warning


class LateEvents:
    """What the watches bring comes late."""

    def __init__(self, seconds: float = 2.0) -> None:
        self.seconds = seconds

    async def before(self, call: str) -> None:
        if call == "event":
            await asyncio.sleep(self.seconds)

    async def after(self, call: str) -> None:
        """Answers come at once."""


async def test_a_statement_that_is_seen_late_is_not_written_again() -> None:
    bench = Bench(faults=LateEvents())
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    await bench.schedule_many(22)
    async with bench.controller(), bench.running():
        await bench.settle(60)
        await bench.set_subnet(batch=8, top=16)
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [31, 31]


async def test_what_others_made_of_our_write_before_we_saw_it_is_mended() -> None:
    bench = Bench(faults=(faults := LateEvents(0.0)))
    await bench.join()
    async with bench.running():
        faults.seconds = 60.0
        await bench.settle(1)
        assert bench.cluster.requests == [15]
        await bench.annotate(STATEMENT_ANNOTATION, None)
        await bench.edit_request(20)
        await bench.edit_request(15)
        faults.seconds = 0.0
        bench.server.expire_history()
        bench.server.close_watches()
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [15, 15]
        assert statement_in((await bench.config()).metadata.annotations, 15) == last_stated(bench)


# Writes for another reason


async def test_a_tidy_write_that_keeps_the_old_request_keeps_its_statement() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    pods = await bench.schedule_many(36)
    async with bench.controller(), bench.running():
        await bench.settle()
        for pod in pods:
            await bench.remove(pod)
        await bench.settle()
        await name_for_release(bench, "somebody-elses")
        await bench.settle()
        written = [each.metadata.annotations[STATEMENT_ANNOTATION] for each in bench.cluster.applied]
        assert bench.cluster.requests == [47] * len(written)
        assert len(written) >= 2
        assert len(set(written)) == 1
        await bench.settle(60)
        assert (bench.cluster.requests[-1], demands(bench)[-1]) == (15, 0)


async def test_a_tidy_write_keeps_no_statement_that_does_not_belong() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle()
        await bench.edit_request(100)
        await name_for_release(bench, "somebody-elses")
        await bench.settle()
        tidied = bench.cluster.applied[1]
        assert tidied.spec.requested_ip_count == 100
        assert STATEMENT_ANNOTATION not in tidied.metadata.annotations
        await bench.settle(60)
        assert (bench.cluster.requests[-1], demands(bench)[-1]) == (15, 0)


async def test_a_tidy_write_at_the_target_states_nothing_new_unless_demand_changed() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await bench.settle()
        await name_for_release(bench, "somebody-elses")
        await bench.settle()
        assert set(stated(bench)) == {last_stated(bench)}
        await bench.schedule_many(3)
        await bench.settle()
        before = len(bench.cluster.applied)
        await name_for_release(bench, "a-third-ones")
        await bench.settle()
        assert set(demands(bench)[before:]) == {3}


async def name_for_release(bench: Bench, name: str) -> None:
    config = await bench.config()
    spec = structs.replace(config.spec, ips_not_in_use=[*config.spec.ips_not_in_use, name])
    await bench.server.replace(structs.replace(config, spec=spec), manager="kubectl")


# Stating anew


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
        config: NodeNetworkConfig = await bench.config()
        assert number_in(config.metadata.annotations) == last_stated(bench).number


# In a hurry or not


async def held_after_a_pod_went(bench: Bench) -> list[int]:
    """What the node asks for a moment after a pod went, and after the time that a smaller request has to stand."""
    pods = await bench.schedule_many(3)
    await bench.settle(60)
    await bench.remove(pods[0])
    requests = []
    for seconds in (2.0, bench.settings.shrink_delay_seconds):
        await bench.settle(seconds)
        requests.append((await bench.config()).spec.requested_ip_count)
    return requests


async def test_who_has_answered_the_batch_of_an_exhausted_subnet_is_in_no_hurry() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=1, buffer=1.0, top=16, exhausted=True)
    async with bench.controller(), bench.running():
        assert await held_after_a_pod_went(bench) == [4, 3]


async def test_who_has_not_answered_the_batch_of_an_exhausted_subnet_shrinks_at_once() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await bench.settle(60)
        await bench.set_subnet(batch=1, buffer=1.0, top=16, exhausted=True)
        await bench.settle(1)
        assert (await bench.config()).spec.requested_ip_count == 1


async def test_a_smaller_batch_of_a_subnet_at_ease_is_no_hurry() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await bench.settle(60)
        await bench.set_subnet(batch=8, top=16)
        await bench.settle(20)
        assert (await bench.config()).spec.requested_ip_count == 15
        await bench.settle(20)
        assert (await bench.config()).spec.requested_ip_count == 7


async def test_in_a_starved_subnet_everybody_is_in_a_hurry() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=1, buffer=0.0, top=16, exhausted=True, starved=True)
    async with bench.controller(), bench.running():
        assert await held_after_a_pod_went(bench) == [2, 2]


async def test_who_knows_of_exhaustion_by_the_state_alone_is_in_a_hurry_while_it_lasts() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        assert await held_after_a_pod_went(bench) == [3, 3]
