"""podtide's own scenarios, by name: a checkout has them in `scenarios/`, a wheel carries the same files in the package."""

from pathlib import Path

import podtide
from podtide.core.errors import InvalidInput

STORIES = "stories"
TRAPS = "traps"

_PACKAGE = Path(podtide.__file__).parent
_SUFFIX = ".yaml"


def find_scenario(named: str, *, flag: str, kinds: tuple[str, ...] = (STORIES, TRAPS)) -> Path:
    """The file of that path, or podtide's own scenario of that name; `flag` is the option that named it."""
    shipped = shipped_scenarios(kinds)
    if (path := Path(named)).is_file():
        return path
    if named in shipped:
        return shipped[named]
    raise InvalidInput(
        f"{flag} {named}: there is no such file or story: give a file, or one of {', '.join(sorted(shipped))}"
    )


def shipped_scenarios(kinds: tuple[str, ...] = (STORIES, TRAPS)) -> dict[str, Path]:
    """The files of podtide's own scenarios, by name."""
    return {path.stem: path for kind in kinds for path in sorted((_scenarios() / kind).glob(f"*{_SUFFIX}"))}


def _scenarios() -> Path:
    inside = _PACKAGE / "scenarios"
    return inside if inside.is_dir() else _PACKAGE.parent.parent / "scenarios"
