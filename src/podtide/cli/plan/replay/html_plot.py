"""The runs as one HTML page that stands by itself: uPlot and all figures are in it, and nothing is loaded from elsewhere."""

import html
import json
from importlib.resources import files
from string import Template
from typing import Any

from podtide import __version__
from podtide.cli.plan.replay.answer import COLUMNS, ReplayAnswer, cells
from podtide.cli.plan.replay.plot_panels import (
    OF_THE_SUBNET,
    PANELS,
    colours,
    dash,
    in_drawing_order,
    run_name,
    thinned,
    time_unit,
)

_HERE = files(__package__)
_UPLOT = _HERE / "uplot"


def page(answer: ReplayAnswer) -> str:
    """The whole page."""
    about = answer.about
    shown = Template((_HERE / "page.html").read_text(encoding="utf-8"))
    return shown.substitute(
        title=html.escape(about.title),
        notes="\n".join(f"<li>{html.escape(note)}</li>" for note in about.notes),
        head=_row("th", COLUMNS),
        rows="\n".join(_row("td", cells(outcome.figures)) for outcome in answer.outcomes),
        version=html.escape(__version__),
        licence=(_UPLOT / "LICENSE").read_text(encoding="utf-8").replace("--", "- -"),
        style=(_UPLOT / "uPlot.min.css").read_text(encoding="utf-8"),
        program=(_UPLOT / "uPlot.iife.min.js").read_text(encoding="utf-8"),
        data=json.dumps(_data(answer), separators=(",", ":")).replace("<", "\\u003c"),
    )


def _row(tag: str, row: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>"


def _data(answer: ReplayAnswer) -> dict[str, Any]:
    outcomes = in_drawing_order(answer.outcomes)
    figures = [outcome.figures for outcome in outcomes]
    unit, unit_name = time_unit(max(each.seconds for each in figures))
    samples = [thinned(outcome.samples) for outcome in outcomes]
    return {
        "runs": [
            {"name": run_name(each), "colour": colour, "dash": dash(each)}
            for each, colour in zip(figures, colours(figures), strict=True)
        ],
        "unit": unit_name,
        "times": [[round(sample.second / unit, 5) for sample in of_run] for of_run in samples],
        "panels": [
            {
                "title": panel.title,
                "axis": panel.axis,
                "limit": answer.about.capacity if place == OF_THE_SUBNET else None,
                "values": [[panel.value(sample) for sample in of_run] for of_run in samples],
            }
            for place, panel in enumerate(PANELS)
        ],
    }
