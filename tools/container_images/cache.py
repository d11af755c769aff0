"""The user's cache of images: what is not there is made, by one process at a time.

A file appears by a rename, so that half a build is never taken for a whole one, and a lock makes a second process wait for
the first one's. What a build that was killed has left is thrown away by the next.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from container_images.debian import check_machine
from control_plane.binaries import cache_directory, locked
from control_plane.go_toolchain import Say


class Turn(Struct, frozen=True):
    """Alone with the cache, to make one thing."""

    say: Say
    cache: Path

    @property
    def partial(self) -> Path:
        """A directory that is empty at first, and gone at the end."""
        return self.cache / "partial"

    @property
    def log(self) -> Path:
        """What the programs of the last turn said."""
        return self.cache / "log"


def say_on_stderr(line: str) -> None:
    """Tell a person; a log gets the same lines."""
    print(f"container images: {line}", file=sys.stderr, flush=True)


def images_directory() -> Path:
    """Beside the control plane's programs."""
    return cache_directory().parent / "container-images"


def made(name: str, say: Say, make: Callable[[Turn, Path], None]) -> Path:
    """The file of this name in the cache. If it is not there, `make` writes it. CannotBuild says what that lacks."""
    cache = images_directory()
    target = cache / name
    if target.exists():
        return target
    check_machine()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock", say):
        if not target.exists():  # else whoever held the lock before us has made it
            _make(Turn(say, cache), target, make)
    return target


def _make(turn: Turn, target: Path, make: Callable[[Turn, Path], None]) -> None:
    shutil.rmtree(turn.partial, ignore_errors=True)
    turn.partial.mkdir()
    try:
        unfinished = turn.partial / target.name
        make(turn, unfinished)
        unfinished.rename(target)
    finally:
        shutil.rmtree(turn.partial, ignore_errors=True)
