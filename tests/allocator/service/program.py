"""`podtide allocator` as a process of its own: started, asked, stopped, killed."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Program:
    """A running allocator, and what it logged so far."""

    def __init__(self, *arguments: str) -> None:
        self.log: list[dict[str, Any]] = []
        self._listening = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "podtide", "allocator", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PODTIDE_CONTACT_TIMEOUT": "100ms", "PODTIDE_QUARANTINE": "200ms"},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._listening.wait(60)

    @property
    def url(self) -> str:
        """Where it listens."""
        return next(str(line["url"]) for line in self.log if line["event"] == "listening")

    def events(self) -> list[str]:
        """What it logged, by name."""
        return [line["event"] for line in self.log]

    def end(self, number: signal.Signals) -> int:
        """Send a signal; its exit status."""
        self.process.send_signal(number)
        status = self.process.wait(60)
        self._reader.join()
        return status

    def _read(self) -> None:
        assert self.process.stderr
        with self.process.stderr as lines:
            for line in lines:
                self.log.append(json.loads(line))
                if self.log[-1]["event"] == "listening":
                    self._listening.set()
        self._listening.set()  # it ended, and whoever waits shall see why


@contextmanager
def running(*arguments: str) -> Iterator[Program]:
    """A program that is gone when the block is."""
    program = Program(*arguments)
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.end(signal.SIGKILL)
