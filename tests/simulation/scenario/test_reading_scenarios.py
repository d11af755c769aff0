"""What is wrong with a scenario file is said with its line, and with what could be there instead."""

from pathlib import Path

import pytest

from podtide.runtime.settings import Settings
from podtide.simulation.scenario.positions import InvalidScenario
from podtide.simulation.scenario.reading import parse_scenario, read_scenario

HEAD = "title: A title\nwhy: because\nsubnet: 10.0.0.0/24\nnodes: 2\n"
NO_NODES = HEAD.removesuffix("nodes: 2\n")
STEPS = f"{HEAD}story:\n"


def refusal(text: str) -> str:
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario("some.yaml", text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "some.yaml: is empty"),
        ("title: [", "some.yaml:1: is not valid YAML"),
        ("title: \x07", "some.yaml: is not valid YAML"),
        ("- a", "some.yaml:1: expected `object`, got `array`"),
        (HEAD, "some.yaml:1: object missing required field `story`"),
        (f"{STEPS}  []\ncolour: red\n", "some.yaml:7: 'colour' is not known: give some of title, why, trap"),
        (f"{STEPS}  []\nwhy: again\n", "some.yaml:7: 'why' is given twice"),
        (f"{STEPS}  []\nsubnets: {{red: 10.0.1.0/24}}\n", "some.yaml:1: give either a subnet"),
        (f"{STEPS}  []\nclusters: {{east: {{nodes: 1}}}}\n", "some.yaml:1: give either nodes, or clusters"),
        (f"{NO_NODES}story: []\n", "some.yaml:1: give either nodes, or clusters"),
        (
            f"{STEPS}  []\nnetworks: {{storage: {{range: 10.20.0.0/22, slice: /20}}}}\n",
            "some.yaml:7: slice size /20 is larger than its range 10.20.0.0/22: use /22 to /30",
        ),
        (
            f"{NO_NODES}story: []\nclusters: {{a/b: {{nodes: 1}}}}\n",
            "some.yaml:5: 'a/b' is not a valid name of a cluster",
        ),
        (
            f"{NO_NODES}story: []\nclusters: {{a: {{node: 1}}}}\n",
            "some.yaml:5: 'node' is not known: give some of nodes",
        ),
        (f"{STEPS}  []\nkubelets: {{at twice: 1}}\n", "'at twice' is not known: give some of at once"),
        (f"{STEPS}  []\nsettings: {{batch: 0}}\n", "some.yaml:7: --batch=0 is refused: give a whole number"),
        (f"{STEPS}  []\nsettings: {{colour: 0}}\n", "some.yaml:7: setting 'colour' does not exist"),
        (f"{STEPS}  []\ngrants take: soon\n", "some.yaml:7: invalid duration 'soon'"),
    ],
)
def test_what_is_wrong_around_a_story_is_refused(text: str, words: str) -> None:
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("ad pods: {node-1: 1}", "some.yaml:7: 'ad pods' is not a step: give one of add pods, "),
        (
            "add pods: 5",
            "add pods: expected `object`, got `int`: give something such as add pods: {node-1: 5}",
        ),
        ("add pods: {node-1: 0}", "some.yaml:7: add pods: expected `int` >= 1"),
        ("wait: a while", "some.yaml:7: wait: invalid duration 'a while'"),
        ("stop controller: node-1", "some.yaml:7: 'stop controller' takes nothing"),
        ("set scaler: {pods: {min batch: 4}}", "set scaler: object contains unknown field `min batch`"),
        ("set scaler: {pods: {fixed: 0}}", "some.yaml:7: set scaler: expected `int` >= 1"),
        ("repeat: 3", "some.yaml:7: repeat: give how often, and beside it a story of its own"),
        ("{repeat: often, story: []}", "some.yaml:7: repeat: give how often"),
        ("{repeat: 3, story: [], wait: 1s}", "some.yaml:7: repeat: give how often"),
        ("{repeat: 3, story: [ad pods]}", "'ad pods' is not a step"),
        ("{repeat: 3, story: [wait: 1s, 5]}", "step 2.2 is 5: give expect, say, or a step"),
        ("5", "some.yaml:7: step 2 is 5: give expect, say, or a step"),
        ("{wait: 1s, count from here: }", "step 2 is 'wait', 'count from here': give one step at a time"),
        ("{}", "step 2 is nothing"),
        ("expect: 5", "some.yaml:7: expect: give what must be so"),
        ("{expect: {pods redy: 1}}", "'pods redy' cannot be expected: give one of pods ready, requested"),
        (
            "{expect: {pods ready: many}}",
            "pods ready: 'many' is not a number, alone or after at least, at most",
        ),
        ("{expect: {pods ready: yes}}", "pods ready: True is not a number"),
        (
            "{expect: {exhausted: 5}}",
            "exhausted: expected `bool`, got `int`: give something such as exhausted: yes",
        ),
        ("{expect: {writes: {node-1: 5}}}", "'writes' is one for the whole cluster: give it without names"),
        ("{expect: {writes: 5}, within: soon}", "some.yaml:7: within: invalid duration 'soon'"),
        (
            "{expect: {writes: 5}, wait: 5s}",
            "'wait' does not go with expect: give within, for or say beside it",
        ),
    ],
)
def test_what_is_wrong_with_a_step_is_refused(step: str, words: str) -> None:
    assert words in refusal(f"{STEPS}  - wait: 1s\n  - {step}\n")


def test_the_line_is_that_of_the_value_that_is_wrong() -> None:
    step = "  - say: Something.\n    expect:\n      pods ready: 1\n      requested:\n        node-1: lots\n"
    assert "some.yaml:10: requested: 'lots' is not a number" in refusal(STEPS + step)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidScenario, match="cannot be read"):
        read_scenario(tmp_path / "nowhere.yaml")


def test_what_is_left_out_is_as_always() -> None:
    scenario = parse_scenario("some.yaml", f"{STEPS}  - say: Nothing happens.\n")
    assert scenario.settings == Settings()
    assert scenario.clusters == {"": {"node-1": "", "node-2": ""}}
    assert scenario.subnets == {"pods": "10.0.0.0/24"}


def test_what_is_repeated_happens_so_often_one_round_after_the_other() -> None:
    inner = "{repeat: 2, story: [{say: tick}, {say: tock}]}"
    text = (
        f"{STEPS}  - say: begin\n  - say: rounds\n    repeat: 2\n    story:\n      - {inner}\n  - say: end\n"
    )
    scenario = parse_scenario("some.yaml", text)
    rounds = ["tick", "tock"] * 4
    assert [step.say for step in scenario.story] == ["begin", "rounds", *rounds, "end"]
    assert scenario.place(scenario.story[4]) == "some.yaml:10: step 2.1.1, round 1 of 2, round 2 of 2"
    assert scenario.place(scenario.story[-1]) == "some.yaml:11: step 3"


def test_each_of_several_clusters_has_nodes_of_its_own() -> None:
    text = f"{NO_NODES}story: []\nclusters: {{east: {{nodes: 2}}, west: {{nodes: [node-1]}}}}\n"
    assert parse_scenario("some.yaml", text).clusters == {
        "east": {"node-1": "", "node-2": ""},
        "west": {"node-1": ""},
    }
