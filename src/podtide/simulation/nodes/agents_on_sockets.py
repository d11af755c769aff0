"""Agents in this process, each on a unix socket of its own, which the plugin connects to as a process.

So a call takes the same path as on a real node: environment, stdin, process, socket, agent, stdout.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.cns_api import CnsApi
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.metrics import AgentMetrics
from podtide.agent.api.routes import AgentApi
from podtide.agent.api.server import serving
from podtide.agent.program import NodeAgent
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.simulation.nodes.plugin_caller import ExecutablePlugin


class AgentsOnSockets:
    """Opens sockets below a directory, and calls the plugin with that of the node."""

    def __init__(
        self, directory: Path, executable: Path, *, add_wait_seconds: float, clock: Clock, log: Logger
    ) -> None:
        self._directory = directory
        self._add_wait_seconds = add_wait_seconds
        self._clock = clock
        self._log = log
        self._sockets: dict[str, Path] = {}
        self._plugin = ExecutablePlugin(executable, self._sockets)
        self._served: dict[str, AsyncExitStack] = {}

    async def open(self, node: str, agent: NodeAgent) -> None:
        """Open the socket of the node's agent."""
        addresses, networks = agent.addresses, agent.networks
        # A directory for each: what the plugin leaves for an agent that is away lies beside its socket.
        socket = self._sockets[node] = self._directory / node / "agent.sock"
        log = self._log.bind(node=node)
        notes = DeletionNotes.beside(socket, addresses, networks, log=log)
        notes.carry_out_all()
        metrics = AgentMetrics(addresses, networks.counts)
        api = AgentApi(
            calls=CniCalls(addresses, notes, networks, clock=self._clock, log=log, count=metrics.count),
            cns=CnsApi(addresses, notes, clock=self._clock, log=log, count=metrics.count),
            metrics=metrics,
            addresses=addresses,
            manual_releases=agent.manual_releases,
            is_running=lambda: node in self._served,
            clock=self._clock,
            log=log,
            add_wait_seconds=self._add_wait_seconds,
        )
        async with AsyncExitStack() as opened:
            looking = asyncio.create_task(notes.keep_carrying_out())
            opened.callback(looking.cancel)
            await opened.enter_async_context(serving(api, socket))
            self._served[node] = opened.pop_all()

    async def close(self, node: str) -> None:
        """Close the socket of the node's agent: calls in flight get no answer."""
        if served := self._served.pop(node, None):
            await served.aclose()

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Start the plugin, and wait for its end."""
        return await self._plugin.call(node, environment, stdin)
