"""The service killed in the middle of a load: its clients ask again, and end with what they wanted, exactly once."""

import asyncio
import socket
from itertools import count
from pathlib import Path
from random import Random

import pytest

from allocator.contract.harness import a_wish, names
from allocator.service.killable import start
from allocator.store.databases import empty
from podtide.allocator.client import AllocatorAddress, AllocatorTimeouts, HttpAllocator
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.errors import NoSuchContainer
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.backoff import Backoff
from podtide.runtime.clock import SystemClock

KILLS = 50
NODES = 8
PATIENT = AllocatorTimeouts(deadline_seconds=120.0, backoff=Backoff(floor_seconds=0.005, cap_seconds=0.05))


class Load:
    """Nodes that change their minds until they are told to stop. What they know at the end must be so."""

    def __init__(self, allocator: HttpAllocator) -> None:
        self._allocator = allocator
        self.answered = asyncio.Event()
        self.stopping = False
        self.held = dict[str, AllocatedContainer]()
        self.gone: set[str] = set()

    async def node(self, name: str) -> None:
        """One container after the other: made, changed a few times, and one time in three deleted."""
        randomness = Random(name)
        for number in count():
            await self._container(f"{name}-{number}", randomness)
            if self.stopping:
                return

    async def _container(self, id_: str, randomness: Random) -> None:
        for generation in range(4):
            before = self.held.get(id_)
            had = names(before) if before else []
            release = randomness.sample(had, len(had) // 2)
            wanted = randomness.randrange(24)
            now = await self._allocator.put_container(a_wish(id_, wanted, generation, release=tuple(release)))
            self.answered.set()
            kept = [name for name in had if name not in release]
            assert names(now)[: len(kept)] == kept
            assert len(now.addresses) == max(wanted, len(kept))
            last = before.version if before else 0
            is_same = before is not None and names(now) == had
            assert now.version == last if is_same else now.version > last
            self.held[id_] = now
        if randomness.random() < 1 / 3:
            await self._allocator.delete_container(id_, cluster="east")
            self.gone.add(id_)
            del self.held[id_]


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
            await client.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/16",)))
            load = Load(client)
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
                assert await client.get_container(id_, cluster="east") == container
            for id_ in load.gone:
                with pytest.raises(NoSuchContainer):
                    await client.get_container(id_, cluster="east")
    finally:
        service.kill()
        service.join()
    await passes_the_audit(database)


async def passes_the_audit(database: str) -> None:
    async with await open_allocator(database, clock=SystemClock()) as store:
        assert await store.audit() == ()
