import asyncio
from fractions import Fraction

import pytest

from agent.node_bench import Bench, container
from cluster.faulty_cluster import Script
from podtide.agent.request.subnet_view import KEPT_SECONDS, SubnetView
from podtide.cluster.port import NotFound, Unavailable
from podtide.core.subnet.scaler import Scaler
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

SUBNET = "ClusterSubnet metadata.name=pods"
STATE = "ClusterSubnetState metadata.name=pods"


async def test_without_a_cluster_subnet_a_flip_of_the_state_alone_brings_the_node_to_one_free() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        for number in range(4):
            await bench.add(f"sandbox-{number}")
        assert bench.cluster.is_watching(STATE)
        await bench.set_state(exhausted=True)
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 5
        assert agent.addresses.state().exhausted
        await bench.set_state(exhausted=False)
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 15


async def test_a_deleted_state_no_longer_counts() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.requests == [1]
        await bench.server.delete(ClusterSubnetState, "pods", SYSTEM_NAMESPACE)
        await bench.settle()
        assert bench.cluster.requests == [1, 15]


async def test_a_foreign_state_is_never_looked_at() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True, name="another-subnet")
    async with bench.controller(), bench.running() as agent:
        await bench.set_state(exhausted=True, name="a-third")
        await bench.settle()
        assert bench.cluster.requests == [15]
        assert not agent.addresses.state().exhausted
        kinds = {what for what in bench.cluster.watched if what.startswith("ClusterSubnet")}
        assert kinds == {SUBNET, STATE}


async def test_with_a_cluster_subnet_the_state_is_not_watched() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.watched[STATE] == 0
        assert bench.cluster.requests == [15]


async def test_making_a_cluster_subnet_ends_the_watch_of_the_state_and_deleting_it_resumes_it_later() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, True)
        assert bench.cluster.requests == [1]
        await bench.make_subnet()
        await bench.settle()
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, False)
        assert bench.cluster.requests == [1, 15]
        await bench.drop_subnet()
        await bench.settle(KEPT_SECONDS - 1)
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, False)
        assert bench.cluster.requests == [1, 15]
        await bench.settle()
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, True)
        assert bench.cluster.requests[-1] == 1


async def test_a_controller_that_dies_before_it_writes_the_status_changes_nothing_for_nodes() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.cluster.requests == [15]
        await bench.make_subnet_by_hand()
        await bench.settle(600)
        assert len(bench.cluster.applied) == 1
        assert bench.cluster.is_watching(STATE)
        agent.addresses.require_ready()
        await bench.set_state(exhausted=True)
        await bench.settle()
        assert bench.cluster.requests[:2] == [15, 1]


async def test_beside_a_cluster_subnet_made_by_hand_an_exhausted_state_still_brings_nodes_to_batch_1() -> (
    None
):
    bench = Bench()
    await bench.join()
    await bench.make_subnet_by_hand()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.cluster.requests == [1]
        assert agent.addresses.state().exhausted


@pytest.mark.parametrize("how", ["cleared", "dropped", "dropped and made by hand"])
async def test_a_judgement_that_went_is_kept_for_half_a_minute_and_then_the_state_counts(how: str) -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=4, buffer=1.0, top=16, exhausted=True)
    await bench.set_state(exhausted=False)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.cluster.requests == [3]
        await (bench.clear_subnet() if how == "cleared" else bench.drop_subnet())
        if "by hand" in how:
            await bench.make_subnet_by_hand()
        decided_before = bench.cluster.applied_at[-1]
        await bench.settle(KEPT_SECONDS - 1)
        state = agent.addresses.state()
        assert (state.synced, state.exhausted, state.scaler) == (True, True, Scaler(4, Fraction(1)))
        assert bench.cluster.applied_at[-1] == decided_before
        await bench.settle(1.5)
        state = agent.addresses.state()
        assert (state.synced, state.exhausted, state.scaler) == (True, False, Scaler())
        assert bench.cluster.requests == [3, 15]


async def test_a_starved_judgement_is_kept_starved() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=1, buffer=0.0, exhausted=True, starved=True)
    async with bench.running() as agent:
        await bench.drop_subnet()
        await bench.settle(KEPT_SECONDS - 1)
        assert agent.addresses.state().starved
        await bench.settle()
        assert not agent.addresses.state().starved


async def test_a_cluster_subnet_that_is_made_again_in_time_changes_nothing_for_the_node() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=4, top=16)
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        for _ in range(3):
            await bench.drop_subnet()
            await bench.settle(KEPT_SECONDS - 5)
            await bench.make_subnet(batch=4, top=16)
            await bench.settle(KEPT_SECONDS - 5)
        await bench.settle(600)
        assert bench.cluster.requests == [3]
        assert bench.cluster.watched[STATE] == 0


