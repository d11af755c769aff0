"""One program of the control plane, compiled from the pinned module."""

import subprocess
import time
from pathlib import Path

from control_plane.errors import CannotBuild
from control_plane.go_toolchain import Say, go_environment, last_line
from control_plane.versions import MODULE, Versions

PROGRESS_SECONDS = 15.0
VERSION_PACKAGE = "k8s.io/component-base/version"


def build(go: Path, package: str, target: Path, versions: Versions, say: Say) -> None:
    """Compile `package`. Nothing is at `target` until all of it is."""
    partial = target.with_name(f"{target.name}.partial")
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(versions)]
    with subprocess.Popen(
        [go, "build", *flags, "-o", partial, package],
        cwd=MODULE,
        env=go_environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as compiler:
        complaint = _wait(compiler, target.name, say)
    if compiler.returncode != 0:
        raise CannotBuild(
            f"{target.name} cannot be built: {last_line(complaint)} (to see all of it: "
            f"cd {MODULE} && {go} build -o /dev/null {package})"
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


def _linker_flags(versions: Versions) -> str:
    """Without symbols, and with the version that Kubernetes' own build would have stamped."""
    major, minor, _ = versions.kubernetes.split(".")
    stamps = {"gitVersion": f"v{versions.kubernetes}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())])
