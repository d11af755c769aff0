"""The command line as a whole: help, quick start, and no traceback for anybody."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli.conftest import Run
from podtide import __version__, cli
from podtide.cli.explain.command import explain
from podtide.cli.shell.lazy_group import LazyGroup

GROUPS = [cli.podtide, explain]


def test_help_lists_the_commands(podtide: Run) -> None:
    outcome = podtide("--help")
    assert outcome.status == 0
    assert "explain" in outcome.out


def test_the_version_is_the_packages(podtide: Run) -> None:
    assert podtide("--version").out == f"podtide, version {__version__}\n"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_the_sentence_in_a_list_is_the_commands_own(group: click.Command) -> None:
    assert isinstance(group, LazyGroup)
    context = click.Context(group)
    for name, (_, sentence) in group.lazy.items():
        command = group.get_command(context, name)
        assert command is not None
        assert (command.help or "").startswith(sentence.removesuffix(".")), name


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (("subnets",), "No such command 'subnets': did you mean 'subnet'? See `podtide --help`."),
        (
            ("explain", "requests"),
            "No such command 'requests': did you mean 'request'? See `podtide explain --help`.",
        ),
        (("nonsense",), "No such command 'nonsense'. See `podtide --help`."),
    ],
)
def test_of_a_misspelt_command_it_is_said_which_was_meant(
    podtide: Run, written: tuple[str, ...], words: str
) -> None:
    outcome = podtide(*written)
    assert (outcome.status, outcome.err) == (2, f"podtide: {words}\n")


def test_a_refusal_is_one_line_also_where_click_lists_the_choices(podtide: Run) -> None:
    assert podtide("completion").err == (
        "podtide: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish. See `podtide completion --help`.\n"
    )


def test_help_imports_no_more_than_it_shows() -> None:
    """Start-up is quick because nothing of what commands need is imported: the cause is held, not the clock."""
    code = "import sys; sys.argv = ['podtide', '--help']; from podtide.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(out.splitlines()[-1].split())
    assert "podtide.cli" in loaded
    assert not loaded & {
        "msgspec",
        "yaml",
        "asyncio",
        "aiohttp",
        "structlog",
        "sqlite3",
        "rich",
        "podtide.core.subnet.scaling",
    }


def test_python_dash_m_is_the_same_program() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "podtide", "explain", "request", "--demand", "-1"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "podtide: demand -1 is negative: it is a count of pods, 0 or more\n"


@pytest.mark.parametrize("words", [(), ("explain",)], ids=str)
def test_without_a_command_the_help_is_shown_as_it_is(podtide: Run, words: tuple[str, ...]) -> None:
    outcome = podtide(*words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == podtide(*words, "--help").out


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (("subnet", "list", "--server", "http://127.0.0.1:1"), "--allocator"),
        (("controller", "--server=http://127.0.0.1:1"), "--allocator"),
        (("explain", "request", "--min-free", "50%"), "--buffer"),
        (("explain", "batch", "--min-free", "50%"), "--buffer"),
    ],
    ids=str,
)
def test_an_option_that_was_renamed_is_refused_with_its_new_name(
    podtide: Run, words: tuple[str, ...], new: str
) -> None:
    outcome = podtide(*words)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"'. It is called {new} now. See `podtide {words[0]}" in outcome.err


def test_a_command_without_the_renamed_option_names_no_other(podtide: Run) -> None:
    assert podtide("crds", "--server", "x").err == (
        "podtide: No such option '--server'. See `podtide crds --help`.\n"
    )


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "podtide", "crds"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (run.returncode, run.stderr) == (1, "podtide: cannot write the answer: No space left on device\n")


def test_a_reader_that_has_enough_sees_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        run = subprocess.run(
            [sys.executable, "-m", "podtide", "crds"],
            check=False,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert run.stderr == ""
