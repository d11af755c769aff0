"""A busy node: pods come and go, and their sandboxes' ADDs and DELs reach the agent many at a time.

The load follows `level`, the number of pods there should be, and is indifferent to whether there is an agent: a call
that is not answered leaves an open question in the book, to be asked again when there is an agent.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_interface
from itertools import count
from pathlib import Path
from random import Random

from msgspec import structs

from agent.agent_process import AgentProcess
from agent.calling import environment
from agent.sandbox_book import Fate, Sandbox, SandboxBook
from patience import PATIENCE_SECONDS
from podtide.agent.api.plugin_protocol import Answer
from podtide.cluster.port import Cluster
from podtide.resources.pod import Pod, PodPhase
from podtide.simulation.nodes.pods import MANAGER, NAMESPACE, new_pod

RUNTIMES = 16
"""Each makes one call at a time."""
BY_PLUGIN = 0.1
"""The part of the calls that the executable makes."""
_PAUSE_SECONDS = 0.01


class SandboxLoad:
    """What a kubelet and its runtime do, as far as the agent hears of it."""

    def __init__(
        self, agent: AgentProcess, cluster: Cluster, node: str, *, plugin: Path, randomness: Random
    ) -> None:
        self.level = 0
        self.book = SandboxBook()
        self.answered: Counter[str] = Counter()
        """Calls, by verb."""
        self.unanswered: Counter[str] = Counter()
        self._agent = agent
        self._cluster = cluster
        self._node = node
        self._plugin = plugin
        self._randomness = randomness
        self._numbers = count()
        self._pods = 0
        self._idle: list[Sandbox] = []
        """Those that live and that no runtime has in hand."""

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """The runtimes make calls. At the end each waits until it has its answer, or knows that there is none."""
        going_on = asyncio.Event()
        going_on.set()
        async with asyncio.TaskGroup() as runtimes:
            for _ in range(RUNTIMES):
                runtimes.create_task(self._work(going_on))
            try:
                yield
            finally:
                going_on.clear()

    async def repeat_unanswered(self, held: Mapping[str, str]) -> None:
        """Make every call again that was not answered; who holds an address by its lost ADD is given that one."""
        asked, leaving = self.book.of(Fate.ASKED), self.book.of(Fate.LEAVING)
        await asyncio.gather(*map(self._add, asked), *map(self._end, leaving))
        for sandbox in asked:
            if sandbox.fate is Fate.LIVE:
                assert held.get(sandbox.name, sandbox.ip) == sandbox.ip, f"{sandbox.name} was given another"

    async def end_all(self) -> None:
        """Every pod goes, those too whose ADD the agent had no time to answer."""
        self._idle = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while left := [each for each in self.book.sandboxes.values() if each.fate is not Fate.GONE]:
                await asyncio.gather(*map(self._end, left))

    async def _work(self, going_on: asyncio.Event) -> None:
        while going_on.is_set():
            await self._do_something()
            await asyncio.sleep(_PAUSE_SECONDS * self._randomness.random())

    async def _do_something(self) -> None:
        """Start a pod while there are too few and end one while there are too many, mostly."""
        too_few = self._pods < self.level
        if self._idle and self._randomness.random() < (0.2 if too_few else 0.8):
            sandbox = self._idle.pop(self._randomness.randrange(len(self._idle)))
            repeats_add = self._randomness.random() < 0.25
            await (self._add(sandbox) if repeats_add else self._end(sandbox))
        elif too_few:
            await self._start()

    async def _start(self) -> None:
        self._pods += 1
        name = f"sandbox-{next(self._numbers)}"
        pod = await self._cluster.create(new_pod(f"pod-of-{name}", self._node), manager=MANAGER)
        sandbox = Sandbox(name, pod)
        self.book.asks(sandbox)
        await self._add(sandbox)

    async def _add(self, sandbox: Sandbox) -> None:
        answer = await self._call("ADD", sandbox)
        if answer is not None and answer.exit_status == 0:
            self.book.was_given(sandbox, _address(answer))
        elif answer is not None:
            await self._end(sandbox)  # as a kubelet does with a sandbox that failed
        if sandbox.fate is Fate.LIVE:
            self._idle.append(sandbox)

    async def _end(self, sandbox: Sandbox) -> None:
        self.book.leaves(sandbox)
        answer = await self._call("DEL", sandbox)
        if answer is None:
            return
        assert answer.exit_status == 0, answer
        self.book.has_left(sandbox)
        await self._remove(sandbox.pod)

    async def _call(self, verb: str, sandbox: Sandbox) -> Answer | None:
        pod = sandbox.pod.metadata
        arguments = (
            f"IgnoreUnknown=1;K8S_POD_NAMESPACE={NAMESPACE};K8S_POD_NAME={pod.name};K8S_POD_UID={pod.uid}"
        )
        call = environment(verb, sandbox.name, CNI_ARGS=arguments)
        answer: Answer | None
        if self._randomness.random() < BY_PLUGIN:
            answer = await self._agent.call_by_plugin(self._plugin, call)
            if answer.exit_status:
                answer = None  # its "try again" may be the agent's word, or that there was none
        else:
            answer = await self._agent.call(call)
        (self.unanswered if answer is None else self.answered)[verb] += 1
        return answer

    async def _remove(self, pod: Pod) -> None:
        """Let the pod end, then go: an API server removes none that runs."""
        self._pods -= 1
        ended = structs.replace(pod, status=structs.replace(pod.status, phase=PodPhase.SUCCEEDED))
        await self._cluster.replace_status(ended, manager=MANAGER)
        await self._cluster.delete(Pod, pod.metadata.name, NAMESPACE, uid=pod.metadata.uid)


def _address(answer: Answer) -> str:
    (entry,) = json.loads(answer.output)["ips"]
    return str(ip_interface(entry["address"]).ip)
