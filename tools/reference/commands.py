"""Every command and option, from click."""

import re
from collections.abc import Iterator

import click

from podtide.cli import podtide
from reference.markdown import Undescribed, code, described, table


def page() -> Iterator[str]:
    """The page of commands."""
    yield "# Every command and option"
    yield "What `--help` says, for all commands on one page. [Commands](../cli.md) has examples, and says what each is good for."
    yield ""
    for path, command in all_commands(podtide):
        yield from _section(path, command)


def all_commands(command: click.Command, path: str = "podtide") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups before what is in them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from all_commands(inner, f"{path} {name}")


def _section(path: str, command: click.Command) -> Iterator[str]:
    yield f"## {path}"
    yield ""
    context = click.Context(command, info_name=path)
    yield "```text"
    yield f"{path} {' '.join(command.collect_usage_pieces(context))}"
    yield "```"
    yield ""
    described(command.help, path)
    for paragraph in re.split(r"\n\s*\n", (command.help or "").replace("\b\n", "").strip()):
        yield " ".join(paragraph.split())
        yield ""
    rows = [_row(path, each, context) for each in command.params if isinstance(each, click.Option)]
    yield from table(("Option", "Default", "What it is"), rows)


def _row(path: str, option: click.Option, context: click.Context) -> tuple[str, str, str]:
    if option.hidden:
        raise Undescribed(f"{path} {option.opts[0]} is hidden: describe it, or remove it")
    names = ", ".join(map(code, (*option.opts, *option.secondary_opts)))
    value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
    return names + value, _default(option, context), described(option.help, f"{path} {option.opts[0]}")


def _default(option: click.Option, context: click.Context) -> str:
    extra = option.get_help_extra(context)
    if "required" in extra:
        return "required"
    return str(extra.get("default", ""))
