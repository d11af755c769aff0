"""What the agent puts on its node: when, in which order, and what it leaves alone."""

import asyncio
import io
import os
from pathlib import Path

import pytest

from left_out import leave_out
from podtide.agent.cni_installation import (
    CONFLIST,
    ForeignFile,
    Installation,
    RuntimeDirectories,
    install,
    keep_installed,
    read_plugin,
    uninstall,
)
from podtide.cni.conflist import PrimaryNetwork, render_conflist
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import DiskFull
from podtide.runtime.logging import Logger, make_logger

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "plugin" / "podtide.py"
BINARY = ROOT / "plugin" / "target" / "release" / "podtide"
FOREIGN = b"another program"
NETWORK = PrimaryNetwork()


class Node:
    """The two directories of a node, and what is to be installed there."""

    def __init__(self, directory: Path) -> None:
        self.plugins, self.networks = directory / "bin", directory / "net.d"
        self.where = RuntimeDirectories(plugins=self.plugins, networks=self.networks)
        self.plugin = self.plugins / "podtide"
        self.for_whereabouts = self.plugins / "whereabouts"
        self.conflist = self.networks / CONFLIST
        for place in (self.plugins, self.networks):
            place.mkdir()

    def wanted(self, *, network: PrimaryNetwork = NETWORK, for_whereabouts: bool = False) -> Installation:
        return Installation(where=self.where, plugin=SCRIPT, network=network, for_whereabouts=for_whereabouts)

    def files(self) -> set[Path]:
        return {*self.plugins.iterdir(), *self.networks.iterdir()}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(said: io.StringIO) -> Logger:
    return make_logger(said, SystemClock())


def test_the_plugin_comes_first_and_the_network_last(node: Node) -> None:
    assert install(node.wanted(for_whereabouts=True)) == [node.plugin, node.for_whereabouts, node.conflist]
    assert node.plugin.read_bytes() == node.for_whereabouts.read_bytes() == SCRIPT.read_bytes()
    assert node.conflist.read_bytes() == render_conflist(NETWORK)
    assert os.access(node.plugin, os.X_OK)
    assert node.conflist.stat().st_mode & 0o777 == 0o644
    assert node.files() == {node.plugin, node.for_whereabouts, node.conflist}, "nothing else is left there"


def test_where_the_primary_network_is_anothers_there_is_the_plugin_alone(node: Node) -> None:
    where = RuntimeDirectories(plugins=node.plugins, networks=None)
    wanted = Installation(where=where, plugin=SCRIPT, network=NETWORK, for_whereabouts=True)
    assert install(wanted) == [node.plugin, node.for_whereabouts]
    assert list(uninstall(where)) == [node.for_whereabouts, node.plugin]


@pytest.mark.parametrize("plugin", [SCRIPT, BINARY], ids=["the script", "the executable in Rust"])
def test_either_plugin_is_known_for_ours(plugin: Path) -> None:
    if plugin is BINARY and not plugin.exists():
        leave_out("plugin in Rust", "run `make plugin`")
    assert read_plugin(plugin) == plugin.read_bytes()


def test_what_is_in_place_is_not_written_again(node: Node) -> None:
    install(node.wanted())
    before = {path: path.stat().st_ino for path in node.files()}
    assert install(node.wanted()) == []
    assert {path: path.stat().st_ino for path in node.files()} == before


def test_an_older_plugin_and_an_older_network_are_replaced(node: Node) -> None:
    install(node.wanted(network=PrimaryNetwork(mtu=1400)))
    node.plugin.write_bytes(SCRIPT.read_bytes() + b"\n# of the last release\n")
    assert install(node.wanted()) == [node.plugin, node.conflist]
    assert node.plugin.read_bytes() == SCRIPT.read_bytes()
    assert node.conflist.read_bytes() == render_conflist(NETWORK)


