"""A container image of one layer, written as an archive that `ctr images import`, `buildah pull` and `podman load` take.

The format is the OCI image layout in a tar file: every part is a blob named by its SHA-256, and index.json says where to
start. Nothing but this file is needed to write one.
"""

import hashlib
import io
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


class Descriptor(Struct, frozen=True, rename="camel"):
    """A blob, as other blobs refer to it."""

    media_type: str
    digest: str
    size: int

    @property
    def path(self) -> str:
        """Where it is in the archive."""
        return f"blobs/{self.digest.replace(':', '/')}"


def write_archive(layer: Path, archive: Path, name: str, *, command: Sequence[str] = ()) -> None:
    """Write the image `name` whose root file system is in the tar file `layer`, and which runs `command` unless told otherwise."""
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    whole = Descriptor(LAYER, f"sha256:{digest}", layer.stat().st_size)
    config = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": [f"PATH={SYSTEM_PATH}"], "Cmd": list(command)},
        # The digest of a layer that is not compressed is also that of its content.
        "rootfs": {"type": "layers", "diff_ids": [whole.digest]},
        # buildah counts layers by it, and builds on no image that lacks it.
        "history": [{"created_by": "podtide"}],
    }
    with tarfile.open(archive, "w") as image:
        _add(image, "oci-layout", msgspec.json.encode({"imageLayoutVersion": "1.0.0"}))
        with layer.open("rb") as content:
            image.addfile(_entry(whole.path, whole.size), content)
        described = _add_blob(image, CONFIG, config)
        manifest = _add_blob(
            image,
            MANIFEST,
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": [whole]},
        )
        named = msgspec.to_builtins(manifest) | {"annotations": _annotations(name)}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}
        _add(image, "index.json", msgspec.json.encode(index))


def _annotations(name: str) -> Mapping[str, str]:
    """The name for containerd, which takes it as it is, and for all others."""
    return {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}


def _add_blob(image: tarfile.TarFile, media_type: str, content: object) -> Descriptor:
    encoded = msgspec.json.encode(content)
    blob = Descriptor(media_type, f"sha256:{hashlib.sha256(encoded).hexdigest()}", len(encoded))
    _add(image, blob.path, encoded)
    return blob


def _add(image: tarfile.TarFile, path: str, content: bytes) -> None:
    image.addfile(_entry(path, len(content)), io.BytesIO(content))


def _entry(path: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.size = size
    return entry
