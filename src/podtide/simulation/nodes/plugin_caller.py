"""How the simulated kubelet calls the plugin: as a process, as a runtime does, or by a call in this process.

Both hand over the same environment and configuration and get back an exit status and what was printed, so a kubelet
cannot tell which it is. On virtual time only the call in this process works: processes run in real time.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from podtide.agent.program import NodeAgent
from podtide.runtime.child_process import kill


class PluginCaller(Protocol):
    """Calls the plugin of a node."""

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Exit status and standard output."""
        ...


class AgentDoors(PluginCaller, Protocol):
    """Calls the plugin of nodes whose agents are in this process; each agent is opened when it starts and closed when it ends."""

    async def open(self, node: str, agent: NodeAgent) -> None:
        """Let the plugin reach the node's agent."""
        ...

    async def close(self, node: str) -> None:
        """Cut the plugin off from the node's agent: calls in flight get no answer."""
        ...


class ExecutablePlugin:
    """The plugin as a process, with the socket of the node's agent in its environment."""

    def __init__(self, executable: Path, sockets: Mapping[str, Path]) -> None:
        self._executable = executable
        self._sockets = sockets

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Start the plugin, write its stdin, and wait for its end."""
        process = await asyncio.create_subprocess_exec(
            self._executable,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                **environment,
                "PODTIDE_SOCKET": str(self._sockets[node]),
            },
        )
        try:
            output, _nothing = await process.communicate(stdin)
        except asyncio.CancelledError:
            await kill(process)
            raise
        return process.returncode or 0, output
