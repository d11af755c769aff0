"""A scenario ends at the first thing that is not as it says, and is told as it goes."""

import pytest

from podtide.simulation.scenario.playing import Outcome, play
from podtide.simulation.scenario.positions import InvalidScenario
from podtide.simulation.scenario.reading import parse_scenario

HEAD = "title: A title\nwhy: because\nsubnet: 10.0.0.0/24\nnodes: 1\nstory:\n  - add pods: {node-1: 3}\n"


def played(*steps: str) -> tuple[Outcome, list[str]]:
    lines: list[str] = []
    text = HEAD + "".join(f"  - {step}\n" for step in steps)
    return play(parse_scenario("some.yaml", text), lines.append), lines


def test_what_is_expected_now_must_be_so_now() -> None:
    outcome, _lines = played("expect: {pods ready: 3}")
    assert outcome.failure == "some.yaml:7: step 2: pods ready should be 3, and is 0"


def test_what_is_expected_within_a_time_may_take_as_long() -> None:
    assert played("{expect: {pods ready: 3}, within: 10s}")[0].failure == ""
    outcome, _lines = played("{expect: {pods ready: 4, requested: 15}, within: 10s}")
    assert outcome.failure == "some.yaml:7: step 2: pods ready should be 4, and is 3 after 10 s"
    assert outcome.simulated_seconds == pytest.approx(10, abs=0.2)


def test_what_is_expected_for_a_time_must_stay_so() -> None:
    calm = "{expect: {pods ready: 3}, within: 10s, for: 10m}"
    assert played(calm)[0].failure == ""
    outcome, _lines = played("{expect: {free: at least 10}, within: 10s}", "remove pods: {node-1: 3}", calm)
    assert outcome.failure.startswith("some.yaml:9: step 4: pods ready should be 3, and is 0 after 10 s")
    outcome, _lines = played(
        "{expect: {granted: 15}, within: 10s}",
        "edit requests: {node-1: 40}",
        "{expect: {requested: 40}, for: 1m}",
    )
    assert outcome.failure == (
        "some.yaml:9: step 4: requested should be 40, and is 15; it must stay so for longer"
    )


def test_after_something_is_not_as_expected_nothing_more_happens() -> None:
    _outcome, lines = played("expect: {pods ready: 3}", "say: And then?")
    assert not any("And then?" in line for line in lines)


def test_each_node_is_looked_at_where_that_is_said() -> None:
    outcome, _lines = played("add nodes: [node-2]", "{expect: {pods ready: {each node: 3}}, within: 10s}")
    assert outcome.failure == "some.yaml:8: step 3: pods ready of node-2 should be 3, and is 0 after 10 s"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            "add pods: {node-7: 1}",
            "some.yaml:7: step 2: there is no node 'node-7' at this point: the nodes are node-1",
        ),
        ("add nodes: [node-1]", "some.yaml:7: step 2: node-1 is there already"),
        ("remove pods: {node-1: 4}", "some.yaml:7: step 2: node-1 has 3 pods, and 4 are to go"),
        ("lose journals: [node-1]", "some.yaml:7: step 2: the agent of node-1 runs: kill it"),
        ("put status back: [node-1]", "some.yaml:7: step 2: the status of node-1 was not put aside"),
        ("expect: {pods ready: {node-7: 1}}", "some.yaml:7: step 2: there is no node 'node-7'"),
        (
            "expect: {reserved: {red: 1}}",
            "some.yaml:7: step 2: there is no subnet 'red': the subnets are pods",
        ),
    ],
)
def test_what_cannot_be_done_at_this_point_is_refused(step: str, words: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        played(step)
    assert str(refused.value).startswith(words)


def test_a_story_is_told_with_its_times_its_decisions_and_what_came_as_expected() -> None:
    _outcome, lines = played(
        "say: Then.", "{expect: {pods ready: 3}, within: 10s}", "wait: 1m", "say: Later."
    )
    assert lines[0] == "     0.0 s    add pods: node-1 3"
    assert lines[1] == "     0.0 s  Then."
    assert "node-1 asks for 15 after 0: request 15 = 16·⌈0.5 + 3/16⌉ - 1" in lines[2]
    assert lines[3].endswith("as expected: pods ready 3")
    assert lines[-1].startswith("    60.")
