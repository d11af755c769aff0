from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (ControlPlane.start_controllers, "kube-controller-manager"),
        (ControlPlane.start_scheduler, "kube-scheduler"),
    ],
)
def test_a_program_that_is_lacking_is_named_when_it_is_asked_for(
    tmp_path: Path, start: Callable[[ControlPlane], None], name: str
) -> None:
    control_plane = ControlPlane(
        Binaries(
            etcd=tmp_path / "etcd",
            kube_apiserver=tmp_path / "kube-apiserver",
            kubectl=tmp_path / "kubectl",
            kube_controller_manager=None,
            kube_scheduler=None,
            kubelet=None,
            kube_proxy=None,
        )
    )
    try:
        with pytest.raises(CannotBuild, match=rf"^KUBEBUILDER_ASSETS lacks {name}: "):
            start(control_plane)
    finally:
        control_plane.close()
