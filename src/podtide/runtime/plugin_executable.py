"""Where the CNI plugin is: a program of its own, built or shipped beside this package, and never a part of it.

The plugin in Rust is taken where it has been built, because it is what nodes run. The portable script does the same,
and is there wherever podtide is.
"""

import os
from pathlib import Path

import podtide
from podtide.core.errors import InvalidConfig

VARIABLE = "PODTIDE_PLUGIN"

_PACKAGE = Path(podtide.__file__).parent
_CHECKOUT = _PACKAGE.parent.parent


def find_plugin() -> Path:
    """The plugin to start: the one that PODTIDE_PLUGIN names, else the checkout's, else the script of the package."""
    if named := os.environ.get(VARIABLE):
        path = Path(named).absolute()
        if not _is_program(path):
            raise InvalidConfig(f"{VARIABLE} is {named}, which is not an executable file: name the plugin's")
        return path
    candidates = (
        _CHECKOUT / "plugin" / "target" / "release" / "podtide",
        _CHECKOUT / "plugin" / "podtide.py",
        _PACKAGE / "plugin" / "podtide.py",
    )
    for path in candidates:
        if _is_program(path):
            return path
    raise InvalidConfig(
        f"podtide's plugin is missing beside {_PACKAGE}; install podtide anew, or set {VARIABLE}"
    )


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
