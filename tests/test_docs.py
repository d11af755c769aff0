"""The documentation does not lie: its examples are run, and what exists is in it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from msgspec import Struct

from design_notes import DESIGN, NUMBER, numbers_of
from design_notes import PAGES as DESIGN_PAGES
from podtide.cli import podtide
from podtide.runtime.settings import SETTINGS, Setting
from podtide.simulation.faults.table import FAULTS
from repository_files import ROOT, files_of_the_repository

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "tests" / "recorded" / "README.md",
    ROOT / "deploy" / "chart" / "README.md",
]


def commands(command: click.Command, path: str = "podtide") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, the groups among them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


COMMANDS = dict(commands(podtide))


class Example(Struct, frozen=True):
    """A command on a page, and what the page says it prints."""

    command: str
    output: str


REPEATABLE = ("$ podtide explain", "$ podtide plan ", "$ podtide forecast --history")
"""How blocks begin whose commands print the same on every machine and every day."""


def examples(page: Path) -> Iterator[Example]:
    """The commands in the page's console blocks; what follows one, up to the next, is its output."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL):
        if not block.startswith(REPEATABLE):
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, output = re.split(r"(?<!\\)\n", part, maxsplit=1)
            yield Example(command, output)


@pytest.mark.parametrize(
    "example", [example for page in PAGES for example in examples(page)], ids=lambda example: example.command
)
def test_an_example_prints_what_its_page_shows(example: Example) -> None:
    beside_python = Path(sys.executable).parent
    answer = subprocess.run(
        ["/bin/bash", "-c", example.command],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{beside_python}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    assert answer.stdout == example.output


@pytest.mark.parametrize(
    "path",
    [
        *(path for path in COMMANDS if path.startswith("podtide explain ")),
        "podtide plan --",
        "podtide plan fit",
        "podtide plan replay",
    ],
)
def test_every_explanation_and_plan_has_an_example(path: str) -> None:
    assert [example for page in PAGES for example in examples(page) if example.command.startswith(path)]


def documented_options(path: str) -> set[str]:
    """The options in the table of a command's section of docs/cli.md."""
    page = (ROOT / "docs" / "cli.md").read_text()
    section = re.search(rf"^## {path}\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/cli.md has no section '## {path}'"
    rows = re.findall(r"^\| (`-.*?) \|", section[1], flags=re.MULTILINE)
    return {option for row in rows for option in re.findall(r"`(-[^ `]+)", row)}


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_of_a_command_is_documented_and_no_other(path: str) -> None:
    offered = {
        name
        for parameter in COMMANDS[path].params
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    assert documented_options(path) == offered


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_documented_with_its_default(setting: Setting) -> None:
    row = f"| `{setting.name}` | {setting.show(setting.default)} | {setting.allowed} | {setting.about.purpose} |"
    assert row in (ROOT / "docs" / "settings.md").read_text().splitlines()


def test_no_setting_is_documented_that_does_not_exist() -> None:
    documented = re.findall(
        r"^\| `(\w+)` \|", (ROOT / "docs" / "settings.md").read_text(), flags=re.MULTILINE
    )
    assert documented == [setting.name for setting in SETTINGS]


PLANS = sorted((ROOT / "tests" / "simulation" / "regressions" / "plans").glob("*.json"))


def test_every_plan_that_once_failed_is_named_where_it_says_what_was_mended() -> None:
    page = (ROOT / "docs" / "simulation.md").read_text()
    assert [plan.stem for plan in PLANS if f"`{plan.stem}`" not in page] == []


FAILURE_MODEL = (ROOT / "docs" / "failure-model.md").read_text()


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", FAILURE_MODEL))))
def test_a_promise_names_a_test_that_is_there(named: str) -> None:
    file, _, test = named.partition("::")
    assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), flags=re.MULTILINE)


def test_a_promise_names_only_faults_that_seeded_runs_know() -> None:
    named = {
        fault
        for row in re.findall(r"faults? (`[^|]*)\|$", FAILURE_MODEL, flags=re.MULTILINE)
        for fault in re.findall(r"`([a-z-]+)`", row)
    }
    assert named <= set(FAULTS)
    assert named


def links(page: Path) -> list[str]:
    """Where the page's links lead that stay in the repository. What stands in code is no link."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", prose)
    return [target for pair in targets if (target := pair[0] or pair[1]) and "://" not in target]


def anchors(page: Path) -> set[str]:
    """What the page's headings can be reached by, as GitHub forms it."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_of_a_page_leads_nowhere(page: Path) -> None:
    dead = []
    for link in links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def printed_commands() -> Iterator[str]:
    """What podtide's programs tell people to run: `podtide …` in their messages."""
    for source in sorted((ROOT / "src").rglob("*.py")):
        yield from re.findall(r"`(podtide(?: [a-z][a-z-]+)+)", source.read_text())


@pytest.mark.parametrize("printed", sorted(set(printed_commands())))
def test_a_command_that_a_message_names_is_one(printed: str) -> None:
    longest = max(each for each in COMMANDS if printed == each or printed.startswith(f"{each} "))
    takes_names = any(isinstance(each, click.Argument) for each in COMMANDS[longest].params)
    assert printed == longest or takes_names


def texts() -> Iterator[tuple[str, str]]:
    """Every file of the repository that is text, with its path."""
    for path in files_of_the_repository():
        try:
            yield str(path.relative_to(ROOT)), path.read_text()
        except UnicodeDecodeError:
            continue  # a picture


OUTSIDE = re.compile(r"\b(DESIGN|WIRE)\.md|\.\./shared|/work/[a-z]")
"""Documents and paths that only the machines of its authors have."""


def test_no_file_names_what_no_clone_of_the_repository_has() -> None:
    assert [path for path, text in texts() if OUTSIDE.search(text)] == []


@pytest.mark.parametrize("letter", DESIGN_PAGES)
def test_the_entries_of_a_design_page_are_numbered_without_a_gap(letter: str) -> None:
    numbers = numbers_of(DESIGN_PAGES[letter])
    assert numbers == [f"{letter}{number}" for number in range(1, len(numbers) + 1)]
    assert numbers


EXISTING = {number for page in DESIGN_PAGES.values() for number in numbers_of(page)}


def named_numbers(text: str) -> set[str]:
    """The entries that a text names, such as `design R3`, `design T14 and T18 to T22`, over the ends of lines too."""
    in_one_line = re.sub(r"\s+(# )?", " ", text)
    lists = re.findall(rf"\b[Dd]esign(?:/\w+\.md`?)? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)", in_one_line)
    return {number for each in lists for number in re.findall(NUMBER, each)}


def test_every_design_number_that_code_tests_and_docs_name_exists() -> None:
    named = {(path, number) for path, text in texts() for number in named_numbers(text)}
    assert {(path, number) for path, number in named if number not in EXISTING} == set()
    assert len(named) > 50  # the search finds what is there


@pytest.mark.parametrize("page", sorted(DESIGN.glob("*.md")), ids=lambda page: page.name)
def test_a_design_page_names_only_entries_and_files_that_exist(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(rf"\b{NUMBER}\b", text)) <= EXISTING
    assert [path for path in named_paths(text) if not (ROOT / path).exists()] == []


PLACES = ("src", "tests", "tools", "bench", "deploy", "plugin", "scenarios", "docs")


def named_paths(text: str) -> list[str]:
    """The files and directories of the repository that a page names in code."""
    return re.findall(rf"`((?:{'|'.join(PLACES)})/[\w./-]*)`", text)


def shown_modules() -> Iterator[tuple[str, str]]:
    """The rows of tables headed "Modules of `package/`": the page, and what each module or package of them would be."""
    for page in PAGES:
        tables = re.findall(
            r"^\| Modules of `([\w/]+)` \|.*\n((?:\|.*\n)+)", page.read_text(), flags=re.MULTILINE
        )
        for package, rows in tables:
            for cell in re.findall(r"^\| (`.*?) \|", rows, flags=re.MULTILINE):
                yield from ((page.name, f"{package}{name}") for name in re.findall(r"`([\w/]+)`", cell))


def test_a_table_of_modules_shows_only_modules_that_exist() -> None:
    shown = list(shown_modules())
    sources = ROOT / "src" / "podtide"
    gone = [
        each
        for each in shown
        if not (sources / each[1]).is_dir() and not (sources / f"{each[1]}.py").exists()
    ]
    assert gone == []
    assert len(shown) > 50  # the tables are found


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/glossary.md"])
def test_a_page_that_shows_the_way_names_only_files_that_exist(page: str) -> None:
    named = named_paths((ROOT / page).read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert named


def mapped_directories() -> list[str]:
    """The directories of the map in CONTRIBUTING.md: each is indented below the one that it is in."""
    (block,) = re.findall(r"^## Layout\n\n((?: {4}.*\n)+)", CONTRIBUTING, flags=re.MULTILINE)
    found: list[str] = []
    above: dict[int, str] = {}
    for indent, name in re.findall(r"^ {4}( *)([\w/]+/) ", block.replace("\n", " \n"), flags=re.MULTILINE):
        above[len(indent)] = above.get(len(indent) - 2, "") + name
        found.append(above[len(indent)])
    return found


def test_the_map_shows_every_package_two_levels_deep_and_nothing_else() -> None:
    mapped = mapped_directories()
    assert [path for path in mapped if not (ROOT / path).is_dir()] == []
    sources = ROOT / "src" / "podtide"
    packages = [init.parent for pattern in ("*", "*/*") for init in sources.glob(f"{pattern}/__init__.py")]
    assert {f"{package.relative_to(ROOT)}/" for package in packages} == {
        path for path in mapped if path.startswith("src/podtide/") and path != "src/podtide/"
    }
    assert {f"{place}/" for place in PLACES if place != "src"} <= set(mapped)


def test_the_readme_of_the_recordings_names_only_files_that_exist() -> None:
    recorded = ROOT / "tests" / "recorded"
    text = (recorded / "README.md").read_text()
    assert [path for path in named_paths(text) if not (ROOT / path).exists()] == []
    assert {path.name for path in recorded.glob("*.json")} == set(
        re.findall(r"^\| `(\w+\.json)`", text, re.MULTILINE)
    )
