"""Pods as the API server has them, bound to a node by the test: there is no scheduler, and no kubelet runs them."""

from control_plane.cluster import ControlPlane
from e2e.cni import POD_NAMESPACE, Document

_PODS = f"/api/v1/namespaces/{POD_NAMESPACE}/pods"


def create(control_plane: ControlPlane, name: str, node: str) -> Document:
    """A pod on the node."""
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "nothing"}]}
    pod: Document = control_plane.admin.request("POST", _PODS, {"metadata": {"name": name}, "spec": spec})
    return pod


def delete(control_plane: ControlPlane, name: str) -> None:
    """The pod is gone at once."""
    control_plane.admin.request("DELETE", f"{_PODS}/{name}", {"gracePeriodSeconds": 0})
