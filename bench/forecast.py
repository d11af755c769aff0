"""How good the forecast of a subnet's use is, beside simple ones, on a real trace and on drawn histories; and what it costs."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from forecast_scores import (
    BASELINES,
    GENERATORS,
    band_scores,
    date_score,
    drawn,
    errors,
    model_of,
    podtide,
    trace_maxima,
)

PART = "forecast"
HISTORIES = 8
DAYS = 60
EVERY = 4
"""From every fourth day on a forecast is scored in drawn histories: those of neighbouring days hardly differ."""
GROWING = ("linear", "steps", "weekly", "launch days", "wandering")
"""Kinds of histories that reach levels they had not reached before."""
DATE_HISTORIES = 30
DATES = ((14, 30), (60, 30), (60, 90))
"""Days of history, and in how many days the level is reached."""
POINTS = 1_000_000
STARTS = 5
TWO_YEARS = 731


def measure() -> Iterator[tuple[str, str]]:
    """Errors on the trace, then on drawn histories, then of dates."""
    trace = trace_maxima()
    for name, forecast in (*BASELINES.items(), ("podtide", podtide)):
        found = errors(forecast, [trace])
        yield (
            f"trace: error 7 days ahead / over 1 to 7, {name}",
            _pair(found.a_week_ahead, found.within_a_week),
        )
    yield from _band("trace", [trace], 1)
    for generator in GENERATORS:
        histories = drawn(generator, HISTORIES, DAYS)
        for name, forecast in (*BASELINES.items(), ("podtide", podtide)):
            off = errors(forecast, histories, EVERY)
            yield f"{generator}: the same, {name}", _pair(off.a_week_ahead, off.within_a_week)
        yield from _band(generator, histories, EVERY)
    for generator in GROWING:
        for known, ahead in DATES:
            score = date_score(drawn(generator, DATE_HISTORIES, known + ahead), known, ahead)
            yield (
                f"{generator}: date {ahead} days ahead by {known} days, off by / within 90 %",
                f"{score.error_days:.1f} days / {score.within:.0%}",
            )
    yield from _cost()


def _band(label: str, histories: list[list[int]], every: int) -> Iterator[tuple[str, str]]:
    found = band_scores(histories, every)
    yield f"{label}: pinball loss at 0.5 / 0.9", _pair(found.pinball_half, found.pinball_nine_tenths)
    yield f"{label}: coverage of the band of 90 % / its width", f"{found.coverage:.1%} / {found.width:.0f}"


def _pair(first: float, second: float) -> str:
    return f"{first:.1f} / {second:.1f}"


def _cost() -> Iterator[tuple[str, str]]:
    """What the command costs with a file of a million rows, and a controller with two years of days."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "usage.csv"
        _write_points(file)
        command = [str(Path(sys.executable).parent / "podtide"), "forecast", "--history", str(file)]
        walls, processors = [], []
        for _ in range(STARTS):
            begin, used = perf_counter(), _children_seconds()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own program
            walls.append(perf_counter() - begin)
            processors.append(_children_seconds() - used)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield "10^6 points in a file: podtide forecast, start to end", f"{median(walls):.2f} s"
    yield "10^6 points in a file: processor time / peak memory", f"{median(processors):.2f} s / {peak:.0f} MB"
    (history,) = drawn("weekly", 1, TWO_YEARS)
    times = []
    for _ in range(STARTS):
        begin = process_time()
        model_of(history)
        times.append(process_time() - begin)
    yield f"one forecast from {TWO_YEARS} days, as the controller makes it", f"{median(times) * 1e3:.0f} ms"


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_points(file: Path) -> None:
    """A row for each minute."""
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    with file.open("w") as lines:
        lines.write("timestamp,capacity,reserved\n")
        for minute in range(POINTS):
            stamp = (begin + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")
            lines.write(f"{stamp},8000,{2_000 + minute // 400 + minute * 7_919 % 97}\n")
