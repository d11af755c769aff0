"""The plugin without a process or a socket: its requests go straight to the agent of its node, if there is one.

The agent's side is the real one: a request's body is decoded and carried out by `CniCalls`, and deletion notes are read by
`DeletionNotes`, from a disk in memory. The plugin's side does what the executable does (plugin/PROTOCOL.md) when the agent
does not answer or dies over a call: an ADD fails with "try again", and a DEL leaves a note.
"""

import asyncio
from collections.abc import Mapping
from typing import NoReturn

from podtide.agent.api.cni_calls import CniCalls, refusal
from podtide.agent.api.deletion_notes import DeletionNotes, note_name
from podtide.agent.api.plugin_protocol import Answer, encode_call
from podtide.agent.port import NotReady
from podtide.agent.program import NodeAgent
from podtide.cni.versions import Verb
from podtide.runtime.clock import Clock
from podtide.runtime.disk import Disk
from podtide.runtime.logging import Logger
from podtide.runtime.memory_disk import MemoryDisk


class _Door:
    """The API of one agent, as long as the agent runs. A caller waits for its answer in its own task."""

    def __init__(self, agent: NodeAgent, noted: Disk, *, clock: Clock, log: Logger) -> None:
        self._notes = DeletionNotes(noted, agent.addresses, agent.networks, log=log)
        self._notes.carry_out_all()
        self._looking: asyncio.Task[NoReturn] | None = None
        if noted.names():
            self.look_for_notes()
        self._calls = CniCalls(agent.addresses, self._notes, agent.networks, clock=clock, log=log)
        self._clock = clock
        self._is_open = True
        self._callers: dict[asyncio.Task[object], None] = {}

    async def answer(self, body: bytes) -> Answer | None:
        """The agent's answer to a request, or None when the agent dies over it."""
        caller = asyncio.current_task()
        assert caller is not None  # a coroutine that is awaited runs in a task
        cancelled_before = caller.cancelling()
        self._callers[caller] = None
        try:
            return await self._calls.reply(body, arrived=self._clock.monotonic())
        except asyncio.CancelledError:
            if self._is_open or caller.uncancel() > cancelled_before:
                raise  # it is the caller who gives up
            return None
        finally:
            del self._callers[caller]

    def look_for_notes(self) -> None:
        """Start the agent's loop over the notes. It is not needed before there are any: thousands of nodes would poll."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._notes.keep_carrying_out())

    def close(self) -> None:
        """The agent is killed: its callers get no answer."""
        self._is_open = False
        if self._looking is not None:
            self._looking.cancel()
        for caller in self._callers:
            caller.cancel()


class AgentsInProcess:
    """The agents of this process, and the plugin that calls them."""

    def __init__(self, *, clock: Clock, log: Logger) -> None:
        self._clock = clock
        self._log = log
        self._doors: dict[str, _Door] = {}
        self._noted: dict[str, MemoryDisk] = {}
        """The directories of deletion notes, by node."""

    async def open(self, node: str, agent: NodeAgent) -> None:
        """The node's agent serves."""
        self._doors[node] = _Door(
            agent, self._notes_of(node), clock=self._clock, log=self._log.bind(node=node)
        )

    async def close(self, node: str) -> None:
        """The node's agent is killed: its callers get no answer."""
        if door := self._doors.pop(node, None):
            door.close()

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Exit status and standard output, as of the executable."""
        door = self._doors.get(node)
        body = encode_call(environment, stdin)
        answer = await door.answer(body) if door else None
        if answer is None:
            return self._without_agent(node, environment, stdin, body)
        return answer.exit_status, answer.output

    def _without_agent(
        self, node: str, environment: Mapping[str, str], stdin: bytes, body: bytes
    ) -> tuple[int, bytes]:
        if environment["CNI_COMMAND"] == Verb.DEL:
            name = note_name(environment["CNI_CONTAINERID"], environment["CNI_IFNAME"])
            self._notes_of(node).replace(name, body)
            if door := self._doors.get(node):
                door.look_for_notes()  # the agent was started again while the call was still ending
            return 0, b""
        away = refusal(NotReady(f"the agent of {node} does not answer: try again"), stdin)
        return away.exit_status, away.output

    def _notes_of(self, node: str) -> MemoryDisk:
        return self._noted.setdefault(node, MemoryDisk())
