"""A PostgreSQL for tests: ask for the fixture `postgresql_url`. Every worker of pytest-xdist starts its own.

Where there is none, such tests are left out: see left_out.py.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from left_out import leave_out
from postgresql_server import NoPostgresql, PostgresqlServer


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """The URL of a database that this worker has to itself, with whatever tests before have left in it."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(PostgresqlServer())
        except NoPostgresql as reason:
            leave_out("PostgreSQL", reason)
        yield server.url


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A quick run makes do with SQLite. Some ask for the fixture by a parameter, so the name is what tells."""
    for item in items:
        if "postgresql" in item.nodeid.lower():
            item.add_marker("slow")
