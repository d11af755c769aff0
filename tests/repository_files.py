"""The files of the repository, for tests that look through all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def files_of_the_repository() -> Iterator[Path]:
    """Every file but those in directories that .gitignore names: a clone without git has these too.

    In a working tree of git's, .git is a file, with a path of this machine.
    """
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()} | {".git"}
    for directory, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in ignored and not name.endswith(".egg-info")]
        yield from (
            Path(directory) / name for name in names if name != ".git" and not name.startswith(".coverage")
        )
