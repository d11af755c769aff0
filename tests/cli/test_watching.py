"""`--watch` prints an answer again when it has changed, and ends by a signal."""

import asyncio
import os
import signal

import pytest

from podtide.cli.output.watching import Watching, print_answer
from podtide.core.errors import RetryError


def watch(answers: list[str | Exception], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What is printed while the answers come one by one; at the last the watch is interrupted."""
    left = list(answers)

    async def produce() -> str:
        await asyncio.sleep(0)
        answer = left.pop(0)
        if not left:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        if isinstance(answer, Exception):
            raise answer
        return answer

    print_answer(produce, Watching(0.001))
    out, err = capsys.readouterr()
    return out, err


def test_only_what_has_changed_is_printed_to_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert watch(["1\n", "1\n", "2\n", "2\n", "1\n"], capsys) == ("1\n2\n1\n", "")


def test_a_terminal_is_redrawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert watch(["1\n", "2\n"], capsys)[0] == "\x1b[H\x1b[2J1\n\x1b[H\x1b[2J2\n"


def test_what_fails_for_a_moment_is_a_warning_and_the_watch_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, err = watch(["1\n", RetryError("no answer"), "2\n"], capsys)
    assert (out, err) == ("1\n2\n", "podtide: warning: as of before: no answer\n")


def test_what_fails_at_first_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RetryError, match="no answer"):
        watch([RetryError("no answer"), "2\n"], capsys)
