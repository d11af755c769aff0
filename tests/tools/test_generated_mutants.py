"""Mutants made by machine: each is another program, and all the ways to be wrong are there."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutants import bounded, score
from mutants.bounded import DidNotEnd, run_bounded
from mutants.breaking import PACKAGE
from mutants.generation import GeneratedMutant, apply, mutants_of, sample

SOURCE = '''
"""é"""
def decide(a, b):
    if a < b and not (a
            in (1, 2)):
        begin(a)
        end(b)
    return max(a + 1, b) if a is None else "x" + a
'''


def made() -> Iterator[tuple[str, str, str]]:
    return ((mutant.kind, mutant.old.strip(), mutant.new.strip()) for mutant in mutants_of("x.py", SOURCE))


@pytest.mark.parametrize(
    "expected",
    [
        ("comparison flipped", "<", "<="),
        ("comparison flipped", "in", "not in"),
        ("comparison flipped", "is", "is not"),
        ("branch dropped", "a < b and not (a\n            in (1, 2))", "False"),
        ("condition inverted", "a is None", "not (a is None)"),
        ("operator exchanged", "max", "min"),
        ("operator exchanged", "+", "-"),
        ("call removed", "begin(a)", "pass"),
        ("order swapped", "begin(a)\n        end(b)", "end(b)\n        begin(a)"),
    ],
)
def test_a_decision_can_be_wrong_in_all_these_ways(expected: tuple[str, str, str]) -> None:
    assert expected in set(made())


def test_text_is_not_subtracted() -> None:
    assert [each for each in made() if each[1:] == ("+", "-")] == [("operator exchanged", "+", "-")]


def test_every_mutant_is_python_and_another_program() -> None:
    before = ast.dump(ast.parse(SOURCE))
    for mutant in mutants_of("x.py", SOURCE):
        assert ast.dump(ast.parse(apply(mutant, SOURCE))) != before


def test_a_sample_is_the_same_again_and_each_can_be_applied() -> None:
    drawn = sample(PACKAGE, 40, seed=7)
    assert drawn == sample(PACKAGE, 40, seed=7)
    assert len({mutant.name for mutant in drawn}) == 40
    for mutant in drawn:
        source = (PACKAGE / mutant.file).read_text()
        assert ast.dump(ast.parse(apply(mutant, source))) != ast.dump(ast.parse(source))


def test_a_sample_stays_while_other_lines_change() -> None:
    after = mutants_of("x.py", SOURCE.replace("def decide", "LATER = 1\n\n\ndef decide"))
    assert [mutant.name for mutant in after] == [mutant.name for mutant in mutants_of("x.py", SOURCE)]
    assert len({mutant.name for mutant in after}) == len(after)


def test_a_command_is_given_processor_time_and_no_more() -> None:
    with pytest.raises(DidNotEnd):
        run_bounded([sys.executable, "-c", "while True: pass"], env={}, processor_seconds=1)


def test_a_command_that_waits_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(bounded, "_ASLEEP_LOOKS", 3)
    with pytest.raises(DidNotEnd):
        run_bounded([sys.executable, "-c", "import time; time.sleep(600)"], env={}, processor_seconds=60)


def test_tests_that_name_the_module_come_first() -> None:
    first, last = score.tests_of("core/subnet/exhaustion.py")
    assert "tests/core/test_exhaustion.py" in first
    assert last == ("tests/core",)


def test_verdicts_are_kept_and_counted(tmp_path: Path) -> None:
    mutants: list[GeneratedMutant] = mutants_of("core/x.py", SOURCE)[:3]
    verdicts = [
        score.Verdict(mutant=mutant, found_by=who)
        for mutant, who in zip(mutants, ("tests", "seeds", ""), strict=True)
    ]
    assert score.read(tmp_path / "none") == {}
    lines = list(score.told(verdicts))
    assert lines[0] == "3 mutants: tests found 1, seeds 1, nobody 1"
    assert sum(line.startswith("survives: core/x.py:") for line in lines) == 1
