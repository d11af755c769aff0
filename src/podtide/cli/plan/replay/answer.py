"""The answer of `podtide plan replay`: a table for people, JSON and CSV for programs, and a file with the samples."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, to_builtins

from podtide.cli.output.formats import show, table
from podtide.cli.output.screen_width import fitted, folded, screen_width
from podtide.cli.plan.replay.cluster import ReplayAbout
from podtide.core.subnet.count_text import count_text
from podtide.simulation.replay.figures import ReplayFigures, ReplayOutcome, ReplaySample

COLUMNS = (
    "STRATEGY",
    "BATCH",
    "PODS",
    "DELAYED",
    "P50",
    "P99",
    "MAX",
    "FAILED ADDS",
    "NEVER SERVED",
    "IDLE",
    "IDLE P99",
    "REQUESTS",
    "API WRITES",
    "ALLOCATOR WRITES",
    "EXHAUSTED",
    "STARVED",
)
_DISPENSABLE = ("P50", "IDLE P99", "PODS", "ALLOCATOR WRITES", "REQUESTS")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


class ReplayAnswer(Struct, frozen=True):
    """What was replayed, and what came of each run."""

    about: ReplayAbout
    outcomes: tuple[ReplayOutcome, ...]


def show_answer(output: str, answer: ReplayAnswer) -> None:
    """Print the figures in the form that was asked for."""
    figures = [outcome.figures for outcome in answer.outcomes]
    if output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(ReplayFigures.__struct_fields__)
        writer.writerows(to_builtins(each).values() for each in figures)
        return
    show(output, {"load": answer.about, "runs": figures}, _lines(answer))


def write_raw(file: Path, answer: ReplayAnswer) -> None:
    """Write the samples of all runs."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(("strategy", "batch", *ReplaySample.__struct_fields__))
        for outcome in answer.outcomes:
            run = (outcome.figures.strategy, outcome.figures.batch)
            writer.writerows((*run, *map(_plain, to_builtins(sample).values())) for sample in outcome.samples)


def cells(figures: ReplayFigures) -> tuple[str, ...]:
    """A row of the table for people."""
    return (
        figures.strategy,
        str(figures.batch),
        count_text(figures.pods),
        count_text(figures.delayed),
        *(
            f"{seconds:.1f} s" if figures.delayed else "-"
            for seconds in (figures.delay_p50_seconds, figures.delay_p99_seconds, figures.delay_max_seconds)
        ),
        count_text(figures.failed_adds),
        count_text(figures.abandoned + figures.unserved),
        count_text(round(figures.idle_mean)),
        count_text(figures.idle_p99),
        count_text(figures.requests),
        count_text(figures.api_writes),
        count_text(figures.allocator_writes),
        _spells(figures.exhausted_times, figures.exhausted_seconds),
        _spells(figures.starved_times, figures.starved_seconds),
    )


def _lines(answer: ReplayAnswer) -> Iterator[str]:
    width = screen_width()
    yield from folded("", "  ", f"{answer.about.title}: {'; '.join(answer.about.notes)}", width)
    yield ""
    rows = [COLUMNS, *(cells(outcome.figures) for outcome in answer.outcomes)]
    yield from table(fitted(rows, width, dispensable=_DISPENSABLE))


def _spells(times: int, seconds: float) -> str:
    return f"{times}×, {long_text(seconds)}" if times else "-"


def long_text(seconds: float) -> str:
    """A time in its largest unit, for people."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value
