"""Runs a command that may never end: it is given processor time, because a wall clock also counts what others use.

A mutant may wait for ever as well, which takes no processor time: one that sleeps through so many looks in a row is
taken for that. Whoever is stopped or starved does not look meanwhile, so that it can be run behind everything else.
"""

import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from msgspec import Struct

_LOOK_SECONDS = 1.0
_ASLEEP_LOOKS = 300
_MEMORY_BYTES = 4 << 30
"""A loop that never ends often fills the memory first."""


class Ended(Struct, frozen=True):
    """How the command ended, and what it printed."""

    status: int
    output: bytes


class DidNotEnd(Exception):
    """The command used up its processor time, or waited for something that did not come."""


def run_bounded(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    processor_seconds: int,
    cwd: Path | None = None,
    with_errors: bool = False,
) -> Ended:
    """Run the command to its end; `with_errors`, what it prints as errors is among its output."""
    with TemporaryFile() as file:
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdout=file, stderr=subprocess.STDOUT if with_errors else None
        )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (processor_seconds, processor_seconds))
        resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        status = _end_of(process)
        if status < 0:
            raise DidNotEnd(f"{command[0]} was ended by signal {-status}")
        file.seek(0)
        return Ended(status, file.read())


def _end_of(process: subprocess.Popen[bytes]) -> int:
    asleep, before = 0, ""
    while True:
        try:
            return process.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            now = _state(process.pid)
        asleep = asleep + 1 if now == before and now.startswith("S") else 0
        before = now
        if asleep >= _ASLEEP_LOOKS:
            process.kill()


def _state(pid: int) -> str:
    """Whether the process runs or sleeps, and how much processor time it has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return " ".join((fields[0], *fields[11:13]))
