"""A directory as an option, refused when empty in the words of `named_file`."""

from pathlib import Path
from typing import Any

import click


class NamedDirectory(click.Path):
    """The path of a directory, there already or not."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("this names no directory: give its path, or leave out the option.", param, ctx)
        return super().convert(value, param, ctx)
