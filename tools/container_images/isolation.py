"""A command whose processes and mounts end with it, and with us, however either ends.

It runs in a mount and a PID namespace of its own. The kernel kills it when we are killed, it takes with it all that it has
started, and what was mounted for it goes with the last of them.
"""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from control_plane.errors import CannotBuild
from control_plane.go_toolchain import Say, last_line

PROGRESS_SECONDS = 15.0

DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
OWN_NAMESPACES = (
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("--propagation", "private"),
)


def run_isolated(
    command: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    say: Say,
    environment: Mapping[str, str],
) -> None:
    """Run it to its end. Its output goes to `log`, and CannotBuild has the last line of that."""
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*DIES_WITH_US, *OWN_NAMESPACES, *command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        _wait(process, what, say)
    if process.returncode != 0:
        raise CannotBuild(f"{what} failed: {last_line(log.read_text())} (all of it is in {log})")


def _wait(process: subprocess.Popen[bytes], what: str, say: Say) -> None:
    started = time.monotonic()
    while True:
        try:
            process.wait(PROGRESS_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"{what}: {time.monotonic() - started:.0f} s so far")
        except BaseException:
            process.kill()
            raise
        else:
            return
