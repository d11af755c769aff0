"""An API server that is away for a while: how soon its clients are back, and how many come at once."""

import asyncio
import io

import pytest

from cluster.faulty_cluster import FaultyCluster
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Unavailable
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

AWAY_AT = 100.0
CLIENTS = 1000


class Away:
    """From `AWAY_AT` on the server is away for so many seconds: no call reaches it, and no event comes."""

    def __init__(self, seconds: float) -> None:
        self.back_at = AWAY_AT + seconds
        self.asked_at: list[float] = []
        self.watched_at: list[float] = []

    async def before(self, call: str) -> None:
        now = asyncio.get_running_loop().time()
        if call != "event":
            self.asked_at.append(now)
        if call == "watch":
            self.watched_at.append(now)
        if AWAY_AT <= now < self.back_at:
            raise Unavailable("connection refused")

    async def after(self, _call: str) -> None:
        return


class Bench:
    """Informers of Leases, all of which lose the server in one instant."""

    def __init__(self, away: Away, *, informers: int = 1, seed: int = 0) -> None:
        clock = LoopClock()
        self.server = EmbeddedCluster(clock=clock, randomness=seeded_randomness(1))
        self.cluster = FaultyCluster(self.server, away)
        self.informers = [
            Informer(
                self.cluster,
                Lease,
                Scope(namespace="default"),
                runtime=Runtime(
                    clock=clock,
                    randomness=seeded_randomness(seed * 10_000 + number),
                    log=make_logger(io.StringIO(), clock),
                ),
            )
            for number in range(informers)
        ]
        self.told_at: list[float] = []
        for informer in self.informers:
            informer.add_handler(lambda _old, _new: self.told_at.append(clock.monotonic()))

    async def run(self, away: Away, *, forget_history: bool = False) -> None:
        """Through the outage, in the midst of which an object is made, and until ten seconds after it."""
        running = [asyncio.create_task(informer.run()) for informer in self.informers]
        await asyncio.sleep(AWAY_AT)
        self.server.server.close_watches()
        await asyncio.sleep((away.back_at - AWAY_AT) / 2)
        await self.server.create(Lease(metadata=ObjectMeta(name="new", namespace="default")), manager="test")
        if forget_history:
            self.server.server.expire_history()
        await asyncio.sleep((away.back_at - AWAY_AT) / 2 + 10)
        for task in running:
            task.cancel()
        await asyncio.wait(running)


@pytest.mark.parametrize("forget_history", [False, True], ids=["resumed", "listed-anew"])
@pytest.mark.parametrize("away_seconds", [0.5, 5.0, 25.0, pytest.param(600.0, marks=pytest.mark.slow)])
async def test_what_is_new_is_seen_within_six_seconds_of_the_servers_return(
    away_seconds: float, forget_history: bool
) -> None:
    away = Away(away_seconds)
    bench = Bench(away, informers=100)
    await bench.run(away, forget_history=forget_history)
    assert len(bench.told_at) == 100
    assert max(bench.told_at) - away.back_at <= 6.0


async def test_a_watch_that_broke_while_the_server_was_there_is_back_within_a_second() -> None:
    away = Away(0.001)
    bench = Bench(away, informers=100)
    await bench.run(away)
    assert max(bench.told_at) - AWAY_AT <= 1.001


@pytest.mark.parametrize("away_seconds", [0.001, 25.0, pytest.param(100.0, marks=pytest.mark.slow)])
async def test_a_thousand_clients_that_lost_the_server_together_do_not_come_back_together(
    away_seconds: float,
) -> None:
    away = Away(away_seconds)
    await Bench(away, informers=CLIENTS).run(away)
    back = [at - away.back_at for at in away.watched_at if at >= away.back_at]
    assert len(back) == CLIENTS, "each once: what came through stays"
    most_in_a_tenth = max(
        sum(1 for at in back if tenth / 10 <= at < (tenth + 1) / 10)
        for tenth in range(int(max(back) * 10) + 1)
    )
    # All in one tenth of a second would be 1000; spread evenly over the first wait of 0.8 s it is 125.
    assert most_in_a_tenth <= CLIENTS / 5


@pytest.mark.slow
async def test_while_it_is_away_the_server_is_not_asked_more_than_every_other_second_by_each() -> None:
    away = Away(600.0)
    await Bench(away, informers=100).run(away)
    asked = [at for at in away.asked_at if AWAY_AT + 10 <= at < away.back_at]
    assert len(asked) / 590 <= 100 / 2
