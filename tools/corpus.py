"""Plans of a soak that came near rare states, to vary them: `varied` leads there again by other ways."""

from collections import Counter, defaultdict, deque
from random import Random

from podtide.simulation.run.fault_plan import FaultPlan
from podtide.simulation.run.report import RunReport

_PLANS_PER_STATE = 4
_RARE = 0.05
"""A state is rare if fewer runs than this part visited it."""


class Corpus:
    """What runs visited, and the last plans that visited each state."""

    def __init__(self) -> None:
        self.visits: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        """How many runs visited a state."""
        self._taken = 0
        self._plans: defaultdict[str, deque[FaultPlan]] = defaultdict(lambda: deque(maxlen=_PLANS_PER_STATE))

    def take(self, report: RunReport) -> None:
        """One run more."""
        self._taken += 1
        self.visits.update(report.reached)
        for state in report.reached:
            self.runs[state] += 1
            self._plans[state].append(report.plan)

    def rare(self) -> list[str]:
        """The states that few runs visited, the rarest first."""
        seldom = (state for state, runs in self.runs.items() if runs < max(2.0, _RARE * self._taken))
        return sorted(seldom, key=lambda state: (self.runs[state], state))

    def pick(self, chance: Random) -> FaultPlan | None:
        """A plan that visited a rare state; None while none has."""
        rare = self.rare()
        return chance.choice(self._plans[chance.choice(rare)]) if rare else None