async def test_a_judgement_is_kept_until_the_state_is_known() -> None:
    bench = Bench(faults=Script(list=[None, None, None, *[Unavailable("down")] * 3]))
    await bench.join()
    await bench.make_subnet(batch=4, top=16)
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        await bench.drop_subnet()
        await bench.settle(KEPT_SECONDS)
        synced = []
        for _ in range(600):
            await bench.settle(0.1)
            synced.append(agent.addresses.state().synced)
        assert all(synced), "nothing is handed out while the subnet is unknown"
        assert bench.cluster.requests[:2] == [3, 1]


async def test_a_view_tells_when_the_last_judgement_has_served_its_time() -> None:
    bench = Bench()
    await bench.make_subnet(batch=4, top=16)
    shown: list[tuple[float, bool]] = []
    view = SubnetView(
        "pods",
        bench.cluster,
        changed=lambda: shown.append((bench.clock.monotonic(), view.has_batch)),
        runtime=Runtime(
            clock=bench.clock, randomness=seeded_randomness(1), log=make_logger(bench.lines, bench.clock)
        ),
    )
    running = asyncio.create_task(view.run())
    await bench.settle()
    await bench.drop_subnet()
    dropped_at = bench.clock.monotonic()
    await bench.settle(600)
    running.cancel()
    at, has_batch = shown[-1]
    assert not has_batch
    assert at == pytest.approx(dropped_at + KEPT_SECONDS, abs=0.01)
    assert all(each for _, each in shown[:-1])


async def test_a_cluster_subnet_without_a_status_leaves_the_nodes_own_parameters_in_force() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet_by_hand()
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.requests == [15]


async def test_where_the_cluster_does_not_know_the_kinds_the_nodes_own_parameters_are_in_force() -> None:
    missing = NotFound("the server knows no such kind")
    bench = Bench(faults=Script(list=[None, None, *[missing] * 6]))
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        assert await bench.add("sandbox")
        agent.addresses.require_ready()
        assert bench.cluster.requests == [15]
        await bench.settle(600)  # somebody installs them
        await bench.make_subnet(batch=32, buffer=0.5)
        await bench.settle()
        assert bench.cluster.requests == [15, 31]


async def test_a_subnet_may_be_called_what_no_object_can_be() -> None:
    bench = Bench()
    await bench.join(container("nc", subnet="a,b=c\\"))
    async with bench.controller(), bench.running() as agent:
        assert await bench.add("sandbox")
        assert agent.addresses.state().subnet == "a,b=c\\"


async def test_a_node_that_moves_to_another_subnet_watches_that_one() -> None:
    bench = Bench()
    config = await bench.join()
    async with bench.running() as agent:
        await bench.settle()
        [there] = config.status.network_containers
        await bench.make_subnet("others", batch=32, buffer=0.5)
        await bench.fill_in([container(there.id, subnet="others")])
        await bench.settle()
        assert not bench.cluster.is_watching(SUBNET)
        assert not bench.cluster.is_watching(STATE)
        assert bench.cluster.is_watching("ClusterSubnet metadata.name=others")
        assert bench.cluster.requests == [15, 31]
        assert agent.addresses.state().subnet == "others"


async def test_the_first_request_of_a_node_obeys_the_exhaustion() -> None:
    bench = Bench()
    bench.capacity = 3
    await bench.join()
    await bench.make_subnet(batch=1, buffer=1.0, exhausted=True)
    pods = await bench.schedule_many(2)
    async with bench.controller(), bench.running():
        assert all([await bench.add(pod.metadata.name, pod) for pod in pods])
        await bench.settle()
        assert bench.cluster.requests == [3]


class SlowClock(LoopClock):
    """One that shows a hair less than timers go by."""

    def monotonic(self) -> float:
        return super().monotonic() * (1 - 1e-9)


async def test_a_timer_that_goes_off_a_hair_too_early_starts_no_second_watch() -> None:
    bench = Bench()
    await bench.make_subnet(batch=4, top=16)
    clock = SlowClock()
    view = SubnetView(
        "pods",
        bench.cluster,
        changed=lambda: None,
        runtime=Runtime(clock=clock, randomness=seeded_randomness(1), log=make_logger(bench.lines, clock)),
    )
    running = asyncio.create_task(view.run())
    await bench.settle(1000)
    await bench.drop_subnet()
    await bench.settle(KEPT_SECONDS + 5)
    running.cancel()
    assert not view.has_batch
    assert bench.cluster.watched[STATE] == 1
