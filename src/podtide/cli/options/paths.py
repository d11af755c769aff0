"""Paths as options: one type for every command, so that a wrong path is refused everywhere in the same words."""

from pathlib import Path
from typing import Any

import click


class NamedFile(click.Path):
    """The path of a file, which need not exist. An empty value, as an unset shell variable leaves it, is refused."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; refused if it is empty."""
        if value == "":
            self.fail("the path is empty: give the path of a file, or leave out the option.", param, ctx)
        return super().convert(value, param, ctx)


class ExistingFile(NamedFile):
    """The path of a file that is to be read: a missing one is refused at once."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; refused if there is no such file."""
        path = super().convert(value, param, ctx)
        if not path.exists():
            self.fail(f"the file {path} does not exist: correct the path.", param, ctx)
        return path


class NamedDirectory(click.Path):
    """The path of a directory, which need not exist. An empty value is refused, as for a file."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; refused if it is empty."""
        if value == "":
            self.fail("the path is empty: give the path of a directory, or leave out the option.", param, ctx)
        return super().convert(value, param, ctx)
