"""Plots of the runs over time: which there are, by the ends of their files' names, and that they can be drawn."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from podtide.cli.plan.replay.answer import ReplayAnswer
from podtide.core.errors import InvalidInput

_HTML, _PNG = ".html", ".png"


def check_plots(files: Sequence[Path]) -> None:
    """Refuse what cannot be drawn, before minutes are spent on what it should show."""
    for file in files:
        if file.suffix not in {_HTML, _PNG}:
            raise InvalidInput(
                f"--plot {file}: its name ends neither with .html nor with .png: give it one of them"
            )
        if file.suffix == _PNG and find_spec("matplotlib") is None:
            raise InvalidInput(
                f"--plot {file}: matplotlib is not installed, and draws PNG: pip install 'podtide[plots]', or give a name "
                "that ends with .html, which needs nothing"
            )


def draw_plots(files: Sequence[Path], answer: ReplayAnswer) -> None:
    """Draw the runs into every file."""
    for file in files:
        if file.suffix == _HTML:
            from podtide.cli.plan.replay.html_plot import page  # noqa: PLC0415 - only where it draws

            file.write_text(page(answer), encoding="utf-8")
        else:
            from podtide.cli.plan.replay.png_plot import draw  # noqa: PLC0415 - matplotlib is optional

            draw(file, answer)
