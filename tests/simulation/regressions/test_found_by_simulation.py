"""Every plan that ever failed, by what it found. Each is small, and fails again when its mend is taken out."""

from podtide.simulation.faults.table import chosen_faults
from podtide.simulation.plan import plan_for
from podtide.simulation.simulate import simulate


def failure(seed: int, faults: str, *, nodes: int = 5, trouble_seconds: float = 150.0) -> str:
    plan = plan_for(seed, nodes=nodes, faults=chosen_faults(faults), trouble_seconds=trouble_seconds)
    return simulate(plan).failure
