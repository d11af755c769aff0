"""The workshop holds: what is documented exists, nothing names a registry, and set-up fails in words."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from repository_files import ROOT, files_of_the_repository

MANUALS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# Put together from pieces, because this file is searched too.
REGISTRIES = tuple(
    ".".join(pieces)
    for pieces in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
    )
)


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_no_file_names_a_package_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)} names {registry}"
        for path in files_of_the_repository()
        for registry in REGISTRIES
        if registry.encode() in path.read_bytes()
    ]
    assert found == []


@pytest.mark.parametrize(
    "target", ["demo", "test", "test-fast", "lint", "format", "bench", "coverage", "mutation", "lock"]
)
def test_make_help_lists_the_target(target: str) -> None:
    listing = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S607 - the make of this machine
    assert re.search(rf"^make {target} +\S", listing, flags=re.MULTILINE)


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_every_make_target_a_manual_mentions_exists(manual: Path) -> None:
    mentioned = re.findall(r"(?:^ {4}|`|\$ )make ([a-z][a-z-]*)", manual.read_text(), flags=re.MULTILINE)
    assert set(mentioned) <= targets()


def test_continuous_integration_lints_and_tests() -> None:
    script = ROOT / ".ci" / "run"
    commands = script.read_text().splitlines()
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in commands
    assert commands.index("make lint") < commands.index("make test")


def test_every_locked_package_carries_hashes() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text())
    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    stated = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for group in project["dependency-groups"].values():
        stated += [requirement for requirement in group if isinstance(requirement, str)]
    locked = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    assert {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in stated} <= set(locked), (
        "run `make lock`"
    )


def test_a_newcomers_demo_installs_what_podtide_runs_with_and_nothing_that_only_develops_it(
    tmp_path: Path,
) -> None:
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "tools/set-up.sh"):
        copy = tmp_path / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())

    def planned(target: str) -> str:
        make = ("make", "--dry-run", target)
        return subprocess.run(make, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert "set-up.sh to-run\n" in planned("demo")
    assert "set-up.sh\n" in planned("lint")
    (tmp_path / ".venv").mkdir()
    [stamp] = re.findall(r"touch (\.venv/ready-[0-9a-f]+)\n", planned("lint"))
    (tmp_path / stamp).touch()
    assert "set-up.sh" not in planned("demo"), "who develops podtide has all of it"


def test_an_unknown_part_of_the_benchmarks_is_refused_in_one_line() -> None:
    answer = subprocess.run(
        [sys.executable, "bench/run.py", "nonsense"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert re.fullmatch(r"no benchmarks are called 'nonsense': ONLY is one of .*core.*\n", answer.stderr)


class Machine:
    """A machine for tools/set-up.sh: a bare copy of the repository, and commands of our own before the real ones."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("tools/set-up.sh", "requirements.lock"):
            copy = directory / name
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
        self.commands = directory / "commands"
        self.commands.mkdir()

    def command(self, name: str, script: str) -> Path:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", self.directory / "tools" / "set-up.sh"],
            env={"PATH": f"{self.commands}:/usr/bin:/bin", **environment},
            check=False,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Somebody who is not root, with a Python that cannot make virtual environments, as Debian ships it."""
    machine = Machine(tmp_path)
    machine.command("id", "echo 1000")
    machine.command(
        "python3",
        'case "$2" in *base_executable*) echo "$0" ;; *ensurepip*) exit 1 ;; *) echo 3.11 ;; esac',
    )
    return machine


def test_without_root_a_missing_package_is_named_and_set_up_stops(machine: Machine) -> None:
    machine.command("apt-get", "echo apt-get was called; exit 1")
    answer = machine.set_up()
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr == (
        "set-up: missing on this machine: python3.11-venv. "
        "Install it (Debian: sudo apt-get install python3.11-venv), then run make again.\n"
    )
    assert not (machine.directory / ".venv").exists()


def test_root_gets_the_missing_package_installed(machine: Machine) -> None:
    machine.command("id", "echo 0")
    machine.command("apt-get", 'echo "apt-get $*"; [ "$1" = update ]')
    answer = machine.set_up()
    assert answer.stdout.splitlines() == [
        "set-up: apt-get install python3.11-venv",
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends python3.11-venv",
    ]


def test_a_python_that_is_too_old_is_refused_by_name(machine: Machine) -> None:
    old = machine.command("python2", "exit 1")
    answer = machine.set_up(PYTHON=str(old))
    assert answer.returncode == 1
    assert (
        answer.stderr
        == f"set-up: {old} is no Python 3.11 or newer: name one with make PYTHON=/path/to/python3.11\n"
    )


def test_a_class_name_says_which_class_it_is() -> None:
    """Of two classes with one name a reader, and a traceback, cannot tell which is meant."""
    where: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_every_package_says_what_it_is_for() -> None:
    packages = sorted((ROOT / "src").rglob("__init__.py"))
    assert [str(path) for path in packages if not ast.get_docstring(ast.parse(path.read_text()))] == []


# Two words may stand on two lines, with the marks of a comment or of a string between them.
RIDDLES = re.compile(r"""\b(?:nobody|whoever\b|go(?:es)?[\s#"']+by\b)""", flags=re.IGNORECASE)


def riddles(paths: Iterable[Path]) -> list[str]:
    """Where the files have such words, but in names of tests and plans (code) and in tables that a tool writes."""
    return [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {' '.join(match[0].split())}"
        for path in sorted(paths)
        for text in [path.read_text() if path.suffix == ".py" else _prose(path.read_text())]
        for match in RIDDLES.finditer(text)
    ]


def _prose(page: str) -> str:
    """The page without code and without what a tool wrote into it; lines keep their numbers."""
    without = re.sub(
        r"```.*?```|`[^`\n]*`|<!-- made by .*?<!-- end -->",
        lambda found: "\n" * found[0].count("\n"),
        page,
        flags=re.DOTALL,
    )
    return re.sub(r"\]\([^)]*\)", "]", without)


def test_the_code_speaks_plain_english() -> None:
    """Many readers are not native speakers: name who acts or does not (a node, no program), and what it reads or follows."""
    assert riddles((ROOT / "src").rglob("*.py")) == []


def test_the_documentation_speaks_plain_english() -> None:
    pages = {*MANUALS, *(ROOT / "docs").rglob("*.md"), ROOT / "SECURITY.md", ROOT / "plugin" / "PROTOCOL.md"}
    assert riddles(pages) == []
