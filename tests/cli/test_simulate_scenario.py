"""`podtide simulate --scenario`: the story is told, and the exit status says whether it came out as it should."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from podtide.cli.simulate import simulate

SCENARIO = """
title: A pod gets its address
why: Because that is what all of this is for.
subnet: 10.0.0.0/24
nodes: 1
story:
  - say: One pod.
    add pods: {node-1: 1}
  - expect: {pods ready: 1}
    within: 10s
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.yaml"
    path.write_text(SCENARIO)
    return path


def test_a_story_is_told_and_ends_well(file: Path) -> None:
    answer = CliRunner().invoke(simulate, ["--scenario", str(file)])
    assert answer.exit_code == 0
    first, *_told, last = answer.output.splitlines()
    assert first == "A pod gets its address"
    assert "     0.0 s  One pod." in answer.output
    assert last.startswith("1 expectation met in ")


def test_what_is_not_as_expected_is_said_last_and_is_exit_status_1(file: Path) -> None:
    file.write_text(SCENARIO.replace("pods ready: 1", "pods ready: 2"))
    answer = CliRunner().invoke(simulate, ["--scenario", str(file)])
    assert answer.exit_code == 1
    assert answer.output.splitlines()[-1] == (
        f"NOT AS EXPECTED: {file}:9: step 2: pods ready should be 2, and is 1 after 10 s"
    )


def test_programs_get_the_outcome_alone(file: Path) -> None:
    answer = CliRunner().invoke(simulate, ["--scenario", str(file), "-o", "json"])
    outcome = msgspec.json.decode(answer.output)
    assert (outcome["title"], outcome["expectations"], outcome["failure"]) == (
        "A pod gets its address",
        1,
        "",
    )


def test_a_scenario_of_podtides_own_is_played_by_its_name() -> None:
    answer = CliRunner().invoke(simulate, ["--scenario", "host-network"])
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("Pods on their node's own network need no address")


def test_a_name_that_no_scenario_has_is_answered_with_those_that_there_are() -> None:
    answer = CliRunner().invoke(simulate, ["--scenario", "none"])
    words = str(answer.exception)
    assert words.startswith(
        "--scenario none: there is no such file or story: give a file, or one of any-subnet"
    )
    assert "give-back" in words
