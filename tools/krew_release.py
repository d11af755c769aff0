"""Make what krew installs, for a release: the archive of `kubectl podtide`, and the manifest with its address and digest.

    python tools/krew_release.py TAG SOURCE TARGET

SOURCE is the repository's address, where the release has the archive. The same files always make the same archive.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "deploy" / "krew" / "podtide.yaml"
ARCHIVED = (ROOT / "deploy" / "krew" / "kubectl-podtide", ROOT / "LICENSE")


def archive() -> bytes:
    """The archive, with nothing in it of who made it, or when."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as made:
        for path in ARCHIVED:
            content = path.read_bytes()
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = len(content), path.stat().st_mode & 0o755
            made.addfile(entry, io.BytesIO(content))
    return gzip.compress(tar.getvalue(), mtime=0)


def manifest(tag: str, source: str, content: bytes) -> str:
    """The manifest for an archive with this content."""
    digest = hashlib.sha256(content).hexdigest()
    comment, _, template = TEMPLATE.read_text().partition("\n")
    assert comment.startswith("#")
    return Template(template).substitute(TAG=tag, SOURCE=source, DIGEST=digest)


def main(tag: str, source: str, target: Path) -> None:
    """Write both."""
    target.mkdir(parents=True)
    content = archive()
    (target / "kubectl-podtide.tar.gz").write_bytes(content)
    (target / "podtide.yaml").write_text(manifest(tag, source, content))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
