"""Several `podtide allocator` on one database, each a process of its own, behind one port: to be killed one by one."""

import asyncio
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from control_plane.process import Nursery
from tcp_balancer import TcpBalancer

if TYPE_CHECKING:
    import subprocess

_LOOPBACK = "127.0.0.1"


class AllocatorReplicas:
    """Replicas of the allocator. Once started, each listens soon: a client asks until then."""

    def __init__(self, database: str, replicas: int = 2) -> None:
        self._database = database
        self._ports = [_free_port() for _ in range(replicas)]
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._balancer = TcpBalancer(self._ports)
        self._nursery = Nursery()

    async def __aenter__(self) -> Self:
        for replica in range(len(self._ports)):
            self.start(replica)
        await self._balancer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for replica in list(self._running):
            self.kill(replica)
        await self._balancer.__aexit__(kind, error, trace)
        self._nursery.close()

    @property
    def url(self) -> str:
        """Where all of them are."""
        return f"http://{_LOOPBACK}:{self._balancer.port}"

    def log(self, replica: int) -> str:
        """What a replica logged, in all of its lives."""
        return self._log_of(replica).read_text()

    def start(self, replica: int) -> None:
        """Start a replica that does not run."""
        program = (
            "/usr/bin/env",
            "PODTIDE_CONTACT_TIMEOUT=10ms",
            sys.executable,
            "-m",
            "podtide",
            "allocator",
        )
        arguments = ("--database", self._database, "--listen", f"{_LOOPBACK}:{self._ports[replica]}")
        rules = ("--cooldown", "20ms", "--quarantine", "50ms", "--log-level", "warning")
        self._running[replica] = self._nursery.start([*program, *arguments, *rules], self._log_of(replica))

    def _log_of(self, replica: int) -> Path:
        return self._nursery.directory / f"replica-{replica}.log"

    def kill(self, replica: int) -> None:
        """Kill a replica by SIGKILL."""
        process = self._running.pop(replica)
        process.kill()
        process.wait()

    async def listen(self, replica: int) -> None:
        """Wait until a replica accepts connections."""
        while True:
            try:
                _reader, writer = await asyncio.open_connection(_LOOPBACK, self._ports[replica])
            except OSError:
                if self._running[replica].poll() is not None:
                    raise ReplicaEnded(f"replica {replica} ended: {self.log(replica)[-400:]}") from None
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


class ReplicaEnded(Exception):
    """A replica ended by itself; the message has the end of its log."""


def _free_port() -> int:
    with socket.create_server((_LOOPBACK, 0)) as free:
        return int(free.getsockname()[1])