def test_a_file_appears_by_a_rename_and_never_half_written(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(node.wanted())
    old = node.plugin.read_bytes(), node.conflist.read_bytes()
    (node.plugins / "podtide").write_bytes(old[0] + b"\n# older\n")

    def power_goes(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", power_goes)
    with pytest.raises(DiskFull):
        install(node.wanted(network=PrimaryNetwork(mtu=1400)))
    assert node.plugin.read_bytes() == old[0] + b"\n# older\n"
    assert node.conflist.read_bytes() == old[1], "without its plugin, no new network"
    assert node.files() == {node.plugin, node.conflist}


@pytest.mark.parametrize("name", ["podtide", "whereabouts"])
def test_another_programs_plugin_stays_and_there_is_no_network(node: Node, name: str) -> None:
    theirs = node.plugins / name
    theirs.write_bytes(FOREIGN)
    with pytest.raises(ForeignFile, match=f"{theirs} is another program's"):
        install(node.wanted(for_whereabouts=True))
    assert theirs.read_bytes() == FOREIGN
    assert not node.conflist.exists()


def test_another_programs_network_stays(node: Node) -> None:
    node.conflist.write_bytes(FOREIGN)
    with pytest.raises(ForeignFile, match=CONFLIST):
        install(node.wanted())
    assert node.conflist.read_bytes() == FOREIGN


def test_whereabouts_own_plugin_is_no_obstacle_to_who_does_not_ask_for_its_name(node: Node) -> None:
    node.for_whereabouts.write_bytes(FOREIGN)
    install(node.wanted())
    assert node.for_whereabouts.read_bytes() == FOREIGN


def test_the_network_is_taken_away_first_and_the_plugin_last(node: Node) -> None:
    install(node.wanted(for_whereabouts=True))
    going = uninstall(node.where)
    assert next(going) == node.conflist
    assert node.files() == {node.plugin, node.for_whereabouts}
    assert list(going) == [node.for_whereabouts, node.plugin]
    assert node.files() == set()


def test_what_is_anothers_is_not_taken_away(node: Node) -> None:
    others = (node.conflist, node.plugin, node.for_whereabouts, node.networks / "05-other.conflist")
    for path in others:
        path.write_bytes(FOREIGN)
    assert list(uninstall(node.where)) == []
    assert node.files() == set(others)


def test_there_is_nothing_to_take_from_directories_that_are_not_there(tmp_path: Path) -> None:
    nowhere = RuntimeDirectories(plugins=tmp_path / "a", networks=tmp_path / "b")
    assert list(uninstall(nowhere)) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read"), (FOREIGN, "is not podtide's plugin")]
)
def test_what_is_no_plugin_is_not_installed(
    node: Node, tmp_path: Path, content: bytes | None, words: str
) -> None:
    plugin = tmp_path / "plugin"
    if content:
        plugin.write_bytes(content)
    with pytest.raises(InvalidInput, match=words):
        install(Installation(where=node.where, plugin=plugin, network=NETWORK))


async def soon(holds: "asyncio.Task[object]", seconds: float = 0.0) -> None:
    """Let the task go on."""
    await asyncio.sleep(seconds)
    assert not holds.done()


async def test_nothing_is_installed_before_the_agent_is_ready(node: Node, log: Logger) -> None:
    ready = asyncio.Event()
    keeping = asyncio.create_task(keep_installed(node.wanted(), ready, log))
    await soon(keeping, 3600)
    assert node.files() == set()
    ready.set()
    await soon(keeping, 1)
    assert node.files() == {node.plugin, node.conflist}
    keeping.cancel()


async def test_what_somebody_takes_away_is_put_back(node: Node, log: Logger) -> None:
    ready = asyncio.Event()
    ready.set()
    keeping = asyncio.create_task(keep_installed(node.wanted(), ready, log))
    await soon(keeping, 1)
    node.conflist.unlink()
    await soon(keeping, 60)
    assert node.conflist.exists()
    keeping.cancel()


async def test_an_obstacle_is_told_once_and_installed_over_when_it_is_gone(
    node: Node, said: io.StringIO, log: Logger
) -> None:
    node.conflist.write_bytes(FOREIGN)
    ready = asyncio.Event()
    ready.set()
    keeping = asyncio.create_task(keep_installed(node.wanted(), ready, log))
    await soon(keeping, 3600)
    assert said.getvalue().count("another program's") == 1
    node.conflist.unlink()
    await soon(keeping, 60)
    assert node.conflist.exists()
    keeping.cancel()


def test_a_file_is_removed_for_good_or_was_not_there(tmp_path: Path) -> None:
    disk = DirectoryDisk(tmp_path)
    disk.replace("file", b"content", mode=0o640)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    disk.remove("file")
    disk.remove("file")
    assert disk.read("file") is None
