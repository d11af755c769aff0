"""Root file systems made of Debian's packages, from the mirrors that this machine's apt uses.

Nothing is installed on the machine: mmdebstrap, which makes them, is unpacked beside them.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

from container_images.isolation import run_isolated
from container_images.oci import SYSTEM_PATH
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import Say, last_line

CODENAME = "bookworm"
"""The Debian whose Python is that of the Dockerfile's base image."""

PROGRAMS = ("apt-get", "apt-config", "dpkg", "perl", "setpriv", "unshare", "tar")

# Faster, and half as large: nobody reads manuals there, and after a power cut all of it is made anew.
OPTIONS = (
    "--mode=root",
    "--variant=minbase",
    "--format=tar",
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    # What apt was told for this machine is nothing for an image.
    '--customize-hook=rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap',
)


IN_MEMORY = 'mount -t tmpfs tmpfs "$1" && shift && exec "$@"'
"""dpkg syncs every few files, which takes minutes on a busy disk."""


class RootFileSystem(Struct, frozen=True):
    """What a root file system is made from."""

    packages: tuple[str, ...]
    changes: str = ""
    """Shell commands that complete it; $1 is its directory."""


def check_machine(release: Path = Path("/etc/os-release")) -> None:
    """CannotBuild unless images can be built here."""
    needs = "container images are built by root on Debian 12"
    text = release.read_text() if release.exists() else ""
    if f"VERSION_CODENAME={CODENAME}" not in text.splitlines():
        raise CannotBuild(f"{needs}, whose packages they are made of: this is another system")
    if os.getuid() != 0:
        raise CannotBuild(f"{needs}: run this as root (sudo make images)")
    if lacking := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise CannotBuild(f"{needs}, which lacks {', '.join(lacking)} here: install it")


def architecture() -> str:
    """This machine's, as part of a name."""
    return platform.machine()


def make_root(  # noqa: PLR0913 - of what, by what, where, and who is told
    root: RootFileSystem, archive: Path, *, what: str, mmdebstrap: Path, log: Path, say: Say
) -> None:
    """Write the root file system as a tar file, with owners and devices."""
    settings = archive.with_name("apt.conf")
    settings.write_text(_apt_settings())
    sources = archive.with_name("sources.list")
    sources.write_text(_sources())
    memory = archive.with_name("memory")
    memory.mkdir(exist_ok=True)
    run_isolated(
        [
            *("sh", "-c", IN_MEMORY, "sh", memory),
            mmdebstrap / "usr/bin/mmdebstrap",
            *OPTIONS,
            f"--aptopt={settings}",
            f"--include={','.join(root.packages)}",
            *([f"--customize-hook={root.changes}"] if root.changes else []),
            CODENAME,
            archive,
            sources,
        ],
        what=what,
        log=log,
        say=say,
        # It calls a program of its own by name.
        environment=machine_environment()
        | {"PATH": f"{mmdebstrap}/usr/bin:{SYSTEM_PATH}", "TMPDIR": str(memory)},
    )


def fetch(package: str, directory: Path) -> None:
    """Unpack a package's files into `directory`, without installing it."""
    downloaded = directory / "packages"
    downloaded.mkdir(parents=True)
    _ask("apt-get", "download", "--quiet", package, directory=downloaded)
    for archive in downloaded.glob("*.deb"):
        _ask("dpkg", "--extract", str(archive), str(directory))
    shutil.rmtree(downloaded)


def update_package_lists() -> None:
    """Have apt know what its mirrors offer: a machine that was made from an image often knows of nothing.

    A failure is left to whoever asks for a package then: one of several mirrors may be down and not matter.
    """
    subprocess.run(["apt-get", "update", "-qq"], check=False, capture_output=True)  # noqa: S607 - the machine's own


def machine_environment() -> dict[str, str]:
    """What the machine says about its network, and nothing of a user's habits."""
    proxies = {"http_proxy", "https_proxy", "no_proxy", "all_proxy"}
    found = {name: value for name, value in os.environ.items() if name.lower() in proxies}
    return found | {"PATH": SYSTEM_PATH, "HOME": "/root", "LC_ALL": "C.UTF-8"}


def _sources() -> str:
    """Debian's own repositories among those of this machine: as sources.list has them."""
    targets = _ask(
        *("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"),
        *("Created-By: Packages", "Origin: Debian"),
    )
    if not targets.strip():
        raise CannotBuild(
            "apt knows no repository of Debian on this machine: name one in /etc/apt/sources.list"
        )
    return targets


def _apt_settings() -> str:
    """How this machine's apt reaches its mirrors: proxies, certificates, patience."""
    lines = _ask("apt-config", "dump", "Acquire").splitlines()
    return "\n".join(line for line in lines if not line.startswith("Acquire::IndexTargets")) + "\n"


def _ask(*command: str, directory: Path | None = None) -> str:
    answer = subprocess.run(command, check=False, cwd=directory, capture_output=True, text=True)
    if answer.returncode != 0:
        raise CannotBuild(f"{' '.join(command)} failed: {last_line(answer.stderr)}")
    return answer.stdout
