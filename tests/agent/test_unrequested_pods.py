"""What an agent states of pods that use an address without requesting one, for what its node publishes."""

from agent.node_bench import NODE, Bench
from agent.statements import AN_HOUR, demands
from podtide.cluster.port import Patch
from podtide.core.subnet.statement_refresh import (
    GROWN_JITTER_PART,
    GROWN_SECONDS,
    JITTER_SECONDS,
    REST_SECONDS,
)
from podtide.resources.metadata_keys import (
    IPV4_RESOURCE,
    IPV6_RESOURCE,
    SYSTEM_NAMESPACE,
    UNREQUESTED_ANNOTATION,
    unrequested_in,
)
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodContainer, PodPhase, ResourceRequirements


def requesting(count: int = 1, *resources: str) -> list[PodContainer]:
    quantities = dict.fromkeys(resources or (IPV4_RESOURCE,), str(count))
    return [PodContainer(name="main", resources=ResourceRequirements(requests=quantities, limits=quantities))]


def stated(bench: Bench) -> list[int | None]:
    """What stood beside each request that was written."""
    return [unrequested_in(config.metadata.annotations) for config in bench.cluster.applied]


async def pods(bench: Bench, count: int, prefix: str, requested: int = 0) -> list[Pod]:
    containers = requesting(requested) if requested else []
    return [await bench.schedule(f"{prefix}-{number}", containers=containers) for number in range(count)]


async def test_where_all_pods_request_an_address_none_is_left_and_where_none_does_all_are() -> None:
    for requested, left in ((0, 9), (1, 0)):
        bench = Bench()
        await bench.join()
        await bench.make_subnet(batch=8, top=16)
        async with bench.controller(), bench.running():
            await pods(bench, 9, "pod", requested)
            await bench.settle(AN_HOUR)
            assert stated(bench) == [left]


async def test_where_no_pod_requests_an_address_it_costs_no_write_of_its_own() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await pods(bench, 2, "first")
        await bench.settle()
        await pods(bench, 3, "more")  # within the batch
        await bench.settle(AN_HOUR)
        assert stated(bench) == [2]


async def test_an_agent_that_finds_it_missing_states_it_once() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await pods(bench, 2, "first")
        await bench.settle()
        without = {"metadata": {"annotations": {UNREQUESTED_ANNOTATION: None}}}
        await bench.server.patch(
            Patch(NodeNetworkConfig, NODE, namespace=SYSTEM_NAMESPACE, changes=without), manager="older"
        )
        await bench.settle(AN_HOUR)
        assert stated(bench) == [2, 2]


async def test_pods_from_before_are_stated_with_the_request_and_anew_once_they_have_gone() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        before = await pods(bench, 5, "before")
        await pods(bench, 2, "with", 1)
        await bench.settle()
        assert stated(bench) == [5]
        for number, pod in enumerate(before):  # a roll-out: as many pods as before, which request one
            await bench.schedule(f"after-{number}", containers=requesting())
            await bench.remove(pod)
        await bench.settle(REST_SECONDS / 2)
        assert stated(bench) == [5]
        await bench.settle(AN_HOUR)
        assert stated(bench) == [5, 0]


async def test_what_pods_request_beyond_what_they_use_is_less_than_nothing() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await bench.schedule("two", containers=requesting(2))
        await bench.schedule("host", containers=requesting(), host_network=True)
        await bench.settle()
        assert stated(bench) == [-2]


async def test_a_pod_of_two_families_requests_one_of_each_and_counts_once() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await bench.schedule("both", containers=requesting(1, IPV4_RESOURCE, IPV6_RESOURCE))
        await bench.schedule("neither")
        await bench.settle()
        assert stated(bench) == [1]


async def test_a_pod_that_has_ended_counts_neither_as_a_user_nor_by_its_request() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        for job in (*await pods(bench, 1, "requesting", 1), *await pods(bench, 1, "job")):
            await bench.report(job, PodPhase.SUCCEEDED)
        await pods(bench, 3, "others")
        await pods(bench, 1, "with", 1)
        await bench.settle()
        assert stated(bench)[-1] == 3


async def test_below_the_top_any_other_demand_is_stated_once_it_has_rested_where_pods_request_addresses() -> (
    None
):
    """By batch 8 and by 16 the demands 22 and 24 lead to the same requests: for the batch alone nothing would be stated."""
    for requested, said in ((1, [22, 24]), (0, [22])):
        bench = Bench()
        await bench.join()
        await bench.make_subnet(batch=8, top=16)
        async with bench.controller(), bench.running():
            await pods(bench, 22, "pod", requested)
            await bench.settle()
            await pods(bench, 2, "more", requested)
            await bench.settle(AN_HOUR)
            assert demands(bench) == said


async def test_at_the_top_a_demand_within_the_batch_is_not_stated_whatever_pods_request() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=16, top=16)
    async with bench.controller(), bench.running():
        await pods(bench, 2, "pod", 1)
        await bench.settle()
        await pods(bench, 3, "more", 1)
        await bench.settle(AN_HOUR)
        assert demands(bench) == [2]


async def test_below_the_top_a_larger_demand_is_stated_within_seconds_and_a_smaller_one_after_a_minute() -> (
    None
):
    """Pods may use up what the node publishes without a change of its request: others would wait for a minute."""
    bench = Bench()
    await bench.join()
    await bench.make_subnet(batch=8, top=16)
    async with bench.controller(), bench.running():
        await pods(bench, 1, "pod", 1)
        await bench.settle(AN_HOUR)
        more = await pods(bench, 2, "more", 1)
        await bench.settle(GROWN_SECONDS + GROWN_JITTER_PART * JITTER_SECONDS + 1)
        assert demands(bench) == [1, 3]
        for turn in range(5):
            await bench.remove(more.pop())
            await bench.settle(REST_SECONDS / 4)
            more += await pods(bench, 1, f"again-{turn}", 1)
            await bench.settle(REST_SECONDS / 4)
        assert demands(bench) == [1, 3], "it comes back to what was stated"
        await bench.remove(more.pop())
        await bench.settle(AN_HOUR)
        assert demands(bench) == [1, 3, 2]
