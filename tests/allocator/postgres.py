"""A PostgreSQL for tests: ask for the fixture `postgresql_url`. Every worker of pytest-xdist starts its own.

Where there is none, such tests are skipped, and a paragraph at the end of the run says so, because silence would look like
success. In CI it is a failure.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from postgresql_server import NoPostgresql, PostgresqlServer

NOT_RUN = "no PostgreSQL to run on: "


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """The URL of a database that this worker has to itself, with whatever tests before have left in it."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(PostgresqlServer())
        except NoPostgresql as reason:
            if os.environ.get("CI", "false") not in {"", "false", "0"}:
                pytest.fail(f"{NOT_RUN}{reason}", pytrace=False)
            pytest.skip(f"{NOT_RUN}{reason}")
        yield server.url


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last, where it is seen, what was not run and what would let it run."""
    yield
    reasons = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, count in Counter(reason for reason in reasons if NOT_RUN in reason).items():
        terminalreporter.section("NOT RUN on PostgreSQL", red=True, bold=True)
        terminalreporter.line(f"Skipped: {count}. There is {reason.removeprefix('Skipped: ')}.")
