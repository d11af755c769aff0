"""The tutorial does what it says: its commands are run as they are printed, in one shell, and print what the page shows."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec import Struct

from control_plane.binaries import Binaries
from control_plane.ports import free_ports
from repository_files import ROOT

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
PORTS = ("18001", "18080")
END = "end of step"
LONGEST_SECONDS = 900
"""A person's ten minutes, on a machine that does other things as well."""


class Step(Struct, frozen=True):
    """Commands, and the lines that the page shows of what they print; `…` stands for anything."""

    commands: str
    shown: tuple[str, ...]


def steps() -> list[Step]:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return [
        Step(text, tuple(after.splitlines()) if language_after == "text" else ())
        for (language, text), (language_after, after) in pairwise([*blocks, ("end", "")])
        if language == "bash"
    ]


def test_every_block_of_the_tutorial_is_commands_or_what_they_print() -> None:
    languages = re.findall(r"^```(\w+)$", PAGE, flags=re.MULTILINE)
    assert set(languages) == {"bash", "text"}
    assert all(after == "bash" for before, after in pairwise(languages) if before == "text")


@pytest.mark.slow
def test_the_tutorial_prints_what_it_shows(control_plane_binaries: Binaries) -> None:
    script = "".join(f"{step.commands}\necho '{END}'\n" for step in steps())
    with TemporaryDirectory() as home:
        session = _type_in(script, Path(home), kubectl=control_plane_binaries.kubectl)
        left_behind = (Path(home) / "podtide-tutorial").exists()
    assert session.status == 0, session.printed
    assert not left_behind
    *printed, rest = session.printed.split(f"{END}\n")
    assert rest == ""
    for step, lines in zip(steps(), printed, strict=True):
        left = iter(lines.splitlines())
        for shown in step.shown:
            if shown == "…":
                continue  # the page leaves lines out here
            pattern = ".*".join(re.escape(part.rstrip()) for part in shown.split("…"))
            assert any(re.match(pattern, line) for line in left), f"{shown!r} is not printed:\n{lines}"


class Session(Struct, frozen=True):
    """How a shell ended, and all that it and its programs printed."""

    status: int
    printed: str


def _type_in(script: str, home: Path, *, kubectl: Path) -> Session:
    """Run the script in a shell, at ports that are free; programs that it leaves running are ended."""
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    file = home / "typed.sh"
    file.write_text(_replaced(script, ports))
    process = subprocess.Popen(
        ["/bin/bash", file],
        env={
            "PATH": f"{Path(sys.executable).parent}:{kubectl.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=LONGEST_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return Session(process.returncode, _replaced(printed, {free: written for written, free in ports.items()}))


def _replaced(text: str, ports: dict[str, str]) -> str:
    for before, after in ports.items():
        text = text.replace(f":{before}", f":{after}")
    return text
