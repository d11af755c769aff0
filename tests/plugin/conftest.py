"""Both executables, and directories short enough for a socket's path."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from left_out import leave_out
from plugin.executables import SCRIPT, NoRust, Plugin, build


@pytest.fixture(scope="session", name="rust_executable")
def built_once() -> Path:
    """The plugin in Rust."""
    try:
        return build()
    except NoRust as reason:
        leave_out("plugin in Rust", reason)


@pytest.fixture(params=["rust", "script"])
def executable(request: pytest.FixtureRequest) -> Path:
    """One executable after the other."""
    rust: Path = request.getfixturevalue("rust_executable") if request.param == "rust" else SCRIPT
    return rust


@pytest.fixture
def directory() -> Iterator[Path]:
    """The directory that the agent's socket is in. pytest's own can be too long for a socket's path."""
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def plugin(executable: Path, directory: Path) -> Plugin:
    """A plugin whose agent is not there yet."""
    return Plugin(executable, directory / "agent.sock")
