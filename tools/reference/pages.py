"""The pages and their files, and how tables are written in them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from reference import commands, custom_resources, http_paths, metric_families, notices

DIRECTORY = Path(__file__).parents[2] / "docs" / "reference"

_MADE = "<!-- Made from the code by `make reference`: edit that. -->"


def pages() -> Mapping[str, str]:
    """What is to be in each file of docs/reference/."""
    made: dict[str, Iterable[str]] = {
        "commands.md": commands.page(),
        "custom-resources.md": custom_resources.page(),
        "events.md": notices.page(),
        "http.md": http_paths.page(),
        "metrics.md": metric_families.page(),
    }
    return {name: _text(lines) for name, lines in made.items()}


def _text(lines: Iterable[str]) -> str:
    title, *rest = lines
    return "\n".join((title, "", _MADE, "", *rest)).rstrip() + "\n"
