"""Runs seeds in turn until one fails, with whatever `podtide` PYTHONPATH finds: a program of its own for that reason.

python -m mutants.worker NODES SECONDS NETWORKS PLACEMENT CALLS SEED…      one line of JSON per seed; PLACEMENT and CALLS are 0 or 1
"""

import sys
import time

import msgspec

from mutants.trial import Size, Trial
from podtide.simulation.faults.table import ALL, chosen_faults
from podtide.simulation.run.fault_plan import fault_plan_for
from podtide.simulation.run.simulate import simulate


def main(size: Size, seeds: list[int]) -> None:
    """Run, and tell of each seed."""
    for seed in seeds:
        began = time.monotonic()
        finding = run(seed, size)
        trial = Trial(seed=seed, finding=finding, seconds=round(time.monotonic() - began, 2))
        print(msgspec.json.encode(trial).decode(), flush=True)
        if finding:
            return


def run(seed: int, size: Size) -> str:
    """The first thing that a seed finds; "" for nothing."""
    plan = fault_plan_for(
        seed,
        nodes=size.nodes,
        faults=chosen_faults(ALL),
        trouble_seconds=size.trouble_seconds,
        networks=size.networks,
        placement=size.placement,
    )
    try:
        return simulate(plan, by_calls_alone=size.by_calls).failure.partition("; ")[0]
    except Exception as error:  # noqa: BLE001 - a mutant can end a run by anything
        return f"the run ended by {type(error).__name__}: {error}"


if __name__ == "__main__":
    nodes, seconds, networks, placement, calls, *seeds = sys.argv[1:]
    size = Size(int(nodes), float(seconds), int(networks), placement == "1", calls == "1")
    main(size, [int(seed) for seed in seeds])
