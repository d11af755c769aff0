"""What tests run podtide beside and by: Whereabouts, and cnitool, which calls plugins as runtimes do, by libcni."""

import hashlib
import sys
from pathlib import Path

from msgspec import structs

from control_plane.errors import CannotBuild
from control_plane.go_toolchain import find_or_install_go
from go_program import GoProgram, executable

MODULE = Path(__file__).parent / "cni-programs"

CNITOOL = GoProgram(
    name="cnitool",
    file="cnitool",
    module=MODULE,
    source="github.com/containernetworking/cni",
    package="github.com/containernetworking/cni/cnitool",
)
LIBCNI_GC = structs.replace(
    CNITOOL,
    name="libcni's garbage collection",
    # Other than the rest it is a source of ours, which changes without its module's version.
    file=f"libcni-gc-{hashlib.sha256((MODULE / 'gc' / 'main.go').read_bytes()).hexdigest()[:12]}",
    package="podtide/cni-programs/gc",
)
WHEREABOUTS = GoProgram(
    name="Whereabouts",
    file="whereabouts",
    module=MODULE,
    source="github.com/k8snetworkplumbingwg/whereabouts",
    package="github.com/k8snetworkplumbingwg/whereabouts/cmd",
    version_variable="github.com/k8snetworkplumbingwg/whereabouts/pkg/version.Version",
)
WHEREABOUTS_SLICES = structs.replace(
    WHEREABOUTS,
    name="Whereabouts' node slice controller",
    file="whereabouts-node-slice-controller",
    package=f"{WHEREABOUTS.package}/nodeslicecontroller",
)


def say_on_stderr(line: str) -> None:
    """Tell a person; a log gets the same lines."""
    print(f"cni programs: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        for program in (CNITOOL, LIBCNI_GC, WHEREABOUTS, WHEREABOUTS_SLICES):
            executable(program, say_on_stderr, find_or_install_go)
    except CannotBuild as lack:
        say_on_stderr(str(lack))
        sys.exit(1)
