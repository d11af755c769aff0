"""What plots show, whatever draws them: the panels, the unit of time, the runs' colours, and as many samples as can be seen."""

from collections.abc import Callable, Sequence
from math import ceil

from msgspec import Struct

from podtide.simulation.replay.figures import ReplayFigures, ReplayOutcome, ReplaySample

MOST_POINTS = 1500
"""More than there are pixels in a row."""
_TIME_UNITS = ((5 * 86_400, 86_400, "days"), (5 * 3_600, 3_600, "hours"), (5 * 60, 60, "minutes"))
_COLOURS = {
    "reactive": ("#c23b22", "#e08a3c", "#8c2d19", "#f0b48a"),
    "fixed": ("#6b7280", "#374151", "#9ca3af", "#b8a07a"),
    "adaptive": ("#1f6fb2", "#2a9d8f", "#123f6d", "#7fb8e6"),
}
"""By strategy, one for each batch."""
_DASHES = {"fixed": (6, 5)}
"""Where strategies do the same, their lines lie upon each other: through one with gaps the other can be seen."""


class PlotPanel(Struct, frozen=True):
    """One quantity over time."""

    title: str
    axis: str
    """What its numbers count."""
    value: Callable[[ReplaySample], int]


PANELS = (
    PlotPanel("Pods", "pods", lambda sample: sample.pods),
    PlotPanel("Pods without an address", "pods", lambda sample: sample.waiting),
    PlotPanel("Addresses granted to nodes, of the subnet", "addresses", lambda sample: sample.reserved),
    PlotPanel("Idle addresses: granted, and on no pod", "addresses", lambda sample: sample.idle),
    PlotPanel("Batch in force", "addresses", lambda sample: sample.batch_in_force),
    PlotPanel("ADDs that failed, in all", "ADDs", lambda sample: sample.failed_adds),
    PlotPanel("Writes to the API server, in all", "writes", lambda sample: sample.api_writes),
)
OF_THE_SUBNET = 2
"""The place of the panel in which the subnet's capacity is a line."""


def time_unit(seconds: float) -> tuple[int, str]:
    """The seconds of the unit in which a time of that length reads best, and its name."""
    return next(((unit, name) for least, unit, name in _TIME_UNITS if seconds >= least), (1, "seconds"))


def run_name(figures: ReplayFigures) -> str:
    """A run in a legend."""
    return f"{figures.strategy}, batch {figures.batch}"


def dash(figures: ReplayFigures) -> tuple[int, int] | None:
    """Lengths of line and gap; None for a line without gaps."""
    return _DASHES.get(figures.strategy)


def in_drawing_order(outcomes: Sequence[ReplayOutcome]) -> tuple[ReplayOutcome, ...]:
    """The last strategy first, because what is drawn later covers what was before: podtide's own is whole below the others."""
    return tuple(reversed(outcomes))


def colours(runs: Sequence[ReplayFigures]) -> list[str]:
    """A colour for each run: strategies differ by hue, batches of one by shade."""
    used: dict[str, int] = {}
    found = []
    for run in runs:
        shades = _COLOURS[run.strategy]
        place = used[run.strategy] = used.get(run.strategy, -1) + 1
        found.append(shades[place % len(shades)])
    return found


def thinned(samples: Sequence[ReplaySample], most: int = MOST_POINTS) -> list[ReplaySample]:
    """At most so many samples, in order; of neighbours, the one in which most pods wait, so that no wait goes unseen."""
    width = ceil(len(samples) / most)
    return [
        max(samples[place : place + width], key=lambda sample: sample.waiting)
        for place in range(0, len(samples), width)
    ]
