"""containerd's directory with all images unpacked in it, kept in the user's cache and copied to every new node.

To import and unpack podtide's image takes half a minute of one core; to copy what came of it, by hard links, a second. containerd
never changes a blob or a file of an image's layer in place, so nodes can share them; its databases are copied.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from container_images.cache import images_directory

DATABASES = "io.containerd.*/*.db"
KEPT = 2
"""Stores of older images that are kept, for who goes back and forth between two versions of the source."""


class ImageStore:
    """The store of these images, as one version of containerd writes it."""

    def __init__(self, images: Sequence[Path], containerd: Path) -> None:
        names = " ".join(sorted(path.name for path in (*images, containerd)))
        self._directory = images_directory() / f"store-{hashlib.sha256(names.encode()).hexdigest()[:16]}"

    @property
    def name(self) -> str:
        """Its directory's, in the cache."""
        return self._directory.name

    @property
    def is_kept(self) -> bool:
        """Whether nodes can have a copy."""
        return self._directory.exists()

    def copy_to(self, target: Path) -> None:
        """Fill a new node's directory of containerd's."""
        self._directory.touch()  # the last that was used is the last to go
        _copy(self._directory, target)

    def keep(self, source: Path) -> None:
        """Keep the directory of a containerd that has imported the images, and is not running.

        Where another process was first, its copy stays: the two are alike.
        """
        partial = Path(tempfile.mkdtemp(prefix=".store-", dir=self._directory.parent))
        try:
            _copy(source, partial / "store")
            with suppress(OSError):
                (partial / "store").rename(self._directory)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        assert self.is_kept, f"{self._directory} cannot be made"
        kept = sorted(self._directory.parent.glob("store-*"), key=lambda path: path.stat().st_mtime)
        for old in kept[: -KEPT - 1]:
            shutil.rmtree(old, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Everything with owners, attributes and devices, by hard links where the two are on one disk."""
    same_disk = source.stat().st_dev == target.parent.stat().st_dev
    how = ["--archive", "--link"] if same_disk else ["--archive"]
    subprocess.run(["cp", *how, source, target], check=True)  # noqa: S607 - this machine's cp
    for database in source.glob(DATABASES):
        copied = target / database.relative_to(source)
        copied.unlink()
        shutil.copy2(database, copied)
