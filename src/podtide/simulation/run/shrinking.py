"""Makes a failing plan smaller, as long as it fails in the same way.

Fewer kinds of faults, fewer mishaps, fewer nodes, a shorter time: halves first, then smaller pieces (delta debugging).
The search is bounded in runs, not in seconds, so that a seed is always shrunk to the same plan.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import structs

from podtide.simulation.run.fault_plan import FaultPlan
from podtide.simulation.run.report import RunReport

P = TypeVar("P")

MOST_RUNS = 60
_KIND = re.compile(r"invariant \d")


def kind_of_failure(failure: str) -> str:
    """What equal failures have in common: the invariant, or else the beginning of the sentence."""
    found = _KIND.search(failure)
    return found[0] if found else " ".join(failure.split()[:3])


class Shrinking:
    """Tries smaller plans with `run`, and keeps the smallest that fails like the first."""

    def __init__(
        self, failed: RunReport, run: Callable[[FaultPlan], RunReport], most_runs: int = MOST_RUNS
    ) -> None:
        self.smallest = failed
        self._kind = kind_of_failure(failed.failure)
        self._run = run
        self._runs_left = most_runs

    def shrink(self) -> RunReport:
        """The report of the smallest plan found."""
        before = None
        while before is not self.smallest and self._runs_left:
            before = self.smallest
            self._try_each(self._shorter)
            self._drop_pieces("mishaps")
            self._drop_pieces("line_faults")
            self._try_each(self._fewer)
        return self.smallest

    def _drop_pieces(self, field: str) -> None:
        """Leave out as many of a field's entries as possible: halves, then quarters, down to single ones."""
        size = max(1, len(getattr(self.smallest.plan, field)) // 2)
        while getattr(self.smallest.plan, field) and self._runs_left:
            before = self.smallest
            for rest in _without_each(getattr(self.smallest.plan, field), size):
                if self._still_fails(structs.replace(self.smallest.plan, **{field: rest})):
                    break
            if self.smallest is before:
                if size == 1:
                    return
                size = max(1, size // 2)

    def _try_each(self, smaller: Callable[[FaultPlan], Iterator[FaultPlan]]) -> None:
        for plan in smaller(self.smallest.plan):
            if self._still_fails(plan):
                return

    def _shorter(self, plan: FaultPlan) -> Iterator[FaultPlan]:
        for part in (0.25, 0.5, 0.75):
            seconds = round(plan.trouble_seconds * part, 3)
            kept = tuple(mishap for mishap in plan.mishaps if mishap.at_seconds < seconds)
            yield structs.replace(plan, trouble_seconds=seconds, mishaps=kept)

    def _fewer(self, plan: FaultPlan) -> Iterator[FaultPlan]:
        if plan.controllers > 1:
            yield structs.replace(plan, controllers=1)
        if plan.clusters > 1:
            yield structs.replace(plan, clusters=1)
        if plan.agents:
            yield structs.replace(plan, agents=())
        if plan.has_drawn_order:
            yield structs.replace(plan, has_drawn_order=False)
        for networks in range(plan.networks):
            yield structs.replace(plan, networks=networks)
        for nodes in range(plan.clusters, plan.nodes):
            yield structs.replace(plan, nodes=nodes)

    def _still_fails(self, plan: FaultPlan) -> bool:
        if not self._runs_left:
            return False
        self._runs_left -= 1
        report = self._run(plan)
        fails = kind_of_failure(report.failure) == self._kind
        if fails:
            self.smallest = report
        return fails


def _without_each(entries: Sequence[P], size: int) -> Iterator[tuple[P, ...]]:
    """The entries without one piece, for every piece of that size."""
    for start in range(0, len(entries), size):
        yield (*entries[:start], *entries[start + size :])
