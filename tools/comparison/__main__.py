"""Run the comparison of docs/comparison.md, put its tables into that page and draw its picture: `make comparison`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comparison.contestants import CONTESTANTS
from comparison.loads import BURST, LOADS, SCARCE
from comparison.table import table
from comparison.trial import TrialOutcome, compare
from page_section import with_section

_DOCS = Path(__file__).parent.parent.parent / "docs"
_PAGE = _DOCS / "comparison.md"
_PICTURE = _DOCS / "images" / "comparison.png"

_COLOURS = ("#c23b22", "#e39a3b", "#8a8f98", "#4f9bd9", "#5a9e6f", "#123f6d")
"""From what is left behind to what is there now."""
_BURST_AT_SECONDS = 60


def main() -> int:
    """The exit status."""
    outcomes = {load.name: [compare(contestant, load) for contestant in CONTESTANTS] for load in LOADS}
    page = _PAGE.read_text()
    for name, of_load in outcomes.items():
        rows = "\n".join(table(of_load))
        print(f"{name}\n{rows}\n")
        page = with_section(page, name, rows)
    _PAGE.write_text(page)
    _draw(outcomes[BURST.name], outcomes[SCARCE.name])
    print(f"written: {_PAGE}, {_PICTURE}")
    return 0


def _draw(burst: Sequence[TrialOutcome], scarce: Sequence[TrialOutcome]) -> None:
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    for colour, of_burst, of_scarce in zip(_COLOURS, burst, scarce, strict=True):
        after = [sample for sample in of_burst.samples if sample.second >= _BURST_AT_SECONDS - 1]
        _line(
            first,
            of_burst,
            colour,
            [(sample.second - _BURST_AT_SECONDS, sample.served) for sample in after],
        )
        _line(
            second, of_scarce, colour, [(each.second, each.pods - each.served) for each in of_scarce.samples]
        )
        _line(third, of_scarce, colour, [(each.second, each.idle) for each in of_scarce.samples])
    first.set_xlim(-1, 45)
    for axes in (second, third):
        axes.set_xlim(50, 260)
    _label(first, "One burst: 35 more pods on a node", "pods with an address")
    _label(second, "A subnet filled to 95 %: who waits", "pods without an address")
    _label(third, "A subnet filled to 95 %: what lies idle", "idle addresses held by nodes")
    first.legend(frameon=False, fontsize=8, loc="lower right")
    _PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(_PICTURE, dpi=110, metadata={"Software": None})


def _line(axes: Axes, outcome: TrialOutcome, colour: str, points: Sequence[tuple[int, int]]) -> None:
    seconds, values = zip(*points, strict=True)
    axes.step(seconds, values, where="post", color=colour, label=outcome.contestant, linewidth=1.6)


def _label(axes: Axes, title: str, what: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("seconds")
    axes.set_ylabel(what)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0)


if __name__ == "__main__":
    sys.exit(main())
