"""What plans of the swarm are: any mixture of faults, of any size, and the same for one seed."""

from collections import Counter

import msgspec
import pytest

from podtide.runtime.settings import Settings
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import FaultPlan
from podtide.simulation.run.simulate import simulate
from podtide.simulation.run.swarm import swarm_plan_for

PLANS = [swarm_plan_for(seed) for seed in range(400)]


def faults_of(plan: FaultPlan) -> frozenset[str]:
    return frozenset(plan.line_faults) | {mishap.fault for mishap in plan.mishaps}


def test_a_seed_is_one_plan_that_survives_a_file() -> None:
    for seed, plan in enumerate(PLANS[:20]):
        assert swarm_plan_for(seed) == plan
        assert msgspec.json.decode(msgspec.json.encode(plan), type=FaultPlan) == plan


def test_every_fault_comes_and_some_come_alone_and_some_plans_have_none() -> None:
    mixtures = [faults_of(plan) for plan in PLANS]
    assert frozenset.union(*mixtures) == FAULTS.keys()
    sizes = Counter(map(len, mixtures))
    assert sizes[0] > 4
    assert sizes[1] > 20


def test_sizes_families_clusters_and_orders_are_drawn() -> None:
    drawn: dict[str, set[object]] = {
        "subnet": {plan.subnet for plan in PLANS},
        "nodes": {plan.nodes for plan in PLANS},
        "batch": {plan.batch for plan in PLANS},
        "networks": {plan.networks for plan in PLANS},
        "clusters": {plan.clusters for plan in PLANS},
        "second subnet": {bool(plan.second_subnet) for plan in PLANS},
        "families": {bool(plan.subnet_v6) for plan in PLANS},
        "placement": {plan.placement is not None for plan in PLANS},
        "ClusterSubnets": {plan.cluster_subnets for plan in PLANS},
        "order": {plan.has_drawn_order for plan in PLANS},
        "replicas": {plan.replicas for plan in PLANS},
        "contact": {plan.contact_timeout_seconds for plan in PLANS},
    }
    assert {name for name, values in drawn.items() if len(values) < 2} == set()


def test_what_a_removed_node_held_rests_for_longer_than_its_agent_can_believe_itself_in_contact() -> None:
    """A dead watch is noticed within 75 seconds, and clocks jump by up to 30."""
    usual = Settings()
    for plan in PLANS:
        contact = plan.contact_timeout_seconds or usual.contact_timeout_seconds
        quarantine = plan.quarantine_seconds or usual.quarantine_seconds
        assert quarantine >= max(contact, 75.0) + 60.0


def test_a_line_lets_something_through() -> None:
    for plan in PLANS:
        for name, times in plan.frequencies.items():
            rate = FAULTS[name].rate  # type: ignore[union-attr]  # mishaps have times instead
            assert rate * times <= max(rate, 0.6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_plan_with_a_drawn_order_gives_the_same_trace_again(seed: int) -> None:
    plan = msgspec.structs.replace(swarm_plan_for(seed), has_drawn_order=True, trouble_seconds=20.0)
    first, again = simulate(plan), simulate(plan)
    assert first.failure == ""
    assert first.trace_hash == again.trace_hash
    assert simulate(msgspec.structs.replace(plan, has_drawn_order=False)).trace_hash != first.trace_hash
