"""What goes into podtide's image, and what it is known by: an image is built anew only if one of these files changed.

The same files are copied before they are hashed and built from, so that an edit during a build is in the next one and
never in this one under a wrong name.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = Path("deploy/Dockerfile")
IGNORED = Path("deploy/Dockerfile.dockerignore")

SAME_TIME = 1_577_836_800
"""2020-01-01: a layer is known by its files' times too, and a fresh checkout has others."""


class SourcesChanged(Exception):
    """Somebody edited a file between hashing and copying."""


def version(root: Path = ROOT) -> str:
    """The tag that the chart asks for unless it is told another one."""
    chart = yaml.safe_load((root / "deploy" / "chart" / "Chart.yaml").read_text())
    return str(chart["appVersion"])


def source_files(root: Path = ROOT) -> list[Path]:
    """The files that a build sees, and what tells it how to build, relative to the repository's root."""
    rules = (root / IGNORED).read_text().split()
    let_in = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    kept_out = [rule.removeprefix("**/") for rule in rules if not rule.startswith("!") and rule != "*"]
    found = [path for top in let_in for path in _files(root, Path(top), kept_out)]
    return sorted([DOCKERFILE, IGNORED, *found])


def _files(root: Path, path: Path, kept_out: list[str]) -> Iterator[Path]:
    if any(fnmatch(str(path), rule) or fnmatch(path.name, rule) for rule in kept_out):
        return
    if (root / path).is_dir():
        for inner in (root / path).iterdir():
            yield from _files(root, inner.relative_to(root), kept_out)
    else:
        yield path


def sources_hash(root: Path = ROOT) -> str:
    """One for every content of these files, their names and whether they can be executed."""
    whole = hashlib.sha256()
    for path in source_files(root):
        executable = os.access(root / path, os.X_OK)
        content = hashlib.sha256((root / path).read_bytes()).hexdigest()
        whole.update(f"{path} {executable:d} {content}\n".encode())
    return whole.hexdigest()


def copy_sources(target: Path, expected: str, root: Path = ROOT) -> None:
    """Copy the files; SourcesChanged unless their hash is the expected one."""
    for path in source_files(root):
        copied = target / path
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, copied)
        os.utime(copied, (SAME_TIME, SAME_TIME))
    if sources_hash(target) != expected:
        raise SourcesChanged
