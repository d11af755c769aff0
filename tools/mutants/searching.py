"""Looks for a seed that tells a mutant from podtide as it is.

Each runs in a process of its own, because each is another `podtide`. That a seed fails with a mutant proves nothing by
itself: it counts only if the same seed is clean without.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from mutants import worker
from mutants.bounded import run_bounded
from mutants.breaking import PACKAGE, break_copy
from mutants.catalogue import Mutant
from mutants.trial import Size, Trial

_TOOLS = Path(__file__).parents[1]
_PROCESSOR_SECONDS = 7200


class CouldNotBegin(Exception):
    """The program that runs seeds ended by itself."""


def size_for(mutant: Mutant) -> Size:
    """How large a run has to be to find it."""
    return Size(networks=mutant.networks, placement=mutant.placement)


class Search(Struct, frozen=True):
    """What came of a search: the seed that found the mutant, if one did, and seeds that fail without any mutant."""

    found: Trial | None
    unsound: tuple[Trial, ...] = ()


def search(mutant: Mutant, seeds: Iterable[int], size: Size, package: Path = PACKAGE) -> Search:
    """Try seeds in turn until one finds the mutant."""
    left = list(seeds)
    unsound: list[Trial] = []
    while left:
        last = run_until_failure(mutant, left, size, package)[-1]
        if not last.finding:
            break
        [unbroken] = run_until_failure(None, [last.seed], size, package)
        if not unbroken.finding:
            return Search(last, tuple(unsound))
        unsound.append(unbroken)
        left = left[left.index(last.seed) + 1 :]
    return Search(None, tuple(unsound))


def run_until_failure(
    mutant: Mutant | None, seeds: Iterable[int], size: Size, package: Path = PACKAGE
) -> list[Trial]:
    """Run seeds, up to the first that fails; None is podtide as it is."""
    with TemporaryDirectory() as directory:
        source = package.parent if mutant is None else Path(directory)
        if mutant is not None:
            break_copy(mutant, package, source)
        return run_in(source, seeds, size)


def run_in(
    source: Path, seeds: Iterable[int], size: Size, processor_seconds: int = _PROCESSOR_SECONDS
) -> list[Trial]:
    """Run seeds with the `podtide` that is in a directory, up to the first that fails."""
    told = run_bounded(
        [sys.executable, "-m", worker.__name__, *_arguments(seeds, size)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(_TOOLS)))},
        processor_seconds=processor_seconds,
    )
    if told.status:
        raise CouldNotBegin(f"exit status {told.status}")
    return [msgspec.json.decode(line, type=Trial) for line in told.output.splitlines()]


def _arguments(seeds: Iterable[int], size: Size) -> Iterator[str]:
    options = size.nodes, size.trouble_seconds, size.networks, int(size.placement), int(size.by_calls)
    return map(str, (*options, *seeds))
