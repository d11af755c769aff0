"""Programs that others wrote in Go, at the version that a module of ours pins: built once, kept with the control plane's.

Any other version would do for a person. For tests it is this one, so that what is proved here is proved everywhere.
"""

import json
import platform
import re
import sys
from pathlib import Path

from msgspec import Struct

from control_plane.binaries import cache_directory, locked
from control_plane.building import build
from control_plane.go_toolchain import FindGo, Say, ask


class GoProgram(Struct, frozen=True, kw_only=True):
    """A program, and the module that pins it."""

    name: str
    """What people call it."""
    file: str
    """What its executable is called."""
    module: Path
    """The directory of our module."""
    source: str
    """The module that it is a part of; its version is that one's."""
    package: str
    version_variable: str = ""
    """What its own build would have stamped with the version."""
    tags: tuple[str, ...] = ()
    """Build tags, for what to leave out of it."""

    @property
    def pins(self) -> "Pins":
        """The versions in the module's go.mod."""
        return pinned((self.module / "go.mod").read_text(), self.source)


class Pins(Struct, frozen=True):
    """Versions without their `v`."""

    program: str
    go: str
    """The oldest Go that builds it."""


def executable(program: GoProgram, say: Say, find: FindGo) -> Path:
    """The executable, built first if it is not there, which takes minutes. CannotBuild says what that lacks."""
    pins = program.pins
    cache = cache_directory()
    target = cache / f"{program.file}-{pins.program}-{sys.platform}-{platform.machine()}"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock", say):
        if not target.exists():  # else whoever held the lock before us has built it
            go = find(pins.go, cache, say)
            say(f"building {program.name} {pins.program} into {target}, once")
            stamps = {program.version_variable: f"v{pins.program}"} if program.version_variable else {}
            build(go, program.package, target, say, module=program.module, stamps=stamps, tags=program.tags)
    return target


def source_directory(program: GoProgram, say: Say, find: FindGo) -> Path:
    """The module that the program is a part of, unpacked, for what else is in it. CannotBuild says what that lacks."""
    pins = program.pins
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    answer = ask(find(pins.go, cache, say), "mod", "download", "-json", f"{program.source}@v{pins.program}")
    return Path(json.loads(answer)["Dir"])


def pinned(go_mod: str, source: str) -> Pins:
    """The versions in the text of a go.mod."""
    version = re.search(
        rf"^\s*(?:require )?{re.escape(source)} v(\d+\.\d+\.\d+)\b", go_mod, flags=re.MULTILINE
    )
    go = re.search(r"^go (\d+\.\d+\.\d+)$", go_mod, flags=re.MULTILINE)
    assert version, f"go.mod says no version of {source}"
    assert go, "go.mod says no version of Go"
    return Pins(version[1], go[1])
