"""The networks that pods of virtual nodes are on, as a runtime hands them to plugins."""

import json

from control_plane.cluster import ControlPlane
from e2e.cni import POD_NAMESPACE, Document
from e2e.virtual_nodes import UPLINK

_DEFINITIONS = f"/apis/k8s.cni.cncf.io/v1/namespaces/{POD_NAMESPACE}/network-attachment-definitions"


def sliced(name: str, range_: str, **interface: object) -> Document:
    """A secondary network, of which each node has a slice."""
    ipam = {"type": "podtide", "network_name": name, "range": range_, "node_slice_size": "/24"}
    return {"cniVersion": "1.0.0", "name": name, **interface, "ipam": ipam}


PRIMARY: Document = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "type": "ptp",
    "ipam": {"type": "podtide", "routes": [{"dst": "0.0.0.0/0"}]},
}
"""A link of its own to the node for each pod, with an address of the node's pool."""

FLAT = sliced("flat", "10.20.0.0/16", type="macvlan", master=UPLINK)
"""On the nodes' own wire: pods of all nodes are neighbours."""

LOCAL = sliced("local", "10.21.0.0/16", type="bridge", bridge="local0")
"""On a bridge that no other node is on."""


def define(control_plane: ControlPlane, network: Document) -> None:
    """Let the cluster know of a secondary network, as users of Multus do."""
    definition = {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": network["name"]},
        "spec": {"config": json.dumps(network)},
    }
    control_plane.admin.request("POST", _DEFINITIONS, definition)


def defined(control_plane: ControlPlane, name: str) -> Document:
    """The network as the cluster knows it now."""
    definition = control_plane.admin.request("GET", f"{_DEFINITIONS}/{name}")
    network: Document = json.loads(definition["spec"]["config"])
    return network
