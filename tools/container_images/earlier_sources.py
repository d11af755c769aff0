"""The repository's files as an earlier commit had them, unpacked in the user's cache: what an upgrade begins with."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

from container_images.cache import Turn, made
from container_images.context import ROOT
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import Say, last_line

COMMIT = "907ed6dee8fbc892ae89b96bbdc66a388e37b052"
"""Upgrades are tested from this commit on: the last one whose chart left tokens and subnets to people. Once podtide has releases,
it is that of the oldest release from which an upgrade in one step is promised."""


def earlier_sources(say: Say, commit: str = COMMIT, root: Path = ROOT) -> Path:
    """The directory with all files of the commit. CannotBuild if this clone does not have it."""

    def unpack(_: Turn, target: Path) -> None:
        with tarfile.open(fileobj=io.BytesIO(_archive(commit, root))) as archive:
            archive.extractall(target, filter="data")

    return made(f"sources-{commit}", say, unpack)


def _archive(commit: str, root: Path) -> bytes:
    git = shutil.which("git")
    if not git:
        raise CannotBuild(
            f"there is no git here to take commit {commit[:7]} from (Debian: apt-get install git)"
        )
    done = subprocess.run(
        [git, "-C", root, "archive", "--format=tar", commit], check=False, capture_output=True
    )
    if done.returncode:
        raise CannotBuild(
            f"{root} has no commit {commit[:7]}, as in a clone without history (git fetch --unshallow); git says: "
            f"{last_line(done.stderr.decode(errors='replace'))}"
        )
    return done.stdout
