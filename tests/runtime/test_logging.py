import asyncio
import io
import json
import logging
import os
import pty
import warnings
from fractions import Fraction
from typing import Any

import pytest

from podtide.core.errors import InvalidInput
from podtide.core.subnet.exhaustion import Thresholds
from podtide.runtime.clock import LoopClock, SystemClock
from podtide.runtime.logging import capture_standard_logging, make_logger


class Lines(io.StringIO):
    """A stream that is no terminal."""

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


async def test_a_log_line_is_json_with_the_time_of_the_given_clock() -> None:
    lines = Lines()
    log = make_logger(lines, LoopClock(epoch=0.0)).bind(node="a")
    await asyncio.sleep(90.5)
    log.info("granted", addresses=16, free=Fraction(1, 2), thresholds=Thresholds())
    assert lines.records() == [
        {
            "at": "1970-01-01T00:01:30.500Z",
            "node": "a",
            "addresses": 16,
            "free": "1/2",
            "thresholds": {"lower": "4/5", "upper": "9/10"},
            "event": "granted",
            "level": "info",
        }
    ]


def test_what_is_below_the_level_is_not_written() -> None:
    lines = Lines()
    log = make_logger(lines, SystemClock(), level="warning")
    log.info("quiet")
    log.warning("loud")
    assert [record["event"] for record in lines.records()] == ["loud"]


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        InvalidInput, match=r"^log level 'loud' is unknown: give one of debug, info, warning, error$"
    ):
        make_logger(Lines(), SystemClock(), level="loud")


def test_an_error_carries_its_traceback_on_one_line() -> None:
    lines = Lines()
    try:
        int("seven")
    except ValueError:
        make_logger(lines, SystemClock()).exception("reconciling failed")
    [record] = lines.records()
    assert record["level"] == "error"
    assert record["exception"].startswith("Traceback")
    assert record["exception"].endswith("with base 10: 'seven'")


@pytest.mark.parametrize(
    "odd", [{1: "key"}, "half a pair \udc80", {("a", "b"): 1}, object(), {1, 2}, float("nan")]
)
def test_a_log_line_never_fails_whatever_is_logged(odd: object) -> None:
    lines = Lines()
    make_logger(lines, SystemClock()).info("odd", value=odd)
    [record] = lines.records()
    assert "odd" in record["event"]
    assert "value" in record


def test_a_terminal_gets_lines_for_people() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours) as screen:
        make_logger(terminal, SystemClock()).info("granted", node="a")
        line = screen.readline()
    assert "granted" in line
    assert not line.startswith("{")


def test_a_log_that_cannot_be_written_does_not_break_the_library_that_logs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines()
    capture_standard_logging(make_logger(lines, SystemClock()))
    lines.close()
    logging.getLogger("asyncio").error("task %s was lost", "seven")
    assert "I/O operation on closed file" in capsys.readouterr().err


def test_what_libraries_say_is_logged_too() -> None:
    lines = Lines()
    capture_standard_logging(make_logger(lines, SystemClock()))
    logging.getLogger("asyncio").error("task %s was lost", "seven")
    logging.getLogger("asyncio").info("not worth a line")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    first, second = lines.records()
    assert (first["event"], first["library"], first["level"]) == ("task seven was lost", "asyncio", "error")
    assert second["library"] == "py.warnings"
