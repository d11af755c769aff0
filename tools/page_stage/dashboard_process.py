"""`podtide dashboard` as a person starts it: a process of its own, which can be killed and started again at the same address."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from control_plane.json_http import JsonHttp
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process


class DashboardProcess:
    """It serves the page as long as this is open."""

    def __init__(self, kubeconfig: Path, *options: str | Path) -> None:
        self._nursery = Nursery()
        (port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}/"
        server = JsonHttp(self.url.rstrip("/"))
        self._process = Process(
            self._nursery,
            [
                *(sys.executable, "-m", "podtide", "dashboard", "--kubeconfig", kubeconfig),
                *("--listen", f"{LOOPBACK}:{port}", *options),
            ],
            is_ready=lambda: server.is_up("/"),
            log=self._nursery.directory / "dashboard.log",
        )

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def pid(self) -> int:
        """The running process."""
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process.start()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def _close(self) -> None:
        self._process.kill()
        self._nursery.close()
