"""Runs the test that is to find a mutant, on a copy of podtide with the mutant's line."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mutants.breaking import PACKAGE, break_copy
from mutants.catalogue import Mutant

_ROOT = Path(__file__).parents[2]
_PASSED, _FAILED = 0, 1
"""What pytest exits with. Anything else is no verdict: there is no such test, or it could not be collected."""


class NoVerdict(Exception):
    """The test neither passed nor failed."""


def fails(mutant: Mutant | None, tests: tuple[str, ...], package: Path = PACKAGE) -> bool:
    """Whether one of the tests fails with the mutant; None is podtide as it is."""
    with TemporaryDirectory() as directory:
        source = package.parent if mutant is None else Path(directory)
        if mutant is not None:
            break_copy(mutant, package, source)
        told = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if told.returncode not in {_PASSED, _FAILED}:
        raise NoVerdict(f"{' '.join(tests)}: {told.stdout.decode()[-2000:]}")
    return told.returncode == _FAILED
