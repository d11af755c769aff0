"""The chart's Helm, and podtide's rights as the chart installs them on a real API server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from deploy.chart import Chart
from deploy.installed import Installed, connected
from deploy.prometheus_operator_kinds import define_prometheus_operator_kinds
from deploy.two_nodes import clear, make
from helm_binary import helm
from left_out import leave_out
from podtide.cluster.kubernetes import KubernetesCluster
from prometheus_programs import PrometheusPrograms, prometheus_programs


@pytest.fixture(scope="session")
def chart(pytestconfig: pytest.Config) -> Chart:
    """The chart, rendered by the Helm that is pinned, which is built if it is not there."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # building takes minutes: let its progress be seen
            return Chart(helm())
    except CannotBuild as reason:
        leave_out("Helm", reason)


@pytest.fixture(scope="session")
def prometheus() -> PrometheusPrograms:
    """Debian's Prometheus and promtool, fetched if they are not there."""
    try:
        return prometheus_programs()
    except CannotBuild as reason:
        leave_out("Prometheus", reason)


@pytest.fixture(scope="session")
def installed(
    chart: Chart, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """All that the chart makes, applied to the control plane, and what the roles in it may do in force."""
    with Installed(control_plane, chart.rendered(), tmp_path_factory.mktemp("kubeconfigs")) as installation:
        yield installation


@pytest.fixture(scope="module")
def two_nodes(installed: Installed) -> Iterator[Installed]:
    """What is forbidden changes nothing, and what is allowed is in nobody's way: one set of objects serves a module."""

    async def as_admin(work: Callable[[KubernetesCluster], Awaitable[None]]) -> None:
        async with connected(installed.control_plane.kubeconfig) as admin:
            await work(admin)

    asyncio.run(as_admin(make))
    yield installed
    asyncio.run(as_admin(clear))


@pytest.fixture(scope="module")
def untouched(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane of its own that knows all kinds, the Prometheus operator's too, and has nothing of podtide yet.

    What is applied where something was before is merged with that, and says little about what is applied.
    """
    with ControlPlane(control_plane_binaries) as control_plane:
        define_prometheus_operator_kinds(control_plane)
        yield control_plane


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Helm or Prometheus may have to wait for it to be built or fetched."""
    for item in items:
        if {"chart", "prometheus"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
