"""What tests on a real control plane share."""

import uuid

import pytest

from control_plane.cluster import ControlPlane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A namespace for one test: the control plane is shared."""
    name = f"real-{uuid.uuid4().hex[:8]}"
    control_plane.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name
