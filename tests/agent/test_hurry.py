"""When a node gives back at once, and when a smaller request has to stand for a while first."""

from agent.node_bench import Bench


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
