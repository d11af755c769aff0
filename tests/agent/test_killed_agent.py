"""kill -9 of a real agent, again and again, in the midst of its work: nothing that it answered is forgotten.

The agent is a process with its journal on the disk, under a load of ADDs and DELs that rises and falls. Kills hit
calls, starts, requests and addresses on their way, and names being given up.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

import pytest

from agent.agent_process import AgentProcess, Shown
from agent.sandbox_book import Fate
from agent.sandbox_load import SandboxLoad
from agent.shared_subnet import NODE, Moment, SharedSubnet, shared_subnet
from patience import PATIENCE_SECONDS
from podtide.core.audit.invariants import Picture, audit, audit_change
from podtide.runtime.plugin_executable import find_plugin
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.nodes.kubelet import Sandbox

KILLS = 50
CIDR = "10.1.0.0/25"
OPTIONS = (
    *("--gather", "10ms", "--gather-at-most", "50ms", "--shrink-delay", "100ms"),
    *("--cooldown", "0s", "--add-wait", "2s"),
)
STARTING, ANY_TIME = "while it starts", "at any time"
RISING = (STARTING, ANY_TIME, Moment.ASKED, Moment.GRANTED)
FALLING = (STARTING, ANY_TIME, Moment.NAMED, Moment.RELEASED)


class Ordeal:
    """The agent, its surroundings, and all that was seen of them."""

    def __init__(self, around: SharedSubnet, agent: AgentProcess, load: SandboxLoad, chance: Random) -> None:
        self.agent = agent
        self.load = load
        self.hits: Counter[str] = Counter()
        """Kills, by what they were aimed at and met."""
        self._around = around
        self._chance = chance
        self._start_seconds = 0.5
        self._before: Picture | None = None

    async def start(self) -> None:
        """An agent begins, and must know all that those before it knew."""
        begin = perf_counter()
        await self.agent.start()
        await self.agent.until_it_listens()
        self._start_seconds = perf_counter() - begin
        held = self.load.book.compare(await self.agent.show())
        assert not self.agent.noted(), "DELs that the plugin left come before the socket"
        await self._around.other_cluster_takes(0)
        await self.load.repeat_unanswered(held)
        await self.check()

    async def kill_on_the_way_up(self, level: int) -> None:
        """Pods come, and the node needs more addresses than it has."""
        await self._kill(self._chance.choice(RISING), level, others=0)

    async def kill_on_the_way_down(self, level: int) -> None:
        """Pods go while the subnet is exhausted, and the node gives back."""
        await self._kill(self._chance.choice(FALLING), level, others=self._chance.choice((50, 100)))

    async def _kill(self, aim: str, level: int, *, others: int) -> None:
        self.load.level = level
        if aim == STARTING:
            await self.agent.start()
        else:
            await self.start()
        async with self.load.at_work():
            await self._around.other_cluster_takes(others)
            if isinstance(aim, Moment):
                with suppress(TimeoutError):  # the node may have had what it needed
                    await asyncio.wait_for(self._around.next(aim), 5.0)
                    self.hits[aim] += 1
                await asyncio.sleep(self._chance.uniform(0, 0.02))
            else:
                self.hits[aim] += 1
                await asyncio.sleep(self._chance.uniform(0, self._start_seconds if aim == STARTING else 0.4))
            await self.agent.kill()

    async def check(self) -> None:
        """While nobody calls: what was answered is so, nothing is lost, and nothing is there twice."""
        noted = self.agent.noted()
        shown = await self._settled()
        self.load.book.compare(shown, noted)
        live = self.load.book.of(Fate.LIVE)
        sandboxes = [Sandbox(each.name, each.pod.metadata.name, (each.ip,)) for each in live]
        picture = await self._around.picture(shown, sandboxes)
        assert audit(picture) == ()
        if self._before is not None:
            assert audit_change(self._before, picture) == ()
        self._before = picture

    async def _settled(self) -> list[Shown]:
        """The agent's pool, as soon as it is the one that the cluster and the allocator tell of."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                shown = await self.agent.show()
                by_config, by_allocator = await self._around.granted()
                if {each.name for each in shown} == by_config == by_allocator:
                    return shown
                await asyncio.sleep(0.01)


@asynccontextmanager
async def ordeal(directory: Path) -> AsyncIterator[Ordeal]:
    chance = seeded_randomness("fifty kills")
    kubeconfig = directory / "kubeconfig"
    with TemporaryDirectory() as short:  # a test's own directory can be too long for a socket's path
        async with (
            shared_subnet(directory, kubeconfig, CIDR) as around,
            AgentProcess(Path(short), kubeconfig, NODE, *OPTIONS) as agent,
        ):
            load = SandboxLoad(agent, around.cluster, NODE, plugin=find_plugin(), randomness=chance)
            yield Ordeal(around, agent, load, chance)


@pytest.mark.slow
@pytest.mark.real_time
async def test_what_an_agent_answered_outlives_fifty_kills(tmp_path: Path) -> None:
    async with ordeal(tmp_path) as trial:
        for level in range(35, 35 + KILLS // 2):
            await trial.kill_on_the_way_up(level)
            await trial.kill_on_the_way_down(level % 10)
        await trial.start()
        await trial.load.end_all()
        await trial.check()
        assert {each.fate for each in trial.load.book.sandboxes.values()} == {Fate.GONE}
        assert await trial.agent.stop() == 0
        assert [line for line in trial.agent.logged() if line["level"] == "error"] == []
        assert trial.hits.keys() == {*RISING, *FALLING}, "kills met all that they were aimed at"
        assert trial.load.unanswered.keys() == {"ADD", "DEL"}, "and calls under way"
