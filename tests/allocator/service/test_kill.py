"""The service killed in the middle of a load: its clients ask again, and end with what they wanted, exactly once."""

import asyncio
import socket
from pathlib import Path
from random import Random

import pytest

from allocator.service.killable import start
from allocator.store.databases import empty
from podtide.allocator.client import AllocatorAddress, AllocatorTimeouts, HttpAllocator
from podtide.allocator.errors import NoSuchContainer
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.backoff import Backoff
from podtide.runtime.clock import SystemClock
from wish_load import CLUSTER, NETWORK, SUBNET, WishLoad

KILLS = 50
NODES = 8
PATIENT = AllocatorTimeouts(deadline_seconds=120.0, backoff=Backoff(floor_seconds=0.005, cap_seconds=0.05))


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_kill_9_of_the_service_at_fifty_instants_changes_nothing_for_its_clients(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = f"sqlite:///{tmp_path}/subnets.db"
    if kind == "postgresql":
        database = request.getfixturevalue("postgresql_url")
        await empty(database)
    randomness = Random(7)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    service = start(database, port)
    try:
        async with HttpAllocator(
            AllocatorAddress(url=f"http://127.0.0.1:{port}"), timeouts=PATIENT
        ) as client:
            await client.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=("10.1.0.0/16",)))
            load = WishLoad(client)
            async with asyncio.TaskGroup() as nodes:
                for number in range(NODES):
                    nodes.create_task(load.node(f"node-{number}"))
                for _ in range(KILLS):
                    load.answered.clear()
                    await load.answered.wait()
                    await asyncio.sleep(randomness.uniform(0, 0.03))
                    service.kill()
                    service.join()
                    await passes_the_audit(database)
                    service = start(database, port)
                load.stopping = True
            for id_, container in load.held.items():
                assert await client.get_container(id_, cluster=CLUSTER) == container
            for id_ in load.gone:
                with pytest.raises(NoSuchContainer):
                    await client.get_container(id_, cluster=CLUSTER)
    finally:
        service.kill()
        service.join()
    await passes_the_audit(database)


async def passes_the_audit(database: str) -> None:
    async with await open_allocator(database, clock=SystemClock()) as store:
        assert await store.audit() == ()
