"""Two replicas on a pair of PostgreSQL servers: one replica killed, then the database failed over, all under load.

What clients were told is so afterwards, and no address is anybody else's. How long it takes is measured by
`bench/allocator_failover.py` and decides nothing here.
"""

import asyncio

import pytest

from failover_bench import FailoverBench, LoadShape, failover_bench
from left_out import leave_out
from patience import PATIENCE_SECONDS
from podtide.allocator.errors import NoSuchContainer
from podtide.allocator.store import open_allocator
from podtide.runtime.clock import SystemClock
from postgresql_server import NoPostgresql, binaries
from wish_load import CLUSTER

SHAPE = LoadShape(nodes=8)
ANSWERS = 200

pytestmark = [pytest.mark.slow, pytest.mark.real_time]


@pytest.fixture(autouse=True)
def _programs() -> None:
    try:
        binaries()
    except NoPostgresql as reason:
        leave_out("PostgreSQL", reason)


async def test_a_killed_replica_and_then_a_killed_primary_lose_nothing_and_give_nothing_twice() -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), failover_bench(SHAPE) as bench:
        await bench.answers(ANSWERS)
        await bench.kill_replica(ANSWERS)
        assert bench.load.recoveries == []
        await bench.fail_over(ANSWERS)
        await bench.stop()
        await everything_is_as_clients_know_it(bench)


async def test_a_primary_that_hangs_is_left_for_the_one_that_was_promoted() -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), failover_bench(SHAPE) as bench:
        await bench.answers(ANSWERS)
        await bench.fail_over(ANSWERS, hangs=True)
        bench.servers.kill_primary()
        await bench.stop()
        await everything_is_as_clients_know_it(bench)


async def everything_is_as_clients_know_it(bench: FailoverBench) -> None:
    load = bench.load
    assert (
        len(load.recoveries) == 1
    )  # a failover is another timeline, and the clusters were asked what they hold
    assert load.complaints == []
    holders: dict[str, str] = {}
    for id_, known in load.held.items():
        found = await bench.client.get_container(id_, cluster=CLUSTER)
        assert (found.version, found.primary, found.addresses) == (
            known.version,
            known.primary,
            known.addresses,
        )
        for ip in (known.primary, *(each.ip for each in known.addresses)):
            assert holders.setdefault(ip, id_) == id_
    assert load.gone
    for id_ in load.gone:
        with pytest.raises(NoSuchContainer):
            await bench.client.get_container(id_, cluster=CLUSTER)
    async with await open_allocator(bench.servers.url, clock=SystemClock()) as store:
        assert await store.audit() == ()
