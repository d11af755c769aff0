"""The agent of a node as a process of its own: started, killed, and spoken to over its socket or by the plugin."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from agent.calling import config
from patience import PATIENCE_SECONDS
from podtide.agent.api.plugin_protocol import Answer, decode_answer, encode_call
from podtide.core.pool.states import State

LOOK_EVERY_SECONDS = 0.005
_CONFIGURATION = config()


class Shown(Struct, frozen=True):
    """An address as the agent shows it."""

    name: str
    ip: str
    state: State
    sandbox: str


class AgentProcess:
    """The agent, which may be started and killed as often as one likes: directory and log go on."""

    def __init__(self, directory: Path, kubeconfig: Path, node: str, *options: str) -> None:
        self.socket = directory / "run" / "agent.sock"
        self.log = directory / "agent.log"
        self._command = (
            *(sys.executable, "-m", "podtide", "agent", "--kubeconfig", str(kubeconfig), "--node-name", node),
            *("--state-directory", str(directory / "state"), "--socket", str(self.socket), *options),
        )
        self._process: Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            await self.kill()

    async def start(self) -> None:
        """Let it begin; until it answers it takes a while."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=DEVNULL, stderr=log, env={}
            )

    async def kill(self) -> None:
        """End it between any two instructions: kill -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Ask it to end, and answer its exit status."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        process.send_signal(number)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await process.wait()

    async def until_it_listens(self) -> None:
        """Wait until the socket is open: from then on it has to know all that it knew."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await self._is_listening():  # noqa: ASYNC110 - it has no way to tell us
                await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _is_listening(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, "it has ended by itself: its log says why"
        try:
            _, writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            return False
        writer.close()
        return True

    async def call(self, environment: Mapping[str, str]) -> Answer | None:
        """A call in the plugin's own words. None when it was not answered: nobody knows what came of it."""
        body = await self._post("/cni", encode_call(environment, _CONFIGURATION))
        return decode_answer(body)

    async def call_by_plugin(self, plugin: Path, environment: Mapping[str, str]) -> Answer:
        """The same by the executable. Whether its error 11 is the agent's, or that of an absent one, is not told."""
        process = await asyncio.create_subprocess_exec(
            plugin, stdin=PIPE, stdout=PIPE, env={**environment, "PODTIDE_SOCKET": str(self.socket)}
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, _ = await process.communicate(_CONFIGURATION)
        assert process.returncode is not None
        return Answer(process.returncode, output)

    async def show(self) -> list[Shown]:
        """Every address of its pool."""
        states = ["PendingProgramming", "Available", "Assigned", "PendingRelease"]
        body = await self._post("/debug/ipaddresses", json.dumps({"IPConfigStateFilter": states}).encode())
        return [
            Shown(
                each["ID"],
                each["IPAddress"],
                State(each["state"]),
                (each["PodInfo"] or {}).get("PodInfraContainerID", ""),
            )
            for each in json.loads(body)["IPConfigurationStatus"]
        ]

    async def _post(self, path: str, body: bytes) -> bytes:
        """What it answers; nothing, or a part of it, if it is not there or dies."""
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            return b""
        try:
            writer.write(f"POST {path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()
        head, _, content = answer.partition(b"\r\n\r\n")
        assert not content or head.split(b" ")[1] == b"200", answer
        return content

    def noted(self) -> set[str]:
        """The sandboxes whose DEL the plugin has left in a note, because the agent was not there or too slow."""
        return {note.name.partition("@")[0] for note in (self.socket.parent / "deleted").iterdir()}

    def logged(self) -> list[dict[str, Any]]:
        """All that it ever said. What is no JSON is a traceback, and fails here."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]
