"""Completion as a person meets it: the script in the shell itself, the key pressed, and what the shell then offers."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from left_out import leave_out
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": "/nowhere", "TERM": "dumb"}
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(podtide completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(podtide completion zsh)"),
}


def found(program: str) -> str:
    """Its path. Without it the test is left out."""
    path = shutil.which(program)
    if path is None:
        leave_out("completion in real shells", f"{program} is not on this machine")
    return path


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, shell: str) -> None:
        command, setup = START[shell]
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execvpe(command[0], command, ENVIRONMENT)  # noqa: S606 - in the child: the shell under test
        self.press(f"{setup}; echo REA''DY\n", ["READY\r\n"])

    def press(self, keys: str, until: list[str]) -> str:
        """What the terminal shows after these keys, read until it has all of these words."""
        os.write(self._terminal, keys.encode())
        shown, deadline = "", time.monotonic() + PATIENCE_SECONDS
        while not all(each in shown for each in until):
            assert time.monotonic() < deadline, shown
            if select.select([self._terminal], [], [], 1.0)[0]:
                shown += os.read(self._terminal, 4096).decode(errors="replace")
        return shown

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)


@pytest.mark.parametrize("shell", sorted(START))
def test_the_key_completes_what_is_plain_and_offers_what_is_not(shell: str) -> None:
    found(shell)
    terminal = Terminal(shell)
    try:
        terminal.press("podtide su\t\t", ["subnet", "support-bundle"])
        terminal.press("\x15podtide subnet li\t", ["podtide subnet list "])
        terminal.press("\x15podtide subnet list -o \t\t", ["table", "wide", "json", "yaml", "name"])
        terminal.press("\x15podtide simulate --scenario give-b\t", ["--scenario give-back"])
    finally:
        terminal.close()


def test_fish_shows_whole_sentences_beside_what_it_offers() -> None:
    asked = ["podtide su", "podtide subnet list -o ", "podtide simulate --scenario give-b"]
    lines = "; ".join(f'complete -C "{each}"' for each in asked)
    answer = subprocess.run(
        [found("fish"), "--no-config", "-c", f"podtide completion fish | source; {lines}"],
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
        text=True,
    )
    offered = answer.stdout.splitlines()
    assert "subnet\tAdd, list, show, grow, shrink and remove subnets, and see how they were used." in offered
    assert {"table", "wide", "json", "yaml", "name", "give-back"} <= set(offered)


def test_kubectl_completes_the_plugin() -> None:
    kubectl = found("kubectl")

    def asked(*words: str) -> list[str]:
        answer = subprocess.run(
            [kubectl, "__complete", "podtide", *words],
            env=ENVIRONMENT,
            capture_output=True,
            check=True,
            text=True,
        )
        return [line for line in answer.stdout.splitlines() if not line.startswith("Completion ended")]

    commands, directive = asked("su")[:-1], asked("su")[-1]
    assert [each.partition("\t")[0] for each in commands] == ["subnet", "support-bundle"]
    assert directive == ":4"
    assert asked("subnet", "list", "-o", "")[:-1] == ["table", "wide", "json", "yaml", "name"]
    assert asked("simulate", "--plan", "") == [":0"], "files are the shell's to offer"
