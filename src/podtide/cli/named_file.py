"""A file as an option: one type for every command, so that a path that names none is refused everywhere in the same words."""

from pathlib import Path
from typing import Any

import click


class NamedFile(click.Path):
    """The path of a file. Empty, as an unset variable of a shell leaves it, it names none."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("this names no file: give its path, or leave out the option.", param, ctx)
        return super().convert(value, param, ctx)


class ExistingFile(NamedFile):
    """The path of a file that is to be read: one that is not there is said at once."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = super().convert(value, param, ctx)
        if not path.exists():
            self.fail(f"there is no file {path}: correct the path.", param, ctx)
        return path
