"""Every test that asks for `database` runs on each of them."""

from pathlib import Path

import pytest

from allocator.store.databases import DatabaseUnderTest


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseUnderTest:
    """A database to open allocators on; threads and sockets live on the machine's own clock."""
    request.node.add_marker("real_time")
    if request.param == "postgresql":
        return DatabaseUnderTest(request.getfixturevalue("postgresql_url"))
    return DatabaseUnderTest(f"sqlite:///{tmp_path}/allocator.db")
