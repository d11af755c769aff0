"""The runs as a PNG, by matplotlib, which is installed with the extra `plots`."""

from pathlib import Path

from matplotlib.figure import Figure

from podtide.cli.plan.replay.answer import ReplayAnswer
from podtide.cli.plan.replay.plot_panels import (
    OF_THE_SUBNET,
    PANELS,
    colours,
    dash,
    in_drawing_order,
    run_name,
    time_unit,
)

_INCHES = (11.0, 2.1)
"""The width, and the height of a panel."""


def draw(file: Path, answer: ReplayAnswer) -> None:
    """Write the panels, one below the other."""
    outcomes = in_drawing_order(answer.outcomes)
    runs = [outcome.figures for outcome in outcomes]
    unit, unit_name = time_unit(max(each.seconds for each in runs))
    figure = Figure(figsize=(_INCHES[0], _INCHES[1] * len(PANELS) + 0.8), layout="constrained")
    shades = colours(runs)
    for place, (panel, axes) in enumerate(
        zip(PANELS, figure.subplots(len(PANELS), 1, sharex=True), strict=True)
    ):
        for outcome, colour in zip(outcomes, shades, strict=True):
            axes.step(
                [sample.second / unit for sample in outcome.samples],
                [panel.value(sample) for sample in outcome.samples],
                where="post",
                color=colour,
                label=run_name(outcome.figures),
                linewidth=1.3,
                linestyle=(0, dash(outcome.figures) or ()),
            )
        if place == OF_THE_SUBNET and answer.about.capacity is not None:
            axes.axhline(
                answer.about.capacity, color="#111827", linewidth=0.9, linestyle="--", label="subnet"
            )
        axes.set_title(panel.title, fontsize=10, loc="left")
        axes.set_ylabel(panel.axis)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#f0f1f3")
    axes.set_xlabel(unit_name)
    figure.suptitle(answer.about.title, fontsize=12)
    handles, labels = figure.axes[OF_THE_SUBNET].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(file, dpi=110, metadata={"Software": None})
