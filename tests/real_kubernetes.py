"""A real control plane for tests: ask for the fixture `control_plane`, or mark the test `real_kubernetes`.

Where there is none and none can be built, such tests are left out: see left_out.py.

Each worker of pytest-xdist starts its own when a test there first asks for it. One for all would be disturbed by the
tests that kill the API server or make etcd forget its history. So that a machine with many cores does not start one per
core, these tests are put in two groups, each of which one worker takes as a whole (`--dist loadgroup`).
"""

from collections.abc import Generator, Iterator

import pytest
from msgspec import structs

from control_plane.binaries import Binaries, binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from control_plane.versions import RELEASE
from left_out import leave_out
from podtide.cluster.port import Cluster, Conflict, NotFound
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig

RUNNING = pytest.StashKey[ControlPlane]()

NEEDS_MUTATING_POLICY = pytest.mark.skipif(
    RELEASE == "1.32", reason="Kubernetes 1.32 has no MutatingAdmissionPolicy"
)
"""For tests in which pods request addresses by themselves."""


@pytest.fixture(scope="session")
def control_plane_binaries(pytestconfig: pytest.Config) -> Binaries:
    """The programs of a control plane, built if they are not there."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # building takes minutes: let its progress be seen
            return binaries()
    except CannotBuild as reason:
        leave_out("real Kubernetes", reason)


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: Binaries, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A control plane with podtide's CRDs. Tests share it, one after the other: take a namespace of your own."""
    with ControlPlane(control_plane_binaries) as running:
        pytestconfig.stash[RUNNING] = running
        yield running
        del pytestconfig.stash[RUNNING]


@pytest.fixture(scope="session")
def controllers(control_plane: ControlPlane) -> ControlPlane:
    """The same control plane, with the garbage collector and the controllers of namespaces and nodes at work."""
    try:
        control_plane.start_controllers()
    except CannotBuild as reason:
        leave_out("real Kubernetes", reason)
    return control_plane


@pytest.fixture
def scheduler(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The same control plane, with the scheduler at work for one test: others want their pods left unbound."""
    try:
        control_plane.start_scheduler()
    except CannotBuild as reason:
        leave_out("real Kubernetes", reason)
    yield control_plane
    control_plane.stop_scheduler()


async def clear_config(cluster: Cluster, name: str) -> None:
    """Let a NodeNetworkConfig go without its finalizer, while the garbage collector is after it too."""
    while True:
        try:
            config = await cluster.get(NodeNetworkConfig, name, SYSTEM_NAMESPACE)
            freed = structs.replace(config.metadata, finalizers=[])
            await cluster.replace(structs.replace(config, metadata=freed), manager="test")
            await cluster.delete(NodeNetworkConfig, name, SYSTEM_NAMESPACE)
        except Conflict:
            continue
        except NotFound:
            return


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for the fixture, give what is marked the machine's own clock, and deal it out to two groups."""
    files: dict[object, int] = {}
    for item in items:
        if "control_plane_binaries" in getattr(item, "fixturenames", ()):
            item.add_marker("real_kubernetes")
        if item.get_closest_marker("real_kubernetes"):
            item.add_marker("real_time")
            if item.get_closest_marker("xdist_group"):
                continue  # it has chosen its worker
            group = files.setdefault(item.path, len(files)) % 2
            item.add_marker(pytest.mark.xdist_group(f"real-kubernetes-{group}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """A test that killed the API server, or left a node's config behind, and failed, fails alone.

    What is left shows the next file's controller addresses that its allocator never granted: it would take its store for one
    that went back.
    """
    if running := item.config.stash.get(RUNNING, None):
        running.revive()
    yield
    is_last_of_file = nextitem is None or nextitem.path != item.path
    if is_last_of_file and (running := item.config.stash.get(RUNNING, None)):
        _clear_configs(running)
        if _is_of_an_installation(item) and not (nextitem and _is_of_an_installation(nextitem)):
            # An API server that is restarted may not find what a policy refers to, and then denies everything.
            running.kubectl("delete", "validatingadmissionpolicybindings", "--all", "--wait=false")


def _is_of_an_installation(item: pytest.Item) -> bool:
    return item.path.parent.name in {"deploy", "e2e"}


def _clear_configs(control_plane: ControlPlane) -> None:
    here = f"--namespace={SYSTEM_NAMESPACE}"
    left = control_plane.kubectl("get", "nodenetworkconfigs", here, "--output=name").stdout.split()
    for name in left:
        control_plane.kubectl("patch", name, here, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
        control_plane.kubectl("delete", name, here, "--wait=false", "--ignore-not-found")
