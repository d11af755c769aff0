"""Whole runs: some dozen seeds hold every invariant, a seed has one trace, and a broken program is found and shrunk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from podtide.core.errors import InvalidInput
from podtide.simulation.faults.mishap import is_of_placement
from podtide.simulation.faults.table import FAULTS, chosen_faults
from podtide.simulation.nodes.network_definitions import MOST_NETWORKS
from podtide.simulation.run.fault_plan import FaultPlan, fault_plan_for
from podtide.simulation.run.simulate import simulate
from podtide.simulation.scheduling.address_policy import PolicyReach

PODTIDE = Path(sys.executable).parent / "podtide"


def small_plan(
    seed: int,
    faults: str = "all",
    *,
    nodes: int = 3,
    trouble_seconds: float = 45.0,
    networks: int = 0,
    placement: bool = False,
) -> FaultPlan:
    return fault_plan_for(
        seed,
        nodes=nodes,
        faults=chosen_faults(faults),
        trouble_seconds=trouble_seconds,
        networks=networks,
        placement=placement,
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_every_invariant_holds_whatever_goes_wrong(seed: int) -> None:
    report = simulate(small_plan(seed))
    assert report.failure == ""
    assert report.faults
    assert report.steps > 100


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_invariant_holds_where_two_clusters_share_the_subnet(seed: int) -> None:
    report = simulate(structs.replace(small_plan(seed, nodes=4), clusters=2))
    assert report.failure == ""
    assert report.steps > 100


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_invariant_holds_with_two_subnets_and_two_families(seed: int) -> None:
    plan = small_plan(seed, nodes=4)
    report = simulate(structs.replace(plan, second_subnet="10.2.0.0/28", subnet_v6="fd00::/112", agents=()))
    assert report.failure == ""
    assert report.steps > 100


def test_some_plans_have_a_second_subnet_and_some_a_second_family() -> None:
    plans = [small_plan(seed, nodes=2) for seed in range(100)]
    assert 10 < sum(bool(plan.second_subnet) for plan in plans) < 40
    of_two_families = [plan for plan in plans if plan.subnet_v6]
    assert 10 < len(of_two_families) < 40
    assert not any(plan.agents for plan in of_two_families), "Azure CNS has one network container per node"
    assert not any(small_plan(seed, nodes=1).second_subnet for seed in range(100))


def test_some_plans_have_two_clusters_and_none_has_one_without_a_node() -> None:
    drawn = [small_plan(seed, nodes=2).clusters for seed in range(100)]
    assert 10 < drawn.count(2) < 40
    assert drawn.count(1) == 100 - drawn.count(2)
    assert {small_plan(seed, nodes=1).clusters for seed in range(100)} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_invariant_holds_with_secondary_networks(seed: int) -> None:
    report = simulate(small_plan(seed, networks=MOST_NETWORKS))
    assert report.failure == ""
    assert report.faults
    assert report.steps > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_every_invariant_holds_with_secondary_networks_for_a_dozen_seeds(seed: int) -> None:
    assert simulate(small_plan(seed, networks=1 + seed % MOST_NETWORKS)).failure == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 124))
def test_every_invariant_holds_for_some_dozen_seeds(seed: int) -> None:
    assert simulate(small_plan(seed)).failure == ""


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 112))]
)
def test_every_invariant_holds_where_a_scheduler_places_pods(seed: int) -> None:
    report = simulate(small_plan(seed, placement=True))
    assert report.failure == ""
    assert report.placement is not None
    assert report.placement.bound


def test_placement_adds_mishaps_of_its_own_and_changes_no_others() -> None:
    without, placed = (small_plan(6, trouble_seconds=300, placement=placement) for placement in (False, True))
    names = {each.fault for each in without.mishaps}
    assert without.mishaps == tuple(each for each in placed.mishaps if each.fault in names)
    assert {each.fault for each in placed.mishaps} - names <= {
        name for name, fault in FAULTS.items() if is_of_placement(fault)
    }
    assert without.placement is None
    assert placed.placement is not None


def test_plans_with_placement_are_of_every_reach_of_the_policy() -> None:
    reaches = [
        plan.placement.reach for seed in range(40) if (plan := small_plan(seed, placement=True)).placement
    ]
    assert set(reaches) == set(PolicyReach)


def test_without_faults_nothing_goes_wrong_either() -> None:
    report = simulate(small_plan(1, "none"))
    assert report.failure == ""
    assert report.faults == {}


@pytest.mark.slow
def test_there_is_no_fault_that_never_strikes() -> None:
    struck: set[str] = set()
    for seed in range(11):
        networks, placement = (seed % 2, False) if seed < 8 else (0, True)
        plan = small_plan(seed, nodes=2, trouble_seconds=400, networks=networks, placement=placement)
        report = simulate(plan)
        assert report.failure == ""
        struck |= report.faults.keys()
    assert struck == chosen_faults("all")


@pytest.mark.slow
@pytest.mark.parametrize("networks", [0, MOST_NETWORKS])
def test_a_seed_has_the_same_report_in_every_process(networks: int) -> None:
    size = ("--nodes", "3", "--minutes", "1", "--networks", str(networks))
    reports = [
        subprocess.run(
            [PODTIDE, "simulate", "--seed", "7", *size, "-o", "json"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for hash_seed in ("1", "2024")
    ]
    assert reports[0] == reports[1]
    assert len(json.loads(reports[0])["trace_hash"]) == 64


def test_another_seed_has_another_trace() -> None:
    one, other = (simulate(small_plan(seed, "delay", trouble_seconds=10)) for seed in (1, 2))
    assert one.trace_hash != other.trace_hash


def test_a_plan_without_a_mishap_leaves_the_chance_of_all_others_as_it_was() -> None:
    plan = small_plan(5, trouble_seconds=300)
    without = fault_plan_for(5, nodes=3, faults=chosen_faults("all") - {"agent-crash"}, trouble_seconds=300)
    assert without.mishaps == tuple(each for each in plan.mishaps if each.fault != "agent-crash")
    assert structs.replace(without, line_faults=(), mishaps=()) == structs.replace(
        plan, line_faults=(), mishaps=()
    )


def test_secondary_networks_add_mishaps_of_their_own_and_change_no_others() -> None:
    without, with_networks = (small_plan(6, trouble_seconds=300, networks=count) for count in (0, 2))
    of_networks = {"node-renamed", "definition-recreated"}
    assert {each.fault for each in with_networks.mishaps} - {
        each.fault for each in without.mishaps
    } == of_networks
    assert without.mishaps == tuple(each for each in with_networks.mishaps if each.fault not in of_networks)


def test_a_fault_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match=r"no fault 'thunder'.*lost-answer"):
        chosen_faults("delay,thunder")
    assert chosen_faults("none") == frozenset()
    assert chosen_faults("delay, gone") == {"delay", "gone"}
