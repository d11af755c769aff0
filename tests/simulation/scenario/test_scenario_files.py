"""Every scenario file comes out as it says, and docs/scenarios.md tells of each of them and of each of their words."""

from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from podtide.simulation.scenario.playing import play
from podtide.simulation.scenario.reading import read_scenario
from podtide.simulation.scenario.vocabulary import MEASURE_WORDS, STEP_WORDS
from simulation.scenario.scenario_files import FILES, ROOT, STORIES, TRAPS

PAGE = (ROOT / "docs" / "scenarios.md").read_text().splitlines()


LONG = {
    "batch-in-one-step",
    "day-of-waves",
    "node-replaced",
    "peak-and-after",
    "pinned-batch",
    "rolling-replacement",
    "two-clusters-one-subnet",
}
"""They simulate many nodes, or hours."""


def story(path: Path) -> ParameterSet:
    """A scenario file, left out of a quick run where it takes its time."""
    return pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [], id=path.stem)


@pytest.mark.parametrize("path", [story(path) for path in FILES])
def test_a_scenario_comes_out_as_it_says(path: Path) -> None:
    outcome = play(read_scenario(path), lambda _line: None)
    assert outcome.failure == ""
    assert outcome.expectations > 0
    assert outcome.audits > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_index_has_every_scenario(path: Path) -> None:
    title = read_scenario(path).title
    assert f"| [{path.stem}](../{path.relative_to(ROOT)}) | {title} |" in PAGE


def test_the_long_ones_are_there() -> None:
    assert {path.stem for path in FILES} >= LONG


def test_the_index_has_no_scenario_that_is_not_there() -> None:
    assert sum("](../scenarios/" in line for line in PAGE) == len(FILES)


def test_those_and_only_those_are_traps_that_quote_one() -> None:
    assert all(read_scenario(path).trap for path in TRAPS)
    assert not any(read_scenario(path).trap for path in STORIES)


def test_every_step_is_on_the_page() -> None:
    for word in STEP_WORDS.values():
        assert f"| `{word.example}` | {word.meaning} |" in PAGE


def test_everything_that_can_be_expected_is_on_the_page() -> None:
    for word in MEASURE_WORDS.values():
        assert f"| `{word.example}` | {word.subject or 'cluster'} | {word.meaning} |" in PAGE


def test_no_word_is_there_that_no_scenario_uses() -> None:
    steps = [step for path in FILES for step in read_scenario(path).story]
    actions = {step.action.word.words for step in steps if step.action}
    measures = {expectation.word.words for step in steps for expectation in step.expectations}
    assert actions == set(STEP_WORDS)
    assert measures == set(MEASURE_WORDS)
