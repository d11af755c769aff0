"""Run the benchmarks and print their figures as they come: `make bench`, or one part, `make bench ONLY=core`.

Every other file here is a benchmark: it says which part it belongs to (`PART`) and what it measured (`measure()`, which
yields a label and a figure at a time). Adding a file is all it takes to add a benchmark.
"""

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, cast

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
    here = Path(__file__)
    for path in sorted(here.parent.glob("*.py")):
        if path != here:
            yield cast("Benchmark", importlib.import_module(path.stem))


def run(only: str) -> int:
    """Print the figures of one part, or of all when `only` is empty; the answer is the exit status."""
    parts: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks():
        parts.setdefault(benchmark.PART, []).append(benchmark)
    if only and only not in parts:
        print(f"no benchmarks are called {only!r}: ONLY is one of {', '.join(parts)}", file=sys.stderr)
        return 2
    for part in [only] if only else parts:
        print(part, flush=True)
        for benchmark in parts[part]:
            for label, figure in benchmark.measure():
                print(f"  {label:<{LABEL_WIDTH}}{figure:>{FIGURE_WIDTH}}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(only="".join(sys.argv[1:])))
