"""Makes a mutant: a copy of the package in which one line is another."""

from collections.abc import Iterator
from compileall import compile_dir
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from mutants.catalogue import Mutant

PACKAGE = Path(__file__).parents[2] / "src" / "podtide"


class NotOneLine(Exception):
    """The catalogue is out of step with the code."""


@contextmanager
def snapshot() -> Iterator[Path]:
    """The package as it is now, so that nobody's edits come between a mutant and what it is compared with."""
    with TemporaryDirectory() as directory:
        package = Path(copytree(PACKAGE, Path(directory) / PACKAGE.name))
        compile_dir(package, quiet=1)  # once for all mutants: a copy keeps its files' times
        yield package


def break_copy(mutant: Mutant, package: Path, directory: Path) -> None:
    """Put `podtide` with the mutant's line into a directory, to be found there by PYTHONPATH."""
    copy_with(mutant.file, broken(mutant, (package / mutant.file).read_text()), package, directory)


def copy_with(file: str, source: str, package: Path, directory: Path) -> None:
    """Put `podtide` with another content of one file into a directory."""
    copytree(package, directory / PACKAGE.name)
    (directory / PACKAGE.name / file).write_text(source)


def broken(mutant: Mutant, source: str) -> str:
    """The source with the changed line; NotOneLine unless it has the old one exactly once."""
    lines = source.splitlines(keepends=True)
    found = [number for number, line in enumerate(lines) if line.strip() == mutant.old]
    if len(found) != 1:
        raise NotOneLine(
            f"mutant {mutant.name}: {mutant.file} has the line {mutant.old!r} {len(found)} times, not once: "
            "see what became of it and mend tools/mutants/catalogue.py"
        )
    line = lines[found[0]]
    lines[found[0]] = line.replace(mutant.old, mutant.new)
    return "".join(lines)
