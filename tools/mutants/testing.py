"""Runs the test that is to find a mutant, on a copy of podtide with the mutant's line."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mutants.bounded import DidNotEnd, run_bounded
from mutants.breaking import PACKAGE, break_copy
from mutants.catalogue import Mutant

_ROOT = Path(__file__).parents[2]
_PASSED, _FAILED = 0, 1
"""What pytest exits with. Anything else is no verdict: there is no such test, or it could not be collected."""

_PROCESSOR_SECONDS = 1800


class NoVerdict(Exception):
    """The test neither passed nor failed."""


def fails(mutant: Mutant | None, tests: tuple[str, ...], package: Path = PACKAGE) -> bool:
    """Whether one of the tests fails with the mutant; None is podtide as it is."""
    if mutant is None:
        return fails_in(package.parent, tests)
    with TemporaryDirectory() as directory:
        break_copy(mutant, package, Path(directory))
        return fails_in(Path(directory), tests)


def fails_in(source: Path, arguments: tuple[str, ...], processor_seconds: int = _PROCESSOR_SECONDS) -> bool:
    """Whether a test fails with the `podtide` that is in a directory. One that takes too long has failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    env = {**os.environ, "PYTHONPATH": str(source)}
    try:
        told = run_bounded(command, cwd=_ROOT, env=env, processor_seconds=processor_seconds, with_errors=True)
    except DidNotEnd:
        return True
    if told.status not in {_PASSED, _FAILED}:
        raise NoVerdict(f"{' '.join(arguments)}: {told.output.decode()[-2000:]}")
    return told.status == _FAILED
