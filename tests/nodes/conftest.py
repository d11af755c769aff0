"""Real nodes for tests: a cluster with kubelets, and podtide on it as Helm installs it.

Each file has a cluster of its own, as its `CLUSTER` says. One worker runs them all, one after the other: two clusters of
kubelets at once are more than two cores take.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.binaries import Binaries
from control_plane.errors import CannotBuild
from left_out import leave_out
from node_bench.cluster import ClusterSpec, NodeCluster, Parts, node_cluster
from node_bench.programs import say_on_stderr


@pytest.fixture(scope="session")
def parts(control_plane_binaries: Binaries, pytestconfig: pytest.Config) -> Parts:  # noqa: ARG001 - says what is missing of these first
    """All programs and images, built if they are not there."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # building takes minutes: let its progress be seen
            return Parts.built(say_on_stderr)
    except CannotBuild as reason:
        leave_out("real nodes", reason)


@pytest.fixture(scope="module")
def cluster(
    parts: Parts, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeCluster]:
    """The file's cluster."""
    spec: ClusterSpec = request.module.CLUSTER
    with node_cluster(parts, tmp_path_factory.mktemp("operator"), spec) as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it is slow, and one worker's; pytest-xdist begins with what has many tests in one group."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("slow")
            item.add_marker(pytest.mark.xdist_group("real-nodes"))
