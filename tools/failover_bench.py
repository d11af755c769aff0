"""Two replicas of the allocator on a pair of PostgreSQL servers, under a load, for what is killed and how long that takes.

Tests ask whether everything is right afterwards, a benchmark how long nobody was answered.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from time import monotonic

from msgspec import Struct

from allocator_replicas import AllocatorReplicas
from podtide.allocator.client import AllocatorAddress, AllocatorTimeouts, HttpAllocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.backoff import Backoff
from postgresql_pair import PostgresqlPair
from wish_load import NETWORK, SUBNET, WishLoad

PATIENT = AllocatorTimeouts(deadline_seconds=300.0, backoff=Backoff(floor_seconds=0.005, cap_seconds=0.05))
_CIDR = "10.0.0.0/12"
_CLUSTER_UID = "uid-east"


class FailoverBench(Struct, frozen=True):
    """Servers, replicas, a client of all replicas, and the load that it carries."""

    servers: PostgresqlPair
    replicas: AllocatorReplicas
    client: HttpAllocator
    load: WishLoad
    tasks: tuple[asyncio.Task[None], ...]

    async def stop(self) -> None:
        """End the load: every node has had its last answer."""
        self.load.stopping = True
        await asyncio.gather(*self.tasks)

    async def answers(self, number: int) -> None:
        """Wait for so many more answered wishes."""
        goal = len(self.load.answered_at) + number
        while len(self.load.answered_at) < goal:
            self.load.answered.clear()
            await self.load.answered.wait()

    async def longest_pause_seconds(self, since: float, answers: int) -> float:
        """The longest time without an answered wish, from `since` until so many more were answered."""
        await self.answers(answers)
        times = [since, *(at for at in self.load.answered_at if at >= since)]
        return max(later - earlier for earlier, later in pairwise(times))

    async def kill_replica(self, answers: int) -> float:
        """Kill one of two replicas, start it again when the other has answered; the longest pause in seconds."""
        began = monotonic()
        self.replicas.kill(0)
        pause = await self.longest_pause_seconds(began, answers)
        self.replicas.start(0)
        await self.replicas.listen(0)
        await self.answers(answers)
        return pause

    async def fail_over(self, answers: int, *, hangs: bool = False) -> float:
        """Kill the primary, or let it hang, and promote the standby at once; the longest pause in seconds."""
        began = monotonic()
        if hangs:
            self.servers.freeze_primary()
        else:
            self.servers.kill_primary()
        self.servers.promote()
        return await self.longest_pause_seconds(began, answers)


class LoadShape(Struct, frozen=True, kw_only=True):
    """What the load is like."""

    nodes: int
    containers: int | None = None
    """How many each node has, one after the other; None for one after the other without end."""
    most_pause_seconds: float = 0.0
    """Of a node between two wishes."""
    renew_seconds: float = 0.5
    """After which the controller renews its term, by which it notices that it has to report."""
    timeouts: AllocatorTimeouts = PATIENT


@asynccontextmanager
async def failover_bench(shape: LoadShape, *, durable: bool = False) -> AsyncIterator[FailoverBench]:
    """The bench under a load, until `stop` or the end of the block."""
    with PostgresqlPair(durable=durable) as servers:
        async with (
            AllocatorReplicas(servers.url) as replicas,
            HttpAllocator(AllocatorAddress(url=replicas.url), timeouts=shape.timeouts) as client,
        ):
            for replica in range(2):
                await replicas.listen(replica)
            await client.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(_CIDR,)))
            load = WishLoad(client, cluster_uid=_CLUSTER_UID, most_pause_seconds=shape.most_pause_seconds)
            async with asyncio.TaskGroup() as group:
                work = [
                    load.node(f"node-{number}", containers=shape.containers) for number in range(shape.nodes)
                ]
                tasks = [
                    group.create_task(each) for each in (load.act_for_cluster(shape.renew_seconds), *work)
                ]
                yield FailoverBench(servers, replicas, client, load, tuple(tasks))
                load.stopping = True
