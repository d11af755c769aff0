"""How far the runs are, on stderr: bars on a terminal, and a line for each quarter of a run elsewhere."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from podtide.simulation.replay.processes import Progress, ReplayRun

_QUARTERS = 4


@contextmanager
def progress_shown(runs: Sequence[ReplayRun]) -> Iterator[Progress]:
    """What to call with the part of a run that is done."""
    if not sys.stderr.isatty():
        yield QuarterLines()
        return
    from rich.console import Console  # noqa: PLC0415 - needed only where it draws
    from rich.progress import BarColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415 - as above
    from rich.progress import Progress as Bars  # noqa: PLC0415 - as above
    from rich.progress_bar import ProgressBar  # noqa: PLC0415 - as above

    class StillBarColumn(BarColumn):
        def render(self, task: Task) -> ProgressBar:
            bar = super().render(task)
            bar.pulse = False  # rich's way to draw what has not started: a run that waits is empty
            return bar

    columns = (
        TextColumn("{task.description}"),
        StillBarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {_key(run): bars.add_task(_name(run), total=1.0, start=False) for run in runs}

        def draw(run: ReplayRun, part: float) -> None:
            bars.start_task(tasks[_key(run)])  # the first time starts its clock, others change nothing
            bars.update(tasks[_key(run)], completed=part)

        yield draw


class QuarterLines:
    """Prints a line when another quarter of a run is done."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, int], int] = {}

    def __call__(self, run: ReplayRun, part: float) -> None:
        """The run is so far."""
        quarters = int(part * _QUARTERS)
        if quarters > self._told.get(_key(run), 0):
            self._told[_key(run)] = quarters
            click.echo(f"podtide: {_name(run)}: {100 * quarters // _QUARTERS} %", err=True)


def _key(run: ReplayRun) -> tuple[str, int]:
    return run.strategy, run.batch


def _name(run: ReplayRun) -> str:
    return f"{run.strategy}, batch {run.batch}"
