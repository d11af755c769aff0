"""Starts plugins as a runtime does, many at once if need be, and tells what each answered and what it cost.

One thread waits for all of them by their pidfds. A thread for each would compete with what is measured.
"""

import os
import select
import signal
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from time import monotonic

from msgspec import Struct

from kubelet_deadline import KUBELET_SECONDS

_names = count()


class PluginCall(Struct, frozen=True):
    """One call of a plugin."""

    executable: Path
    environment: Mapping[str, str]
    configuration: Path
    """What it gets on stdin."""


class PluginAnswer(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    exit_status: int
    """Negative when a signal ended it, as the deadline does."""
    output: str
    """What it printed: its result, or its error."""
    began: float
    ended: float
    cpu_seconds: float
    """The process's own time on the processor, the kernel's for it included."""

    @property
    def is_answered(self) -> bool:
        """Whether it ended well."""
        return self.exit_status == 0

    @property
    def seconds(self) -> float:
        """From its start to its end. A call without an answer is the slowest there is, whatever ended it."""
        return self.ended - self.began if self.is_answered else KUBELET_SECONDS


def run_at_once(
    calls: Sequence[PluginCall], directory: Path, *, deadline_seconds: float = KUBELET_SECONDS
) -> list[PluginAnswer]:
    """Start all without a pause, and wait for all. Who has not ended by the deadline is killed, as kubelets do."""
    started = [_start(call, directory) for call in calls]
    deadline = monotonic() + deadline_seconds
    answers: dict[int, PluginAnswer] = {}
    poll = select.poll()
    by_descriptor = {os.pidfd_open(process.pid): process for process in started}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    while by_descriptor:
        ready = poll.poll(max(0.0, deadline - monotonic()) * 1e3)
        now = monotonic()
        if not ready:
            for process in by_descriptor.values():
                os.kill(process.pid, signal.SIGKILL)
            deadline = now + deadline_seconds
        for descriptor, _ in ready:
            process = by_descriptor.pop(descriptor)
            poll.unregister(descriptor)
            os.close(descriptor)
            answers[process.pid] = process.collect(now)
    return [answers[process.pid] for process in started]


class _Started(Struct, frozen=True):
    pid: int
    began: float
    output: Path

    def collect(self, ended: float) -> PluginAnswer:
        _, status, usage = os.wait4(self.pid, 0)
        text = self.output.read_text(errors="replace")
        self.output.unlink()
        return PluginAnswer(
            exit_status=os.waitstatus_to_exitcode(status),
            output=text,
            began=self.began,
            ended=ended,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
        )


def _start(call: PluginCall, directory: Path) -> _Started:
    output = directory / f"answer-{next(_names)}"
    began = monotonic()
    pid = os.posix_spawn(
        call.executable,
        [str(call.executable)],
        dict(call.environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, str(call.configuration), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT, 0o600),
            (
                os.POSIX_SPAWN_OPEN,
                2,
                str(directory / "stderr"),
                os.O_WRONLY | os.O_CREAT | os.O_APPEND,
                0o600,
            ),
        ],
    )
    return _Started(pid, began, output)
