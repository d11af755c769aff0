"""How long README's commands take on real nodes, from a cluster without a network to nodes that are Ready, with nothing by hand."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from control_plane.errors import CannotBuild
from node_bench.bench import NodeBench
from node_bench.cluster import Parts
from node_bench.programs import say_on_stderr
from node_bench.readme_commands import run_commands

PART = "installing"
NODES = ("node-a", "node-b")


def measure() -> Iterator[tuple[str, str]]:
    """One line for each command after the one that builds the image, which nodes have already."""
    try:
        parts = Parts.built(say_on_stderr)
    except CannotBuild as lack:
        yield f"left out: {lack}", ""
        return
    with (
        tempfile.TemporaryDirectory() as directory,
        NodeBench(parts.binaries, parts.programs, init=parts.init, images=parts.images, nodes=NODES) as bench,
    ):
        total = 0.0
        for timed in run_commands(bench, parts.helm, Path(directory)):
            total += timed.seconds
            yield " ".join(timed.command.split()[:2]), f"{timed.seconds:.1f} s"
        yield f"until {len(NODES)} nodes are Ready", f"{total:.1f} s"
