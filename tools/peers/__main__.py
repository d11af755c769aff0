"""Run podtide beside its peers, print the table, write it into docs/benchmarks.md and draw README's picture: `make peers`.

`--small` runs a little of everything, to see that it works: its figures say nothing and are not written.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from control_plane.binaries import binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild, DidNotStart
from page_section import with_section
from peers.cluster import running_cluster
from peers.figures import Figure, figures_of, figures_of_memory
from peers.line_up import line_up
from peers.loads import Run
from peers.picture import draw
from peers.reactive_pool import table as reactive_table
from peers.report import Outcome, conditions, section
from peers.sizes import FULL, SMALL, Sizes
from peers.table import lines, pairs

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "benchmarks.md"
_README = _ROOT / "README.md"
_PICTURE = _ROOT / "docs" / "images" / "peers.png"
_SECTION = "peers"
_SHOWN = f"""\
![podtide, host-local and Whereabouts: ADDs answered per second, and how long one takes](docs/images/{_PICTURE.name})

Of one run of `make peers`, which runs all of them on one real API server: [the figures](docs/benchmarks.md#peers-podtide-host-local-and-whereabouts-in-one-run)."""


def main() -> int:
    """The exit status: 1 when podtide gave an address twice or kept one, or when there is nothing to run on."""
    parser = argparse.ArgumentParser(prog="make peers", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a little of everything, written nowhere")
    small: bool = parser.parse_args().small
    try:
        found = binaries()
    except CannotBuild as reason:
        print(f"peers: there is no API server to run on: {reason}", file=sys.stderr)
        return 1
    load_before, began = os.getloadavg()[0], monotonic()
    try:
        with ControlPlane(found) as control_plane:
            outcome = measure(control_plane, SMALL if small else FULL)
    except DidNotStart as reason:
        print(f"peers: nothing is written: {reason}", file=sys.stderr)
        return 1
    reactive = list(reactive_table())
    seconds = monotonic() - began
    print("\n".join([*reactive, *(f"peers: {fault}" for fault in outcome.faults)]))
    print(f"peers: all of it took {seconds:.0f} s")
    if not small:
        _write(outcome, [*conditions(load_before, seconds), *section(outcome), *reactive])
    return int(any(fault.startswith("podtide") for fault in outcome.faults))


def measure(control_plane: ControlPlane, sizes: Sizes) -> Outcome:
    """Measure, and print each load's figures as they come."""
    with running_cluster(control_plane, sizes) as cluster, line_up(cluster) as contenders:
        outcome = Outcome(contenders, sizes, {each.name: [] for each in contenders}, {})
        run = Run(cluster, contenders, sizes)
        for load, results in run.measure():
            outcome.results[load.name] = results
            _tell(outcome, {name: list(figures_of(load.name, each, sizes)) for name, each in results.items()})
        _tell(outcome, {name: list(figures_of_memory(each)) for name, each in run.memory().items()})
    return outcome


def _tell(outcome: Outcome, figures: Mapping[str, Sequence[Figure]]) -> None:
    for name, each in figures.items():
        outcome.figures[name].extend(each)
    for pair in pairs(outcome.contenders):
        print("\n".join(lines(pair, figures)), flush=True)


def _write(outcome: Outcome, told: Sequence[str]) -> None:
    _PAGE.write_text(with_section(_PAGE.read_text(), _SECTION, "\n".join(told)))
    draw(outcome.contenders, outcome.figures, outcome.sizes, _PICTURE)
    _README.write_text(with_section(_README.read_text(), _SECTION, _SHOWN))
    print(f"peers: written: {_PAGE}, {_README}, {_PICTURE}")


if __name__ == "__main__":
    sys.exit(main())
