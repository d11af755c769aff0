"""What a node states beside its request: what it follows from, by a number that only grows."""

import pytest
from msgspec import structs

from agent.node_bench import Bench, container
from agent.statements import AN_HOUR, demands, last_stated, stated
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION
from podtide.resources.node_network_config import ScalerStatus
from podtide.resources.statement_annotation import MOST_NUMBER, render, statement_in
from podtide.runtime.clock import LoopClock
from podtide.simulation.nodes.other_agents import ReactivePolicy

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
        config.status.network_containers, scaler=ScalerStatus(batch_size=8, request_threshold_percent=50)
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
    await bench.fill_in(config.status.network_containers, scaler=ScalerStatus(max_ip_count=10))
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
