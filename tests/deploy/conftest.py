"""The chart's Helm, and podtide's rights as the chart installs them on a real API server."""

from collections.abc import Iterator

import pytest

from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from deploy.chart import Chart
from deploy.installed import Installed
from helm_binary import helm
from left_out import leave_out


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
def installed(
    chart: Chart, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """All that the chart makes, applied to the control plane, and what the roles in it may do in force."""
    with Installed(control_plane, chart.rendered(), tmp_path_factory.mktemp("kubeconfigs")) as installation:
        yield installation


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Helm may have to wait for it to be built."""
    for item in items:
        if "chart" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
