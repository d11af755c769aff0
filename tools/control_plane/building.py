"""One program, compiled from a module of ours that pins it."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from control_plane.errors import CannotBuild
from control_plane.go_toolchain import Say, go_environment, last_line

PROGRESS_SECONDS = 15.0
WITHOUT_SYMBOLS = "-s -w"


def build(  # noqa: PLR0913 - by what, of what, to where, and who is told
    go: Path,
    package: str,
    target: Path,
    say: Say,
    *,
    module: Path,
    stamps: Mapping[str, str],
    tags: Sequence[str] = (),
) -> None:
    """Compile `package`. Nothing is at `target` until all of it is. `stamps` are variables to set, by their full name."""
    partial = target.with_name(f"{target.name}.partial")
    linker_flags = " ".join([WITHOUT_SYMBOLS, *(f"-X {name}={value}" for name, value in stamps.items())])
    flags = [
        "-mod=readonly",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        linker_flags,
        "-tags",
        ",".join(tags),
    ]
    with subprocess.Popen(
        [go, "build", *flags, "-o", partial, package],
        cwd=module,
        env=go_environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as compiler:
        complaint = _wait(compiler, target.name, say)
    if compiler.returncode != 0:
        raise CannotBuild(
            f"{target.name} cannot be built: {last_line(complaint)} (to see all of it: "
            f"cd {module} && {go} build -o /dev/null {package})"
        )
    partial.rename(target)


def _wait(compiler: subprocess.Popen[str], name: str, say: Say) -> str:
    """What the compiler complained about, once it is done; until then, a line from time to time."""
    started = time.monotonic()
    while True:
        try:
            return compiler.communicate(timeout=PROGRESS_SECONDS)[1]
        except subprocess.TimeoutExpired:
            say(f"{name}: {time.monotonic() - started:.0f} s so far")
        except BaseException:
            compiler.kill()
            raise
