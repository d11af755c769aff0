"""The plugin without a process or a socket: a call goes straight to the agent of its node, if there is one.

It does what the executable does (plugin/PROTOCOL.md) when the agent is away or dies over a call: ADD is told to try
again, and DEL leaves a note that the next agent carries out.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from podtide.agent.api.cni_calls import CniCalls, refusal
from podtide.agent.api.plugin_protocol import Answer
from podtide.agent.networks.configuration_cache import may_have_ranges, read_for_deletion
from podtide.agent.port import NotReady
from podtide.agent.program import NodeAgent
from podtide.cni.arguments import CniCall, parse_environment
from podtide.cni.versions import Verb
from podtide.core.errors import PodtideError
from podtide.core.pool.pool import Owner
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_LOOK_EVERY_SECONDS = 5.0


class _Note(Struct, frozen=True):
    """A DEL that was not carried out."""

    owner: Owner
    stdin: bytes

    @property
    def is_secondary(self) -> bool:
        """Whether the cluster is needed to carry it out."""
        return may_have_ranges(self.stdin)


class _Notes:
    """The DELs that wait for a node's agent."""

    def __init__(self) -> None:
        self._agent: NodeAgent | None = None
        self._left: dict[tuple[str, str], _Note] = {}
        self._one_at_a_time = asyncio.Lock()

    def attach(self, agent: NodeAgent) -> None:
        """An agent is there: carry out what needs no cluster, now and from now on."""
        self._agent = agent
        for (sandbox, interface), note in tuple(self._left.items()):
            if not note.is_secondary:
                self.carry_out(sandbox, interface)

    def leave(self, call: CniCall, stdin: bytes) -> None:
        pod = call.pod
        owner = Owner(call.container_id, call.ifname, pod.pod_uid, pod.pod_namespace, pod.pod_name)
        self._left[call.container_id, call.ifname] = _Note(owner, stdin)

    def carry_out(self, sandbox: str, interface: str) -> bool:
        """Carry out the note of this sandbox's interface, if there is one, and say whether there was."""
        note = self._left.get((sandbox, interface))
        if note is None:
            return False
        assert self._agent is not None  # only an agent asks
        self._agent.addresses.delete(note.owner)
        del self._left[sandbox, interface]
        return True

    async def carry_out_anywhere(self, sandbox: str, interface: str) -> bool:
        """The same, of a secondary network."""
        async with self._one_at_a_time:
            note = self._left.get((sandbox, interface))
            if note is None or not note.is_secondary:
                return self.carry_out(sandbox, interface)
            assert self._agent is not None  # only an agent asks
            await self._agent.networks.delete(note.owner, read_for_deletion(note.stdin))
            del self._left[sandbox, interface]
            return True

    async def carry_out_all(self) -> None:
        """Carry out what needs the cluster, as soon as it is there."""
        while self._left:
            for sandbox, interface in tuple(self._left):
                with suppress(PodtideError):
                    await self.carry_out_anywhere(sandbox, interface)
            await asyncio.sleep(_LOOK_EVERY_SECONDS)


class _Door:
    """An agent's API, open for as long as the agent lives. Who waits for an answer does so in a task of their own."""

    def __init__(self, calls: CniCalls, notes: _Notes) -> None:
        self._calls = calls
        self._noted = asyncio.create_task(notes.carry_out_all())
        self._is_open = True
        self._callers: dict[asyncio.Task[object], None] = {}

    async def answer(self, environment: Mapping[str, str], stdin: bytes, arrived: float) -> Answer | None:
        """The agent's answer, or None when the agent dies over it."""
        caller = asyncio.current_task()
        assert caller is not None  # a coroutine that waits is a task's
        cancelled_before = caller.cancelling()
        self._callers[caller] = None
        try:
            return await self._calls.answer(environment, stdin, arrived=arrived)
        except asyncio.CancelledError:
            if self._is_open or caller.uncancel() > cancelled_before:
                raise  # it is the caller who gives up
            return None
        finally:
            del self._callers[caller]

    def close(self) -> None:
        """The agent is no more: whoever waits gets no answer."""
        self._is_open = False
        self._noted.cancel()
        for caller in self._callers:
            caller.cancel()


class AgentsInProcess:
    """The doors of agents in this process."""

    def __init__(self, *, clock: Clock, log: Logger) -> None:
        self._clock = clock
        self._log = log
        self._doors: dict[str, _Door] = {}
        self._notes: dict[str, _Notes] = {}

    async def open(self, node: str, agent: NodeAgent) -> None:
        """The node's agent serves."""
        notes = self._notes.setdefault(node, _Notes())
        notes.attach(agent)
        log = self._log.bind(node=node)
        calls = CniCalls(agent.addresses, notes, agent.networks, clock=self._clock, log=log)
        self._doors[node] = _Door(calls, notes)

    async def close(self, node: str) -> None:
        """The node's agent is no more: whoever waits for its answer gets none."""
        if door := self._doors.pop(node, None):
            door.close()

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Exit status and standard output, as of the executable."""
        door = self._doors.get(node)
        answer = await door.answer(environment, stdin, self._clock.monotonic()) if door else None
        if answer is None:
            return self._without_agent(node, environment, stdin)
        return answer.exit_status, answer.output

    def _without_agent(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        call = parse_environment(environment)
        if call.verb is Verb.DEL:
            self._notes.setdefault(node, _Notes()).leave(call, stdin)
            return 0, b""
        away = refusal(NotReady(f"the agent of {node} does not answer: try again"), stdin)
        return away.exit_status, away.output
