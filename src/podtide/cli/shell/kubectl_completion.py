"""`kubectl podtide <TAB>`: kubectl asks the program `kubectl_complete-podtide` in PATH for what may follow.

Its arguments are the words after `kubectl podtide`, the last of them unfinished. It prints one completion in a line, a tab
and what it is, and in the last line a number that says what kubectl's shell does besides (Cobra's directives).
"""

import sys

import click

from podtide.cli.shell.program_name import PLUGIN

_NOTHING_ELSE = 4
_FILES_TOO = 0
_DIRECTORIES_ONLY = 16
_DIRECTIVES = {"file": _FILES_TOO, "dir": _DIRECTORIES_ONLY}


def main() -> None:
    """Print what may follow the words of the command line."""
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - needed by this program alone

    from podtide.cli import podtide  # noqa: PLC0415 - as above

    *before, unfinished = sys.argv[1:] or [""]
    found = ShellComplete(podtide, {}, PLUGIN, "").get_completions(before, unfinished)
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    kinds = {item.type for item in found} & set(_DIRECTIVES)
    click.echo(f":{min((_DIRECTIVES[kind] for kind in kinds), default=_NOTHING_ELSE)}")
