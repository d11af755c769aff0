"""`-o` is one mechanism for all commands, help has a short flag, and colours are for terminals alone."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click
import pytest
import yaml

from cli.conftest import Run
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cli import podtide as root
from podtide.cli.output.formats import OBJECT_FORMATS, TEXT_FORMATS, alarming, rendered
from podtide.cli.shell.exit_status import ExitStatus
from podtide.runtime.clock import SystemClock
from repository_files import ROOT


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name))


COMMANDS = list(commands(root))


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def add() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            for name, cidr in (("pods", "10.1.0.0/28"), ("more", "10.2.0.0/28")):
                await allocator.add_subnet(SubnetSpec(network="blue", name=name, cidrs=(cidr,)))

    asyncio.run(add())
    return url


def test_every_command_has_one_of_the_sets_of_formats() -> None:
    own = {
        ("table", "csv", "json", "yaml"),
        ("yaml", "json", "name"),
    }  # rows of history; what kubectl applies
    allowed = {OBJECT_FORMATS, TEXT_FORMATS, (*TEXT_FORMATS, "csv"), *own}
    for path, command in COMMANDS:
        for option in command.params:
            if option.name == "output":
                assert isinstance(option.type, click.Choice), path
                assert tuple(option.type.choices) in allowed, path


READING = frozenset(
    {
        *("allocator cluster list", "check", "forecast", "ip", "network show", "node", "quarantine list"),
        *("subnet history", "subnet list", "subnet show", "top", "why"),
    }
)
"""Commands that show a cluster or an allocator as it is now: what they show can change while one looks."""
FOR_PEOPLE = {
    "completion": "a shell's script: it has one form",
    "demo": "a story to watch; `simulate -o json` is such a cluster for programs",
}
RUN_UNTIL_A_SIGNAL = frozenset({"agent", "allocator", "cluster", "controller", "dashboard", "wait"})
"""Programs: they log, and answer by their metrics and HTTP paths."""


def shown_options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def runs(command: click.Command) -> bool:
    return not isinstance(command, click.Group) or command.invoke_without_command


@pytest.mark.parametrize(
    ("name", "command"),
    [pytest.param(" ".join(path), each, id=" ".join(path)) for path, each in COMMANDS if runs(each)],
)
def test_every_command_has_formats_and_every_reading_one_can_watch(name: str, command: click.Command) -> None:
    has_formats = not (name in FOR_PEOPLE or name in RUN_UNTIL_A_SIGNAL)
    assert {"-o", "--output"} <= shown_options(command) if has_formats else "-o" not in shown_options(command)
    assert ({"-w", "--watch", "--interval"} <= shown_options(command)) is (name in READING)


def test_every_command_that_is_exempt_exists() -> None:
    assert {*READING, *FOR_PEOPLE, *RUN_UNTIL_A_SIGNAL} <= {" ".join(path) for path, _ in COMMANDS}


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_dash_h_is_help_everywhere(path: tuple[str, ...]) -> None:
    context: click.Context | None = None
    command: click.Command = root
    context = root.make_context("podtide", ["--"], resilient_parsing=True)
    for name in path:
        assert isinstance(command, click.Group)
        inner = command.get_command(context, name)
        assert inner is not None
        command = inner
        context = click.Context(command, info_name=name, parent=context)
    assert command.get_help_option_names(context) == ["-h", "--help"]


def test_dash_h_prints_what_help_does() -> None:
    """In processes of their own: click remembers in a command by which options help was asked for first."""
    short, long = (
        subprocess.check_output([sys.executable, "-m", "podtide", "subnet", "list", option], text=True)
        for option in ("-h", "--help")
    )
    assert short == long
    assert "-h, --help" in short


def test_the_same_subnets_in_every_format(podtide: Run, database: str) -> None:
    def listed(output: str) -> str:
        answer = podtide("subnet", "list", "--database", database, "-o", output)
        assert answer.status == ExitStatus.DONE
        return answer.out

    assert json.loads(listed("json")) == yaml.safe_load(listed("yaml"))
    assert [subnet["name"] for subnet in json.loads(listed("json"))] == ["more", "pods"]
    assert listed("name") == "blue/more\nblue/pods\n"
    table, wide = listed("table").splitlines(), listed("wide").splitlines()
    assert [row.split()[1] for row in table] == [row.split()[1] for row in wide] == ["NAME", "more", "pods"]
    assert "QUARANTINED" in wide[0]
    assert "QUARANTINED" not in table[0]
    assert listed("text") == listed("table")


def test_an_unknown_format_names_those_there_are(podtide: Run, database: str) -> None:
    answer = podtide("subnet", "list", "--database", database, "-o", "xml")
    assert answer.status == ExitStatus.BAD_INPUT
    assert "'table', 'wide', 'json', 'yaml', 'name'" in answer.err


def test_fractions_are_numbers_in_json_and_yaml() -> None:
    document = {"whole": Fraction(4, 2), "part": Fraction(1, 2)}
    assert json.loads(rendered("json", document, [])) == {"whole": 2, "part": 0.5}
    assert yaml.safe_load(rendered("yaml", document, [])) == {"whole": 2, "part": 0.5}


@pytest.mark.parametrize(
    ("is_terminal", "environment", "is_coloured"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colours_are_for_terminals_and_people_may_refuse_them(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, environment: dict[str, str], is_coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert ("\x1b[" in alarming("full")) is is_coloured
    assert "full" in alarming("full")


def test_every_exit_status_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    section = page[page.index("\n## Exit status\n") :]
    rows = re.findall(r"^\| (\d+) \|", section[: section.index("\n## ", 5)], flags=re.MULTILINE)
    assert [int(row) for row in rows] == sorted(ExitStatus)
