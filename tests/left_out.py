"""Tests that need something this machine lacks: they are left out, and nobody can overlook it.

Silence would look like success. So each such test is skipped, and a paragraph at the end of the run says what was not
run and what would let it run. In CI, where everything is to be there, it is a failure.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

import pytest


def leave_out(what: str, reason: object) -> NoReturn:
    """End the test here: there is no such thing to run on, for this reason."""
    sentence = f"no {what} to run on: {reason}"
    if os.environ.get("CI", "false") not in {"", "false", "0"}:
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last, where it is seen, what was not run and what would let it run."""
    yield
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, count in reasons.items():
        if left_out := re.fullmatch(r"Skipped: (no (.+?) to run on: .*)", reason, flags=re.DOTALL):
            terminalreporter.section(f"NOT RUN on {left_out[2]}", red=True, bold=True)
            terminalreporter.line(f"Skipped: {count}. There is {left_out[1]}.")
