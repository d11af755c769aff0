"""Run seeds of the simulation side by side on all cores for a while: `make soak MINUTES=10`.

Seeds begin at a number made from the time, so every soak searches anew, unless told where (`--first`). Even ones have all
faults at their usual rates; of odd ones everything is drawn (`simulation/run/swarm.py`); and some are variations of plans
that came near rare states (`corpus.py`). Failing seeds are kept in a file, one command per line. At the end it is told
which states were visited how often. Exit 1 if a seed failed, or if a soak that was long enough missed a state
(`simulation/checks/reach.py`).
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct, field

from corpus import Corpus
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.checks.reach import SELDOM, SOMETIMES, never
from podtide.simulation.faults.table import ALL, FAULTS, chosen_faults
from podtide.simulation.run.fault_plan import FaultPlan, fault_plan_for
from podtide.simulation.run.plan_variation import varied
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.simulate import simulate
from podtide.simulation.run.swarm import swarm_plan_for

_FAILURES = Path(".cache/soak-failures.txt")
_PLANS = Path(".cache/soak-plans")
_VARIED_EVERY = 5
"""Each so-manieth seed is a variation of a plan in the corpus, once there is one."""
_ENOUGH_SEEDS = 400
"""By then every state has to have been visited."""
_SECONDS_PER_HOUR = 3600
_SECONDS_PER_MINUTE = 60
_LINE_EVERY_SECONDS = 30
_TROUBLE_MINUTES = (0.5, 1.0, 3.0)
_NODES = (2, 3, 4, 6)
_NETWORKS = (0, 4, 0, 2, 0, 3, 1)
"""How many secondary networks there are. Seven, so that in time each comes with all nodes and minutes."""


_PLACEMENT = (False, False, False, False, True)
"""Whether a scheduler places pods. Five, so that in time it comes with all the rest."""


class Tally(Struct):
    """What all runs together came to."""

    seeds: int = 0
    simulated_seconds: float = 0.0
    pods: int = 0
    steps: int = 0
    batch_moves: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    corpus: Corpus = field(default_factory=Corpus)
    failures: list[RunReport] = field(default_factory=list)

    def take(self, report: RunReport) -> None:
        """One run more."""
        self.seeds += 1
        self.simulated_seconds += report.simulated_seconds
        self.pods += report.pods
        self.steps += report.steps
        self.batch_moves += report.batch_moves
        self.faults.update(report.faults)
        self.corpus.take(report)
        if not report.is_good:
            self.failures.append(report)

    def __str__(self) -> str:
        hours = self.simulated_seconds / _SECONDS_PER_HOUR
        return (
            f"{self.seeds} seeds, {hours:.1f} simulated hours, "
            f"{self.pods} pods, {sum(self.faults.values())} faults, {len(self.failures)} violations, "
            f"{self.batch_moves} batch moves, {self.batch_moves / hours if hours else 0:.1f} per simulated hour"
        )


class Display(Protocol):
    """Shows how far it is."""

    def show(self, tally: Tally, passed_seconds: float) -> None:
        """It is this far."""
        ...


class Lines:
    """A line from time to time, for logs."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def show(self, tally: Tally, passed_seconds: float) -> None:
        """Print a line if it is time for one."""
        if passed_seconds >= self._next_at:
            self._next_at = passed_seconds + _LINE_EVERY_SECONDS
            print(f"{passed_seconds:5.0f} s: {tally}", flush=True)


@contextmanager
def _display(total_seconds: float) -> Iterator[Display]:
    if not sys.stdout.isatty():
        yield Lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - only where it draws

    with Progress(BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}")) as progress:
        task = progress.add_task("starting", total=total_seconds)

        class Bar:
            def show(self, tally: Tally, passed_seconds: float) -> None:
                worst = ", ".join(f"{name} {times}" for name, times in tally.faults.most_common(3))
                progress.update(task, completed=passed_seconds, description=f"{tally} ({worst}, …)")

        yield Bar()


