"""A pool's Lease tells who writes it; nothing waits for it, and nobody renews it for its own sake."""

import asyncio

from msgspec import structs

from agent.networks.network_bench import NODE, SLICED, Bench
from podtide.agent.networks.pool_lease import TERM_SECONDS
from podtide.cluster.port import Forbidden, Unavailable
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import NODE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.timestamps import to_micro_time

NAME = "blue-node-a"
TAKEN_FROM_ANOTHER = "another writer holds the Lease of a pool; writes test the pool's version all the same"


async def lease(bench: Bench) -> LeaseSpec:
    return (await bench.cluster.get(Lease, NAME, SYSTEM_NAMESPACE)).spec


async def cut_bench() -> Bench:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    return bench


async def test_it_is_taken_with_the_first_write_and_renewed_with_writes_when_half_of_it_is_over() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        taken = await lease(bench)
        assert (taken.holder_identity, taken.lease_duration_seconds) == (NODE, TERM_SECONDS)
        await asyncio.sleep(TERM_SECONDS / 2 - 60)
        await node.add("c2", SLICED)
        assert await lease(bench) == taken
        await asyncio.sleep(120)
        assert await lease(bench) == taken, "an idle node writes nothing"
        await node.add("c3", SLICED)
        renewed = await lease(bench)
        assert renewed.renew_time != taken.renew_time
        assert renewed.acquire_time == taken.acquire_time


async def test_it_is_marked_with_the_node_also_where_it_was_there_before() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        made = await bench.cluster.get(Lease, NAME, SYSTEM_NAMESPACE)
        assert made.metadata.annotations == {NODE_ANNOTATION: NODE}
    noted = structs.replace(made.metadata, annotations={"example.org/note": "mine"})
    await bench.cluster.replace(structs.replace(made, metadata=noted), manager="kubectl")
    async with bench.machine() as node:
        await node.add("c2", SLICED)
        taken = await bench.cluster.get(Lease, NAME, SYSTEM_NAMESPACE)
        assert taken.metadata.annotations == {"example.org/note": "mine", NODE_ANNOTATION: NODE}


async def test_it_is_given_up_when_the_agent_stops() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await node.networks.stop()
        assert (await lease(bench)).holder_identity == ""
        await node.networks.stop()
    async with bench.machine() as node:
        await node.add("c2", SLICED)
        taken = await lease(bench)
        assert (taken.holder_identity, taken.lease_transitions) == (NODE, 2)


async def test_a_write_that_only_frees_an_address_does_not_take_it() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await node.networks.stop()
    async with bench.machine() as node:
        await node.delete("c1", SLICED)
        assert await bench.pool(NAME) == {}
        assert (await lease(bench)).holder_identity == ""


async def test_after_a_crash_its_own_is_taken_up_again() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
    async with bench.machine() as node:
        await node.add("c2", SLICED)
        taken = await lease(bench)
        assert (taken.holder_identity, taken.lease_transitions) == (NODE, 1)


async def held_by_another(bench: Bench, *, renewed: str | None) -> None:
    spec = LeaseSpec(holder_identity="default/some-pod", lease_duration_seconds=60, renew_time=renewed)
    place = ObjectMeta(name=NAME, namespace=SYSTEM_NAMESPACE)
    await bench.cluster.create(Lease(metadata=place, spec=spec), manager="whereabouts")


async def test_another_writers_is_reported_and_does_not_stop_an_add() -> None:
    bench = await cut_bench()
    await held_by_another(bench, renewed=to_micro_time(bench.clock.wall()))
    async with bench.machine() as node:
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert (await lease(bench)).holder_identity == "default/some-pod"
        assert [line for line in bench.journal.lines() if line["event"] == TAKEN_FROM_ANOTHER]
        await node.networks.stop()
        assert (await lease(bench)).holder_identity == "default/some-pod"


async def test_one_that_ran_out_or_says_no_time_is_taken() -> None:
    for renewed in (to_micro_time(0.0), None):
        bench = await cut_bench()
        await held_by_another(bench, renewed=renewed)
        async with bench.machine() as node:
            await node.add("c1", SLICED)
            assert (await lease(bench)).holder_identity == NODE


async def test_one_that_cannot_be_written_is_reported_and_does_not_stop_an_add() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        node.line.before["create Lease"] = [Forbidden("no right to leases")]
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        [line] = [line for line in bench.journal.lines() if "could not be taken" in line["event"]]
        assert line["error"] == "no right to leases"


async def test_one_that_was_edited_is_read_before_it_is_renewed_the_next_time() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        edited = await bench.cluster.get(Lease, NAME, SYSTEM_NAMESPACE)
        spec = structs.replace(edited.spec, lease_duration_seconds=7)
        await bench.cluster.replace(structs.replace(edited, spec=spec), manager="kubectl")
        for sandbox in ("c2", "c3"):
            await asyncio.sleep(TERM_SECONDS)
            await node.add(sandbox, SLICED)
        assert (await lease(bench)).lease_duration_seconds == TERM_SECONDS


async def test_stopping_does_not_wait_for_a_cluster_that_is_away() -> None:
    bench = await cut_bench()
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        node.line.before["replace Lease"] = [Unavailable("away"), 100.0]
        await node.networks.stop()
        assert [line for line in bench.journal.lines() if "stays until it ends" in line["event"]]
        await asyncio.sleep(TERM_SECONDS)
        await node.add("c2", SLICED)
        started = bench.clock.monotonic()
        node.line.before["replace Lease"] = [100.0]
        await node.networks.stop()
        assert bench.clock.monotonic() - started < 5.0
