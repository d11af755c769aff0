"""Run the benchmarks and print their figures as they come: `make bench`, or one part, `make bench ONLY=core`.

Every other file here is a benchmark: it says which part it belongs to (`PART`) and what it measured (`measure()`, which
yields a label and a figure at a time). Adding a file is all it takes to add a benchmark. Beside a figure that has a goal
stands whether it is met, and the ratio to the figure that was recorded last (see `tools/bench_goals.py`).
"""

import argparse
import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, cast

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from bench_goals import Ledger

HERE = Path(__file__).parent
LABEL_WIDTH = 68
FIGURE_WIDTH = 24


class Benchmark(Protocol):
    """What a benchmark's module offers."""

    PART: str

    def measure(self) -> Iterable[tuple[str, str]]:
        """What was measured, and the figure with its unit: `("request decisions", "310,000 /s")`."""
        ...


def benchmarks() -> Iterator[Benchmark]:
    """Every benchmark of this directory, in the order of their names."""
    for path in sorted(HERE.glob("*.py")):
        if path != Path(__file__):
            yield cast("Benchmark", importlib.import_module(path.stem))


def run(only: str, ledger: Ledger) -> int:
    """Print the figures of one part, or of all when `only` is empty; the answer is the exit status."""
    parts: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks():
        parts.setdefault(benchmark.PART, []).append(benchmark)
    if only and only not in parts:
        print(f"no benchmarks are called {only!r}: ONLY is one of {', '.join(parts)}", file=sys.stderr)
        return 2
    worse: list[str] = []
    for part in [only] if only else parts:
        print(part, flush=True)
        for benchmark in parts[part]:
            worse += _print_figures(part, benchmark, ledger)
        for label in ledger.unknown(part):
            print(f"  {label:<{LABEL_WIDTH}}{'not measured':>{FIGURE_WIDTH}}", flush=True)
    for label in worse:
        print(f"a quarter worse than recorded: {label}", file=sys.stderr)
    return 1 if worse else 0


def _print_figures(part: str, benchmark: Benchmark, ledger: Ledger) -> list[str]:
    """Print what a benchmark measures; returns the labels of what is worse than recorded."""
    worse = []
    for label, figure in benchmark.measure():
        verdict = ledger.judge(part, label, figure)
        beside = f"  {verdict.words}" if verdict.words else ""
        print(f"  {label:<{LABEL_WIDTH}}{figure:>{FIGURE_WIDTH}}{beside}", flush=True)
        if verdict.fails:
            worse.append(f"{part}: {label}")
    return worse


def main() -> int:
    """Read the arguments, run, and record if asked to."""
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="?", default="", help="one part; all of them without it")
    parser.add_argument("--record", action="store_true", help="keep the figures as those to compare with")
    arguments = parser.parse_args()
    ledger = Ledger(HERE / "data")
    status = run(arguments.only, ledger)
    if arguments.record:
        ledger.record()
    return status


if __name__ == "__main__":
    sys.exit(main())
