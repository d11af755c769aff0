"""What the cluster and a node's agent say of addresses, read as anybody would."""

import re
import socket
from http.client import HTTPConnection
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from control_plane.cluster import ControlPlane

WHEREABOUTS = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system"
_SECONDS = 60.0


def allocations(control_plane: ControlPlane, pool: str) -> dict[str, dict[str, str]]:
    """The allocations of an IPPool: by offset, whose they are."""
    found = control_plane.admin.request("GET", f"{WHEREABOUTS}/ippools/{pool}")
    allocated: dict[str, dict[str, str]] = found["spec"]["allocations"]
    return allocated


def reservations(control_plane: ControlPlane) -> dict[str, str]:
    """All reservations: by name, whose they are."""
    found = control_plane.admin.request("GET", f"{WHEREABOUTS}/overlappingrangeipreservations")
    return {item["metadata"]["name"]: item["spec"]["podref"] for item in found["items"]}


def slices(control_plane: ControlPlane, pool: str) -> dict[str, IPv4Network]:
    """Which slice each node has, by a NodeSlicePool; nothing while there is none."""
    found = control_plane.admin.request("GET", f"{WHEREABOUTS}/nodeslicepools")
    return {
        entry["nodeName"]: IPv4Network(entry["sliceRange"])
        for item in found["items"]
        if item["metadata"]["name"] == pool
        for entry in item["status"]["allocations"]
        if entry["nodeName"]
    }


def names(control_plane: ControlPlane, plural: str) -> set[str]:
    """What there is of one of Whereabouts' kinds."""
    found: dict[str, Any] = control_plane.admin.request("GET", f"{WHEREABOUTS}/{plural}")
    return {item["metadata"]["name"] for item in found["items"]}


def assigned_count(agent: Path) -> int:
    """How many addresses of the node's pool are pods', as its agent has it."""
    connection = HTTPConnection("agent", timeout=_SECONDS)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.connect(str(agent))
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
    finally:
        connection.close()
    found = re.search(r"^cx_ipam_pod_allocated_ips\{.*\} (\d+)", metrics, flags=re.MULTILINE)
    assert found, metrics
    return int(found[1])
