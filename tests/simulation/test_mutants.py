"""The simulation bites: each mutant is found by its pinned seed, and podtide as it is passes the same seed.

Seeds mean something else when the simulation draws otherwise. Then `make mutants ARGS=--pin` finds new ones.
"""

import pytest

from mutants.breaking import PACKAGE, NotOneLine, broken
from mutants.catalogue import MUTANTS, Mutant
from mutants.pins import read_pins
from mutants.searching import run_until_failure, size_for
from mutants.table import PAGE, table, table_in
from mutants.testing import NoVerdict, fails
from mutants.trial import Size
from podtide.simulation.run.shrinking import kind_of_failure

PINS = read_pins()
FOUND = [mutant for mutant in MUTANTS if mutant.name in PINS]
BY_TESTS = [mutant for mutant in MUTANTS if mutant.test]


def by_name(mutant: Mutant) -> str:
    return mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=by_name)
def test_a_mutant_is_one_line_that_the_code_has_once(mutant: Mutant) -> None:
    source = (PACKAGE / mutant.file).read_text()
    before, after = source.splitlines(), broken(mutant, source).splitlines()
    assert len(before) == len(after)
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_a_mutant_of_a_line_that_is_not_there_is_refused() -> None:
    with pytest.raises(NotOneLine, match="0 times, not once"):
        broken(MUTANTS[0], "another line\n")


def test_a_mutant_of_a_line_that_is_there_twice_is_refused() -> None:
    with pytest.raises(NotOneLine, match="2 times, not once"):
        broken(MUTANTS[0], f"{MUTANTS[0].old}\n    {MUTANTS[0].old}\n")


def test_every_mutant_is_found_within_200_seeds_or_names_the_test_that_finds_it() -> None:
    assert PINS.keys() == {mutant.name for mutant in MUTANTS if not mutant.test}
    assert all(1 <= pin.seed <= 200 for pin in PINS.values())


def test_the_table_in_the_documentation_is_that_of_the_pinned_seeds() -> None:
    assert table_in(PAGE.read_text()) == table(MUTANTS, PINS)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", FOUND, ids=by_name)
def test_the_simulation_finds_the_mutant(mutant: Mutant) -> None:
    pin = PINS[mutant.name]
    [trial] = run_until_failure(mutant, [pin.seed], size_for(mutant))
    assert trial.finding
    assert kind_of_failure(trial.finding) == kind_of_failure(pin.finding)


@pytest.mark.slow
@pytest.mark.parametrize("size", sorted({size_for(mutant) for mutant in FOUND}), ids=str)
def test_podtide_as_it_is_passes_the_same_seeds(size: Size) -> None:
    seeds = sorted({PINS[mutant.name].seed for mutant in FOUND if size_for(mutant) == size})
    trials = run_until_failure(None, seeds, size)
    assert [(trial.seed, trial.finding) for trial in trials] == [(seed, "") for seed in seeds]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", BY_TESTS, ids=by_name)
def test_the_named_test_finds_the_mutant(mutant: Mutant) -> None:
    assert fails(mutant, (mutant.test,))


@pytest.mark.slow
def test_podtide_as_it_is_passes_the_named_tests() -> None:
    assert not fails(None, tuple(mutant.test for mutant in BY_TESTS))


@pytest.mark.slow
def test_a_test_that_is_not_there_is_no_verdict() -> None:
    with pytest.raises(NoVerdict, match="not found"):
        fails(None, ("tests/simulation/test_mutants.py::test_nothing",))
