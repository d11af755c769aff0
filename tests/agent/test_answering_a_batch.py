"""How a node answers a new batch, and mends what others made of its statement."""

import asyncio

import pytest
from msgspec import structs

from agent.node_bench import Bench, CountingCluster
from agent.statements import AN_HOUR, demands, last_stated
from cluster.faulty_cluster import Script
from podtide.cluster.port import R
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION
from podtide.resources.statement_annotation import statement_in


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
        bench.server.server.expire_history()
        bench.server.server.close_watches()
        await bench.settle(AN_HOUR)
        assert bench.cluster.requests == [15, 15]
        assert statement_in((await bench.config()).metadata.annotations, 15) == last_stated(bench)
