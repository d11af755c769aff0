"""What end-to-end tests run on. Whatever a machine lacks of it is said at the end of the run: see left_out.py."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_programs import WHEREABOUTS, say_on_stderr
from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import find_go
from control_plane.process import Nursery
from e2e.cni import INTERFACE_PLUGINS
from e2e.networks import FLAT, LOCAL, define
from e2e.pools import names
from e2e.programs import Site, allocator, controller
from e2e.virtual_nodes import VirtualCluster, joined_nodes
from e2e.waiting import wait_until
from e2e.whereabouts import SideBySide
from go_program import GoProgram, executable, source_directory
from left_out import leave_out
from namespaces.namespace import lacking
from plugin.executables import NoRust, build

NODES = ("node-a", "node-b", "node-c")


@pytest.fixture(scope="module")
def own_control_plane(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane for the tests of one file: podtide's controller takes every Node that it finds."""
    with ControlPlane(control_plane_binaries) as running:
        yield running


@pytest.fixture(scope="session")
def plugin() -> Path:
    """The plugin in Rust, which is what nodes run."""
    try:
        return build()
    except NoRust as reason:
        leave_out("plugin in Rust", reason)


@pytest.fixture(scope="session")
def cni_program(pytestconfig: pytest.Config) -> Callable[[GoProgram], Path]:
    """Has somebody else's program built, if it is not there."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def built(program: GoProgram) -> Path:
        try:
            with capture.global_and_fixture_disabled():  # building takes minutes: let its progress be seen
                return executable(program, say_on_stderr, find_go)
        except CannotBuild as reason:
            leave_out(program.name, reason)

    return built


@pytest.fixture(scope="session")
def _namespaces() -> None:
    """Asked for by what needs namespaces, and interfaces in them."""
    if lack := lacking():
        leave_out("network namespaces", lack)
    if not (INTERFACE_PLUGINS / "ptp").exists():
        leave_out("CNI plugins", "install them (Debian: apt-get install containernetworking-plugins)")


@pytest.fixture(scope="module")
def site(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A place for programs on that control plane. Their logs outlive them."""
    nursery = Nursery()
    yield Site(own_control_plane, nursery, tmp_path_factory.mktemp("logs"))
    nursery.close()


@pytest.fixture(scope="module")
def virtual_cluster(_namespaces: None, site: Site, plugin: Path) -> Iterator[VirtualCluster]:
    """A controller, an allocator, and three nodes that are ready for pods."""
    for network in (FLAT, LOCAL):
        define(site.control_plane, network)
    with (
        allocator(site, "10.1.0.0/24") as url,
        controller(site, url),
        joined_nodes(site, plugin, NODES) as started,
    ):
        pools = {f"{network['name']}-{node}" for network in (FLAT, LOCAL) for node in NODES}
        wait_until(lambda: pools <= names(site.control_plane, "ippools"), "a slice for every node")
        wait_until(lambda: all(node.has_network for node in started.nodes), "a network on every node")
        yield started


@pytest.fixture(scope="module")
def side_by_side(site: Site, plugin: Path, cni_program: Callable[[GoProgram], Path]) -> SideBySide:
    """Both plugins, podtide's and Whereabouts', for the same networks."""
    return SideBySide.made(site, plugin, cni_program(WHEREABOUTS))


@pytest.fixture(scope="session")
def whereabouts_source() -> Path:
    """What else there is in Whereabouts' module than programs."""
    try:
        return source_directory(WHEREABOUTS, say_on_stderr, find_go)
    except CannotBuild as reason:
        leave_out(WHEREABOUTS.name, reason)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it is slow."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("slow")
