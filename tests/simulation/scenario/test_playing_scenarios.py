"""A scenario ends at the first thing that is not as it says, and is told as it goes."""

import pytest

from podtide.simulation.nodes.kubelet import Kubelet, Sandbox
from podtide.simulation.scenario.playing import ScenarioOutcome, play
from podtide.simulation.scenario.positions import InvalidScenario
from podtide.simulation.scenario.reading import parse_scenario

HEAD = "title: A title\nwhy: because\nsubnet: 10.0.0.0/24\nnodes: 1\nstory:\n  - add pods: {node-1: 3}\n"


def played(*steps: str) -> tuple[ScenarioOutcome, list[str]]:
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


def test_a_status_that_repeats_the_batch_in_force_brings_no_batch_into_force() -> None:
    outcome, _lines = played(
        "wait: 1m",
        "expect: {batches: [16]}",
        "count from here",
        "say: One node more is another status of the ClusterSubnet.",
        "add nodes: [node-2]",
        "add pods: {node-2: 1}",
        "{expect: {reserved: 32, writes: at least 4}, within: 30s}",
        "wait: 1m",
        "expect: {batches: []}",
        "override batch: {pods: 8}",
        "{expect: {batches: [8]}, within: 1m}",
    )
    assert outcome.failure == ""


TWO_CLUSTERS = """\
title: A title
why: because
subnet: 10.0.0.0/24
clusters: {east: {nodes: 1}, west: {nodes: 2}}
story:
  - add pods: {east/node-1: 3, each node of west: 2}
  - {expect: {pods ready: 7}, within: 30s}
"""


def played_in_two(*steps: str) -> ScenarioOutcome:
    text = TWO_CLUSTERS + "".join(f"  - {step}\n" for step in steps)
    return play(parse_scenario("some.yaml", text), lambda _line: None)


@pytest.mark.parametrize(
    "step",
    [
        "expect: {pods ready: {east/node-1: 3, west/node-1: 2, west/node-2: 2, each node of west: 2}}",
        "expect: {requested: 45, granted: 45, held: 45, free: {east/node-1: 12, each node of west: 13}}",
        "expect: {requests written: {east/node-1: 1}, requests: {west/node-2: [15]}, failed adds: 0}",
        "expect: {reserved: 48, left: 205, batch: {pods: 16, west/pods: 16}, exhausted: {west/pods: no}}",
        "expect: {reason: {west/node-1: Complete}, batches: [16], allocator calls: at least 3}",
    ],
)
def test_each_cluster_of_a_subnet_is_measured_by_its_name_and_all_of_them_without_one(step: str) -> None:
    assert played_in_two(step).failure == ""


def test_what_happens_to_a_node_happens_in_its_own_cluster() -> None:
    steps = (
        "add nodes: [west/node-3]",
        "remove nodes: [west/node-1]",
        "remove pods: {east/node-1: 1}",
        "kill agents: [each node of east]",
        "start agents: [east/node-1]",
        "{expect: {pods ready: {each node: at most 2}, requested: 45}, within: 1m}",
        "{expect: {reserved: 48}, within: 10m}",
    )
    assert played_in_two(*steps).failure == ""


def test_what_is_set_for_a_subnet_is_set_in_all_clusters_or_in_the_one_that_is_named() -> None:
    steps = (
        "set scaler: {west/pods: {batch: 4}}",
        "{expect: {batch: {west/pods: 4}}, within: 1m}",
        "set scaler: {pods: {batch: 8}}",
        "{expect: {batch: {east/pods: 8, west/pods: 8}}, within: 1m}",
        "set scaler: {pods: {}}",
        "{expect: {batch: {east/pods: 16, west/pods: 16}}, within: 10m}",
    )
    assert played_in_two(*steps).failure == ""


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            "add pods: {node-1: 1}",
            "there is no node 'node-1' at this point: the nodes are east/node-1, west/node-1",
        ),
        ("add pods: {each node of south: 1}", "there is no cluster 'south': the clusters are east, west"),
        ("add nodes: [node-9]", "there is no cluster '': the clusters are east, west"),
        ("add nodes: [west/node-2]", "west/node-2 is there already"),
        ("expect: {batch: {south/pods: 8}}", "there is no cluster 'south'"),
        ("expect: {batch: {west/red: 8}}", "there is no subnet 'red': the subnets are pods"),
    ],
)
def test_a_cluster_that_is_not_there_is_refused(step: str, words: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        played_in_two(step)
    assert str(refused.value).startswith(f"some.yaml:8: step 3: {words}")


def test_an_address_given_in_two_clusters_would_end_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubelet, "sandboxes", lambda _self: (Sandbox("s", "default/pod-0", ("10.0.0.99",)),))
    assert "invariant 1: 10.0.0.99" in played_in_two("wait: 1m").failure


def test_a_round_that_fails_is_told_by_its_number() -> None:
    outcome, lines = played(
        "{repeat: 3, story: [{add pods: {node-1: 1}}, {expect: {pods ready: at most 4}, within: 5s, for: 5s}]}"
    )
    assert outcome.failure.startswith(
        "some.yaml:7: step 2.2, round 2 of 3: pods ready should be at most 4, and is 5"
    )
    assert sum("add pods: node-1 1" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("scaler", "told"),
    [("{fixed: 8}", "pods fixed 8"), ("{minBatch: 4, buffer: 0.25}", "pods minBatch 4, buffer 0.25")],
)
def test_a_scaler_is_told_as_it_is_written(scaler: str, told: str) -> None:
    outcome, lines = played("{expect: {batch: 16}, within: 10s}", f"set scaler: {{pods: {scaler}}}")
    assert outcome.failure == ""
    assert any(line.endswith(f"set scaler: {told}") for line in lines)


def test_a_controller_that_is_started_without_cluster_subnets_makes_none() -> None:
    outcome, _lines = played(
        "{expect: {batch: 16}, within: 10s}",
        "stop controller",
        "delete cluster subnets: [pods]",
        "start controller without cluster subnets",
        "{expect: {batch: 0}, for: 1m}",
        "stop controller",
        "start controller with cluster subnets",
        "{expect: {batch: 16}, within: 1m}",
    )
    assert outcome.failure == ""


def test_where_no_cluster_subnet_has_a_status_the_cluster_subnet_state_says_whether_it_is_exhausted() -> None:
    outcome, _lines = played(
        "{expect: {batch: 16, exhausted: no}, within: 10s}",
        "stop controller",
        "say exhausted: {pods: yes}",
        "expect: {exhausted: no}",
        "delete cluster subnets: [pods]",
        "expect: {exhausted: yes}",
        "create cluster subnets: [pods]",
        "expect: {exhausted: yes}",
    )
    assert outcome.failure == ""
