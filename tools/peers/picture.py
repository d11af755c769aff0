"""The picture for README: what each contender manages, on a logarithmic scale, because the distances are that large."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from peers.contenders import Contender
from peers.figures import Figure
from peers.sizes import Sizes

_OURS, _THEIRS = "#123f6d", "#e39a3b"
_SHORTEST_BAR, _ROOM_FOR_FIGURES = 4.0, 4.0
"""The axis begins and ends at so many times less and more than there is."""


def draw(
    contenders: Sequence[Contender], figures: Mapping[str, Sequence[Figure]], sizes: Sizes, file: Path
) -> None:
    """Write the picture. Its background is opaque, so that it can be read on a dark page too."""
    drawing = Drawing(figsize=(13, 3.6), layout="constrained", facecolor="white")
    panels = (
        (sizes.burst.name, f"{sizes.burst.name}:\nanswered per second (log scale)"),
        (sizes.fleet.name, f"{sizes.fleet.name}:\nanswered per second (log scale)"),
        (f"{sizes.one.name}, p50", "One ADD, process included:\nless is better (log scale)"),
    )
    for axes, (label, title) in zip(drawing.subplots(1, len(panels)), panels, strict=True):
        _bars(axes, title, [(each, found) for each in contenders if (found := _find(figures, each, label))])
    file.parent.mkdir(exist_ok=True)
    drawing.savefig(file, dpi=110, metadata={"Software": None})


def _find(figures: Mapping[str, Sequence[Figure]], contender: Contender, label: str) -> Figure | None:
    return next((each for each in figures.get(contender.name, ()) if each.label == label), None)


def _bars(axes: Axes, title: str, shown: Sequence[tuple[Contender, Figure]]) -> None:
    names = [contender.name for contender, _ in shown]
    values = [figure.value for _, figure in shown]
    colours = [_OURS if contender.is_podtide else _THEIRS for contender, _ in shown]
    bars = axes.barh(names, values, color=colours)
    axes.bar_label(bars, [figure.text for _, figure in shown], padding=3, fontsize=8)
    axes.set_xscale("log")
    if values:
        axes.set_xlim(min(values) / _SHORTEST_BAR, max(values) * _ROOM_FOR_FIGURES)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=8)
    axes.xaxis.set_visible(False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
