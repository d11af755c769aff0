"""Search for every mutant anew: `make mutants`. With --pin, keep the seeds for tests/simulation/test_mutants.py and docs.

A mutant that names a test is tried on that. Seeds begin at a number made from the time, so every search is another one; those that are kept begin at 1. Exit 1 if a
mutant was not found, or if a seed failed with podtide as it is: then there is something to mend first.
"""

import argparse
import sys
import time

from msgspec import structs

from mutants.breaking import snapshot
from mutants.catalogue import MUTANTS, Mutant
from mutants.pins import Pin, read_pins, write_pins
from mutants.searching import Search, search, size_for
from mutants.table import PAGE, table, with_table
from mutants.testing import fails
from mutants.trial import Trial


def main() -> int:
    """Search, and tell."""
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these mutants alone (default: all)")
    parser.add_argument("--first", type=int, help="the first seed (default: by the time; 1 with --pin)")
    parser.add_argument(
        "--seeds", type=int, default=200, help="how many seeds to try for each (default: 200)"
    )
    parser.add_argument("--pin", action="store_true", help="keep the seeds that found something")
    parser.add_argument(
        "--by-calls", action="store_true", help="judge runs by the kubelets' calls alone; nothing is kept"
    )
    given = parser.parse_args()
    if given.pin and given.by_calls:
        parser.error("--pin keeps what runs find with all their checks: give it without --by-calls")
    for name in given.names:
        if name not in by_name:
            parser.error(f"there is no mutant {name}: give some of {', '.join(by_name)}")
    first = given.first if given.first is not None else _first_seed(is_kept=given.pin)
    is_good = True
    with snapshot() as package:
        for name in given.names or by_name:
            if test := by_name[name].test:
                is_found = fails(by_name[name], (test,), package)
                print(f"{name:32}{test if is_found else 'NOT FOUND'}", flush=True)
                is_good = is_good and is_found
                continue
            size = structs.replace(size_for(by_name[name]), by_calls=given.by_calls)
            result = search(by_name[name], range(first, first + given.seeds), size, package)
            tell(by_name[name], result)
            is_good = is_good and result.found is not None and not result.unsound
            if given.pin and result.found is not None:
                pin(name, result.found)
    return 0 if is_good else 1


def _first_seed(*, is_kept: bool) -> int:
    return 1 if is_kept else int(time.time()) * 1000


def pin(name: str, found: Trial) -> None:
    """Keep the seed of a mutant, here and in the table."""
    pins = {**read_pins(), name: Pin(seed=found.seed, finding=found.finding)}
    write_pins(pins)
    PAGE.write_text(with_table(PAGE.read_text(), table(MUTANTS, pins)))


def tell(mutant: Mutant, result: Search) -> None:
    """Print what came of a search."""
    for trial in result.unsound:
        print(f"seed {trial.seed} FAILS WITHOUT A MUTANT: {trial.finding}", flush=True)
    print(f"{mutant.name:32}{_verdict(result.found)}", flush=True)


def _verdict(found: Trial | None) -> str:
    if found is None:
        return "NOT FOUND"
    return f"seed {found.seed:4}  {found.seconds:5.1f} s  {found.finding}"


if __name__ == "__main__":
    sys.exit(main())
