"""`podtide plan replay` on a terminal: bars while it runs, and a real Ctrl-C, which the terminal sends to all processes."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic

import pytest

from patience import PATIENCE_SECONDS
from podtide.simulation.replay.figures import ReplayOutcome
from podtide.simulation.replay.processes import Progress, ReplayRun, replay_all

CTRL_C = b"\x03"
LONG = "\n".join(["hour,pods", *(f"{hour},9" for hour in range(5000))])
"""Half a year without a change: it takes much longer to replay than this test."""


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self._screen = screen
        self.shown = ""

    def until(self, pattern: str) -> str:
        """What is shown, once it has this."""
        limit = monotonic() + PATIENCE_SECONDS
        while not re.search(pattern, self.shown):
            assert monotonic() < limit, self.shown
            if not self._read(1.0) and self.process.poll() is not None:
                break
        assert re.search(pattern, self.shown), self.shown
        return self.shown

    def press(self, keys: bytes) -> None:
        """Type them."""
        os.write(self._screen, keys)

    def end(self) -> int:
        """The exit status of the program; all that it showed is in `shown`."""
        limit = monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            assert monotonic() < limit, self.shown
            self._read(0.05)
        while self._read(0.05):
            pass
        return self.process.wait()

    def _read(self, seconds: float) -> bool:
        if not select([self._screen], [], [], seconds)[0]:
            return False
        try:
            self.shown += os.read(self._screen, 65_536).decode()
        except OSError:  # nothing has the terminal open any more
            return False
        return True


@contextmanager
def on_a_terminal(*arguments: str) -> Iterator[Terminal]:
    screen, its_end = pty.openpty()
    termios.tcsetwinsize(its_end, (24, 100))

    def take_terminal() -> None:
        fcntl.ioctl(its_end, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "podtide", "plan", "replay", *arguments],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        env={"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - this test has no threads
    )
    os.close(its_end)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def processes_of(session: int) -> dict[Path, str]:
    """The command lines of processes that are in the session and not yet gone, by their place in /proc."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, its_session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found[place] = (place / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def never_sees_ctrl_c(process: Path) -> bool:
    """Whether SIGINT is blocked in it."""
    blocked = re.search(r"^SigBlk:\s*([0-9a-f]+)$", (process / "status").read_text(), re.MULTILINE)
    assert blocked
    return bool(int(blocked[1], 16) & 1 << (signal.SIGINT - 1))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_all_processes_and_says_what_is_lost(tmp_path: Path, jobs: str) -> None:
    trace = tmp_path / "weeks.csv"
    trace.write_text(LONG)
    with on_a_terminal(
        *("--trace", str(trace), "--strategy", "fixed", "--strategy", "adaptive", "--speed", "1"),
        *("--jobs", jobs),
    ) as terminal:
        terminal.until(r"fixed, batch 16 .*0:00:0[1-9]")
        if jobs == "1":
            assert re.search(r"adaptive, batch 16 .*-:--:--.*-:--:--", terminal.shown), "its clock stands"
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert terminal.shown.endswith(
            "podtide: interrupted: 0 of 2 runs were finished; the others are lost\r\n"
        )
        assert "Traceback" not in terminal.shown
        assert processes_of(terminal.process.pid) == {}


def test_ctrl_c_reaches_the_command_and_none_of_the_processes_it_started(tmp_path: Path) -> None:
    """Else one that ends by it, with a traceback, may be heard of before the command itself is interrupted."""
    trace = tmp_path / "weeks.csv"
    trace.write_text(LONG)
    with on_a_terminal("--trace", str(trace), "--batch", "8", "--batch", "16", "--jobs", "2") as terminal:
        terminal.until(r"batch 8 .*0:00:0[1-9]")
        runs = [place for place, words in processes_of(terminal.process.pid).items() if "spawn_main" in words]
        assert [never_sees_ctrl_c(each) for each in runs] == [True, True]
        assert not never_sees_ctrl_c(Path(f"/proc/{terminal.process.pid}"))


def test_bars_are_gone_when_the_table_is_shown(tmp_path: Path) -> None:
    trace = tmp_path / "pods.csv"
    trace.write_text("second,pods\n0,2\n30,9\n60,4\n")
    with on_a_terminal("--trace", str(trace), "--strategy", "fixed") as terminal:
        assert terminal.end() == 0
    before, _, after = terminal.shown.partition("pods.csv: 3 rows")
    assert re.search(r"fixed, batch 16 .*100 %", before)
    assert before.endswith("\x1b[2K"), "the bar's line is empty again"
    assert "━" not in after


def test_runs_that_were_finished_are_shown_and_written_after_an_interrupt(
    podtide: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, raw = tmp_path / "pods.csv", tmp_path / "raw.csv"
    trace.write_text("second,pods\n0,2\n30,9\n60,4\n")

    def interrupted(runs: list[ReplayRun], jobs: int, progress: Progress) -> list[ReplayOutcome]:
        def note(run: ReplayRun, part: float) -> None:
            if run.strategy == "adaptive":
                raise KeyboardInterrupt
            progress(run, part)

        return replay_all(runs, jobs, note)

    monkeypatch.setattr("podtide.cli.plan.replay.command.replay_all", interrupted)
    status, out, err = podtide(
        "plan", "replay", "--trace", str(trace), "--raw", str(raw), "--jobs", "1", "-o", "csv"
    )
    assert status == 130
    assert [row.split(",")[0] for row in out.splitlines()[1:]] == ["reactive", "fixed"]
    assert {row.split(",")[0] for row in raw.read_text().splitlines()[1:]} == {"reactive", "fixed"}
    assert err.splitlines()[-1] == "podtide: interrupted: 2 of 3 runs were finished; the others are lost"
