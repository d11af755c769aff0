"""A root directory with buildah and Rust, and buildah's storage with the Dockerfile's base images in it.

Both are made once. The storage keeps the layers of the last build, so that an edit of podtide's sources costs only the
steps after it.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from container_images.cache import Turn
from container_images.debian import (
    CODENAME,
    OPTIONS,
    RootFileSystem,
    architecture,
    fetch,
    machine_environment,
    make_root,
    update_package_lists,
)
from container_images.isolation import run_isolated
from container_images.mirrors import CERTIFICATES, pip_configuration, pip_settings, uv_configuration
from container_images.oci import write_archive

PYTHON = RootFileSystem(
    packages=("ca-certificates", "python3", "python3-pip"),
    # As in the image it stands for: `python` is there, and pip may install.
    changes='ln -s python3 "$1/usr/bin/python" && rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
)
RUST = RootFileSystem(packages=("buildah", "ca-certificates", "cargo"))
"""buildah itself runs in it too: one root file system less to make."""

PYTHON_IMAGE = "docker.io/library/python:3.11-slim"
RUST_IMAGE = "docker.io/library/rust:1-slim"
BASE_IMAGES = {PYTHON_IMAGE: PYTHON, RUST_IMAGE: RUST}
"""By the names that the Dockerfile's resolve to."""

ENTER = r"""
set -e
root=$1 storage=$2 workplace=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=0700 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/var/cache" # short names such as python:3.11-slim are not resolved without a file there
mount --bind "$storage" "$root/var/lib/containers/storage"
mount --bind "$workplace" "$root/mnt"
mkdir -p "$workplace/tmp"
mount --bind "$workplace/tmp" "$root/var/tmp"
mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -e /etc/hosts ] || mount --bind /etc/hosts "$root/etc/hosts"
[ ! -e "$CERTIFICATES" ] || mount --bind "$CERTIFICATES" "$root/etc/ssl/certs/ca-certificates.crt"
printf %s "$PIP_CONF" > "$root/run/pip.conf"
printf %s "$UV_TOML" > "$root/run/uv.toml"
unset CERTIFICATES PIP_CONF UV_TOML
exec chroot "$root" sh -eu -c "$@"
"""
"""In namespaces of its own. What may hold a mirror's password is only ever in memory there."""


class Workshop(Struct, frozen=True):
    """Where images are built."""

    directory: Path

    @property
    def root(self) -> Path:
        """The root directory that commands run in."""
        return self.directory / "root"

    @property
    def storage(self) -> Path:
        """Where buildah keeps base images and layers."""
        return self.directory / "storage"

    def run(self, script: str, *arguments: str, turn: Turn, what: str) -> None:
        """Run a shell script there, with its arguments from $1 on. It finds the turn's directory as /mnt."""
        run_isolated(
            ["sh", "-c", ENTER, "enter", self.root, self.storage, turn.partial, script, "sh", *arguments],
            what=what,
            log=turn.log,
            say=turn.say,
            environment=self._environment(),
        )

    def _environment(self) -> Mapping[str, str]:
        settings = pip_settings()
        return machine_environment() | {
            "BUILDAH_ISOLATION": "chroot",
            "TMPDIR": "/var/tmp",  # noqa: S108 - the turn's own directory, which is mounted there
            "CERTIFICATES": str(CERTIFICATES),
            "PIP_CONF": pip_configuration(settings),
            "UV_TOML": uv_configuration(settings),
        }


def workshop_hash() -> str:
    """One for all that it is made from, but for the releases of Debian's packages: these are as of the day."""
    made_from = msgspec.json.encode([BASE_IMAGES, OPTIONS, CODENAME, architecture()])
    return hashlib.sha256(made_from).hexdigest()[:16]


def workshop(turn: Turn) -> Workshop:
    """The workshop, made first if it is not there, which takes minutes."""
    directory = turn.cache / f"workshop-{workshop_hash()}"
    if not directory.exists():
        turn.say(f"making base images of Debian's packages, and what builds on them: {directory}, once")
        for old in turn.cache.glob("workshop-*"):
            shutil.rmtree(old)
        unfinished = Workshop(turn.partial / "workshop")
        _make(unfinished, turn)
        unfinished.directory.rename(directory)
    return Workshop(directory)


def _make(unfinished: Workshop, turn: Turn) -> None:
    unfinished.storage.mkdir(parents=True)
    update_package_lists()
    fetch("mmdebstrap", turn.partial / "mmdebstrap")
    layers = {name: turn.partial / f"{name.rpartition('/')[2]}.layer" for name in BASE_IMAGES}
    for name, layer in layers.items():
        turn.say(name)
        make_root(
            BASE_IMAGES[name],
            layer,
            what=name,
            mmdebstrap=turn.partial / "mmdebstrap",
            log=turn.log,
            say=turn.say,
        )
    _unpack(layers[RUST_IMAGE], unfinished.root, turn)
    for name, layer in layers.items():
        archive = turn.partial / "base.tar"
        write_archive(layer, archive, name)
        layer.unlink()
        unfinished.run("buildah pull --quiet oci-archive:/mnt/base.tar", turn=turn, what=f"storing {name}")


def _unpack(layer: Path, root: Path, turn: Turn) -> None:
    root.mkdir()
    run_isolated(
        ["tar", "--extract", "--numeric-owner", "--file", layer, "--directory", root],
        what="unpacking the workshop",
        log=turn.log,
        say=turn.say,
        environment=machine_environment(),
    )
    (root / "var/lib/containers/storage").mkdir(parents=True, exist_ok=True)
    for file in ("etc/hosts", "etc/resolv.conf"):  # the machine's own are mounted there
        (root / file).touch()
