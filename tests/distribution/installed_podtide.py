"""podtide as `pip install podtide` leaves it: built from its sdist, in an environment of its own, outside the repository."""

import os
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from left_out import leave_out
from repository_files import ROOT

UV = str(Path(sys.executable).with_name("uv"))
COMMAND_SECONDS = 300


class Distributions(Struct, frozen=True):
    """What a release publishes."""

    sdist: Path
    wheel: Path


class InstalledPodtide(Struct, frozen=True):
    """An environment with podtide and what it needs, and an empty directory that commands run in."""

    environment: Path
    directory: Path

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    @property
    def package(self) -> Path:
        (found,) = self.environment.glob("lib/python*/site-packages/podtide")
        return found

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself. Nothing of the environment that the tests run in is handed on."""
        return subprocess.run(
            [self.environment / "bin" / "podtide", *arguments],
            cwd=self.directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
            timeout=COMMAND_SECONDS,
        )


def build(target: Path) -> Distributions:
    """Build the sdist, and from it the wheel, with the locked hatchling and no network."""
    command = [
        UV,
        "--offline",
        "--quiet",
        "build",
        "--no-build-isolation",
        "--out-dir",
        str(target),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return Distributions(sdist, wheel)


def install(wheel: Path, target: Path) -> InstalledPodtide:
    """Install the wheel with what it asks for, at the locked versions, from uv's cache and else from the index."""
    installed = InstalledPodtide(target / "environment", target / "work")
    installed.directory.mkdir()
    subprocess.run(
        [UV, "--quiet", "venv", "--python", sys.executable, str(installed.environment)], check=True
    )
    answer = subprocess.run(
        [
            *(UV, "--quiet", "pip", "install", "--python", str(installed.python)),
            *("--constraints", str(ROOT / "requirements.lock"), str(wheel)),
        ],
        env={**os.environ, **_mirror()},
        check=False,
        capture_output=True,
        text=True,
    )
    if answer.returncode:
        leave_out("package index", answer.stderr.strip())
    return installed


def _mirror() -> dict[str, str]:
    """The mirror that pip's configuration names, which uv does not read: as in tools/set-up.sh."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        check=False,
        capture_output=True,
        text=True,
    )
    mirror = os.environ.get("PIP_INDEX_URL") or configured.stdout.strip()
    return {"UV_DEFAULT_INDEX": mirror} if mirror and "UV_DEFAULT_INDEX" not in os.environ else {}
