"""The small images of tests on real kubelets: what holds a pod's namespaces, and something to run in a pod."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

from container_images.cache import Turn, made, say_on_stderr
from container_images.debian import fetch, update_package_lists
from container_images.oci import write_archive
from container_images.workshop import workshop, workshop_hash
from control_plane.go_toolchain import Say

PAUSE = "localhost/pause:1"
WORKLOAD = "localhost/workload:1"

PAUSE_SOURCE = Path(__file__).parent / "pause.rs"

COMPILE = (
    "rustc --edition 2021 -C opt-level=s -C panic=abort -C strip=symbols -C target-feature=+crt-static "
    '-o "/mnt/$1" - < /mnt/pause.rs'
)


def pause_program(say: Say = say_on_stderr) -> Path:
    """A static executable to be the first process of a PID namespace: see pause.rs."""

    def compile_it(turn: Turn, program: Path) -> None:
        (turn.partial / "pause.rs").write_bytes(PAUSE_SOURCE.read_bytes())
        workshop(turn).run(COMPILE, program.name, turn=turn, what="compiling pause")

    return made(f"pause-{_made_from(PAUSE_SOURCE)}", say, compile_it)


def pause_image(say: Say = say_on_stderr) -> Path:
    """An archive with `localhost/pause:1`, which holds a pod's namespaces."""
    program = pause_program(say)

    def write(turn: Turn, archive: Path) -> None:
        with tarfile.open(turn.partial / "layer.tar", "w") as layer:
            layer.add(program, "pause", filter=_of_root)
        write_archive(turn.partial / "layer.tar", archive, PAUSE, command=["/pause"])

    return made(f"pause-{_made_from(PAUSE_SOURCE, Path(__file__))}.tar", say, write)


def workload_image(say: Say = say_on_stderr) -> Path:
    """An archive with `localhost/workload:1`: Debian's busybox by all its names.

    Unless it is told what to run it waits, and ends at once when it is asked to.
    """
    program = pause_program(say)

    def write(turn: Turn, archive: Path) -> None:
        update_package_lists()
        fetch("busybox-static", turn.partial / "busybox")
        with tarfile.open(turn.partial / "layer.tar", "w") as layer:
            layer.add(program, "pause", filter=_of_root)
            _add_busybox(layer, turn.partial / "busybox" / "bin" / "busybox")
        write_archive(turn.partial / "layer.tar", archive, WORKLOAD, command=["/pause"])

    return made(f"workload-{_made_from(PAUSE_SOURCE, Path(__file__))}.tar", say, write)


def _add_busybox(layer: tarfile.TarFile, busybox: Path) -> None:
    layer.add(busybox, "bin/busybox", filter=_of_root)
    names = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        if name == "busybox":
            continue
        link = tarfile.TarInfo(f"bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        layer.addfile(link)
    scratch = tarfile.TarInfo("tmp")
    scratch.type, scratch.mode = tarfile.DIRTYPE, 0o1777
    layer.addfile(scratch)


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _made_from(*files: Path) -> str:
    """One for each content of these files, and for the tools that make something of them."""
    whole = hashlib.sha256(workshop_hash().encode())
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]