def plan_for(seed: int, corpus: Corpus) -> FaultPlan:
    """The plan of a seed: as usual, drawn altogether, or a variation of one that came near a rare state."""
    chance = seeded_randomness(f"{seed}/soak")
    if seed % _VARIED_EVERY == _VARIED_EVERY - 1 and (near := corpus.pick(chance)) is not None:
        return varied(near, seed, chance)
    return swarm_plan_for(seed) if seed % 2 else usual_plan_for(seed)


def usual_plan_for(seed: int) -> FaultPlan:
    """All faults at their usual rates; how large and how long it is follows from the seed."""
    return fault_plan_for(
        seed,
        nodes=_NODES[seed % len(_NODES)],
        faults=chosen_faults(ALL),
        trouble_seconds=_TROUBLE_MINUTES[seed % len(_TROUBLE_MINUTES)] * _SECONDS_PER_MINUTE,
        networks=_NETWORKS[seed % len(_NETWORKS)],
        placement=_PLACEMENT[seed % len(_PLACEMENT)],
    )


def command_for(report: RunReport) -> str:
    """What runs the seed again."""
    plan = report.plan
    if plan != usual_plan_for(plan.seed):
        _PLANS.mkdir(parents=True, exist_ok=True)
        file = _PLANS / f"{plan.seed}.json"
        file.write_bytes(msgspec.json.encode(plan))
        return f"podtide simulate --plan {file}"
    minutes = plan.trouble_seconds / _SECONDS_PER_MINUTE
    networks = f" --networks {plan.networks}" if plan.networks else ""
    placement = " --placement" if plan.placement else ""
    return (
        f"podtide simulate --seed {plan.seed} --nodes {plan.nodes} --minutes {minutes:g}{networks}{placement}"
    )


def soak(seconds: float, first: int, workers: int) -> Tally:
    """Run seeds until the time is over; those that run then are waited for."""
    tally, seeds, began = Tally(), iter(range(first, sys.maxsize)), time.monotonic()
    with _display(seconds) as display, ProcessPoolExecutor(workers) as pool:
        running: set[Future[RunReport]] = set()
        while running or time.monotonic() < began + seconds:
            while len(running) < workers and time.monotonic() < began + seconds:
                running.add(pool.submit(simulate, plan_for(next(seeds), tally.corpus)))
            done, running = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
            for each in done:
                report = each.result()
                tally.take(report)
                if not report.is_good:
                    _keep(report)
            display.show(tally, time.monotonic() - began)
    return tally


def _keep(report: RunReport) -> None:
    _FAILURES.parent.mkdir(exist_ok=True)
    with _FAILURES.open("a") as file:
        file.write(f"{command_for(report)}  # {report.failure}\n")
    print(f"seed {report.plan.seed}: {report.failure}", flush=True)


def main() -> None:
    """Soak, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--first", type=int, help="the first seed (default: by the time)")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)"
    )
    given = parser.parse_args()
    first = given.first if given.first is not None else int(time.time()) * 1000
    tally = soak(given.minutes * _SECONDS_PER_MINUTE, first, given.workers)
    print(f"soak: {tally}; {tally.steps} steps, first seed {first}")
    for name in FAULTS:
        print(f"  {name:24}{tally.faults[name]:8}")
    missed = tell_reach(tally)
    if tally.failures:
        print(f"failing seeds are kept in {_FAILURES}")
    if tally.failures or missed:
        sys.exit(1)


def tell_reach(tally: Tally) -> bool:
    """Print which states were visited, in how many runs and how often. Whether one was missed that should not."""
    corpus = tally.corpus
    print(f"states visited in {tally.seeds} runs: in how many of them, and how often")
    for state in sorted(SOMETIMES | SELDOM | corpus.visits.keys()):
        print(f"  {state:48}{corpus.runs[state]:8}{corpus.visits[state]:10}")
    if unseen := never(corpus.visits, SELDOM):
        print(f"never visited, and seldom is: {', '.join(unseen)}")
    missed = never(corpus.visits)
    if not missed:
        return False
    print(f"never visited: {', '.join(missed)}")
    return tally.seeds >= _ENOUGH_SEEDS


if __name__ == "__main__":
    main()
