"""A varied plan is like the one it comes from, and a plan that can be run."""

from random import Random

from msgspec import structs

from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.plan_variation import varied
from podtide.simulation.run.swarm import swarm_plan_for

SAME = ("nodes", "subnet", "batch", "buffer", "networks", "clusters", "placement", "contact_timeout_seconds")


def test_a_variation_keeps_sizes_and_takes_the_choices_of_another_seed() -> None:
    for seed in range(60):
        plan = swarm_plan_for(seed)
        other = varied(plan, seed + 1000, Random(seed))
        assert other.seed == seed + 1000
        assert [getattr(other, field) for field in SAME] == [getattr(plan, field) for field in SAME]
        assert {each.fault for each in other.mishaps} <= {each.fault for each in plan.mishaps}
        assert all(each.at_seconds < other.trouble_seconds for each in other.mishaps)
        assert set(other.line_faults) <= FAULTS.keys()
        assert len(set(other.line_faults) ^ set(plan.line_faults)) <= 1
        assert other.trouble_seconds <= 600.0


def test_variations_change_one_thing_at_most_and_not_always_the_same() -> None:
    plan = swarm_plan_for(5)
    changed = set[str]()
    for number in range(60):
        other = structs.asdict(varied(plan, plan.seed, Random(number)))
        changed |= {name for name, value in structs.asdict(plan).items() if other[name] != value}
    assert changed == {"trouble_seconds", "mishaps", "line_faults", "has_drawn_order"}
