"""Who finds mutants that a machine made: `make mutant-score`. The quick tests, the simulation, or nobody.

A sample is drawn from all small changes of the code that decides on addresses (`generation`). Each mutant is tried on
the quick tests beside its code, and, where these pass, on a few seeds of the simulation. Verdicts are kept in a file, one
line of JSON each, and what is there is not tried again, so that a score can be made in several goes. Survivors are
printed with their lines: each is a test that is missing, or a change that changes nothing.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from mutants.bounded import DidNotEnd
from mutants.breaking import copy_with, snapshot
from mutants.generation import GeneratedMutant, apply, sample
from mutants.searching import CouldNotBegin, run_in
from mutants.testing import NoVerdict, fails_in
from mutants.trial import Size

_ROOT = Path(__file__).parents[2]
_RESULTS = Path.home() / ".cache/podtide/generated-mutants.jsonl"
_TESTS_OF = {
    "core/": "tests/core",
    "agent/networks/": "tests/agent/networks",
    "agent/pool/": "tests/agent",
    "controller/": "tests/controller",
}
_OF_NETWORKS = ("networks/", "controller/slices/", "controller/repair/")
_TESTS_SECONDS, _SEEDS_SECONDS = 400, 600
"""Of processor time."""


class Verdict(Struct, frozen=True, kw_only=True):
    """Who found a mutant."""

    mutant: GeneratedMutant
    found_by: str
    """`tests`, `seeds`, or "" for nobody."""
    finding: str = ""
    """What a seed found."""


def main() -> int:
    """Judge a sample, and tell."""
    parser = argparse.ArgumentParser(prog="mutants.score", description=__doc__)
    parser.add_argument("--size", type=int, default=200, help="how many mutants (default: 200)")
    parser.add_argument(
        "--sample", type=int, default=1, help="which sample: the seed of the draw (default: 1)"
    )
    parser.add_argument(
        "--seeds", type=int, default=5, help="seeds for those that tests do not find (default: 5)"
    )
    parser.add_argument("--told", action="store_true", help="tell what is judged so far, and try no more")
    parser.add_argument("--results", type=Path, default=_RESULTS, help=f"the file (default: {_RESULTS})")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    judged = read(given.results)
    with snapshot() as package:
        drawn = sample(package, given.size, given.sample)
        for mutant in () if given.told else drawn:
            if mutant.name not in judged:
                verdict = judged[mutant.name] = judge(mutant, package, given.seeds)
                with given.results.open("ab") as file:
                    file.write(msgspec.json.encode(verdict) + b"\n")
                print(f"{verdict.found_by or 'NOBODY':8} {mutant.name}", flush=True)
    for line in told([judged[mutant.name] for mutant in drawn if mutant.name in judged]):
        print(line)
    return 0


def read(file: Path) -> dict[str, Verdict]:
    """The verdicts that are kept, by the names of the mutants."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    verdicts = [msgspec.json.decode(line, type=Verdict) for line in lines]
    return {verdict.mutant.name: verdict for verdict in verdicts}


def judge(mutant: GeneratedMutant, package: Path, seeds: int) -> Verdict:
    """Try the tests beside the mutant's code, then seeds."""
    with TemporaryDirectory() as directory:
        source = Path(directory)
        copy_with(mutant.file, apply(mutant, (package / mutant.file).read_text()), package, source)
        for tests in tests_of(mutant.file):
            try:
                is_found = fails_in(source, ("-m", "not slow", *tests), _TESTS_SECONDS)
            except NoVerdict:
                is_found = True  # it cannot even be imported
            if is_found:
                return Verdict(mutant=mutant, found_by="tests")
        finding = _found_by_seeds(source, mutant.file, seeds)
    return Verdict(mutant=mutant, found_by="seeds" if finding else "", finding=finding)


def tests_of(file: str) -> list[tuple[str, ...]]:
    """The tests to try: first those that name the module, then all of its part."""
    module = "podtide." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    naming = sorted(
        str(place)
        for path in (_ROOT / "tests").rglob("test_*.py")
        if "simulation" not in (place := path.relative_to(_ROOT)).parts and module in path.read_text()
    )
    beside = next(tests for part, tests in _TESTS_OF.items() if file.startswith(part))
    return [*((tuple(naming),) if naming else ()), (beside,)]


def _found_by_seeds(source: Path, file: str, seeds: int) -> str:
    """What the first seed that fails found; "" if none does."""
    networks = 4 if any(part in file for part in _OF_NETWORKS) else 0
    try:
        trials = run_in(source, range(1, seeds + 1), Size(networks=networks), _SEEDS_SECONDS)
    except DidNotEnd:
        return "a run did not end"
    except CouldNotBegin as error:
        return f"a run could not begin: {error}"
    return trials[-1].finding if trials else ""


def told(verdicts: Iterable[Verdict]) -> Iterable[str]:
    """The score in lines: by kind of change, and every survivor."""
    verdicts = list(verdicts)
    by_kind = Counter((verdict.mutant.kind, verdict.found_by) for verdict in verdicts)
    found = Counter(verdict.found_by for verdict in verdicts)
    yield f"{len(verdicts)} mutants: tests found {found['tests']}, seeds {found['seeds']}, nobody {found['']}"
    for kind in sorted({verdict.mutant.kind for verdict in verdicts}):
        counts = [by_kind[kind, who] for who in ("tests", "seeds", "")]
        yield f"  {kind:24} tests {counts[0]:4}  seeds {counts[1]:4}  nobody {counts[2]:4}"
    for verdict in verdicts:
        if not verdict.found_by:
            mutant = verdict.mutant
            yield f"survives: {mutant.file}:{mutant.line} {mutant.kind}: {_flat(mutant.old)} → {_flat(mutant.new)}"


def _flat(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
