"""Programs that run beside us: started with a log, known to be ready, ended by id, and never left behind."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from control_plane.errors import DidNotStart

GUARDIAN = Path(__file__).with_name("guardian.py")
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
LOG_LINES_SHOWN = 15


class Nursery:
    """A temporary directory and a process group that both vanish with this process, however it ends."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="podtide-control-plane-"))
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", GUARDIAN, self.directory], stdin=subprocess.PIPE, process_group=0
        )

    def start(self, command: Sequence[str | Path], log: Path) -> subprocess.Popen[bytes]:
        """Start a program in the group. Its output is added to `log`; Ctrl-C at a terminal does not reach it."""
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=self._guardian.pid,
            )

    def close(self) -> None:
        """End what still runs, and remove the directory."""
        assert self._guardian.stdin is not None
        self._guardian.stdin.close()
        self._guardian.wait()


class Process:
    """One program, which can be started again after it was stopped or killed."""

    def __init__(
        self,
        nursery: Nursery,
        command: Sequence[str | Path] | Callable[[], Sequence[str | Path]],
        is_ready: Callable[[], bool],
        *,
        log: Path | None = None,
    ) -> None:
        """A command that is not the same at every start is a function that answers it, and has a log.

        Else the log is named after the program and goes with the nursery, unless there is another to be kept.
        """
        if log is None:
            assert not callable(command), "a command that changes has no name to call its log by"
            log = nursery.directory / f"{Path(command[0]).name}.log"
        self.log = log
        self._name = self.log.stem
        self._nursery = nursery
        self._command = command
        self._is_ready = is_ready
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended by us since."""
        return self._running is not None

    @property
    def pid(self) -> int:
        """Its process id, while it runs."""
        assert self._running is not None, f"{self._name} is not running"
        return self._running.pid

    def start(self) -> None:
        """Start it, and come back when it is ready."""
        assert not self.is_running, f"{self._name} is running"
        command = self._command() if callable(self._command) else self._command
        self._running = self._nursery.start(command, self.log)
        try:
            self._wait_until_ready(self._running)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask it to end, as an upgrade would, and wait for that."""
        if self._running:
            self._running.terminate()
            self._running.wait(STOP_SECONDS)
            self._running = None

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._running:
            self._running.kill()
            self._running.wait()
            self._running = None

    def _wait_until_ready(self, running: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if running.poll() is not None:
                raise DidNotStart(
                    f"{self._name} ended with status {running.returncode}; its log ends so:\n{self._log_tail()}"
                )
            if time.monotonic() > deadline:
                raise DidNotStart(
                    f"{self._name} is not ready after {READY_SECONDS:.0f} s; its log ends so:\n{self._log_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:])
