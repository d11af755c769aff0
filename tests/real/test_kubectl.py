"""What a person with kubectl sees of podtide's kinds: columns, explanations, and refusals that say what is wrong."""

import json
import re

import pytest
import yaml
from click.testing import CliRunner

from control_plane.cluster import ControlPlane
from podtide.cli.installation.crds import crds as podtide_crds

OBJECTS = """
apiVersion: acn.azure.com/v1alpha
kind: NodeNetworkConfig
metadata: {name: node-1}
spec: {requestedIPCount: 48, ipsNotInUse: [7f3a]}
---
apiVersion: acn.azure.com/v1alpha1
kind: ClusterSubnet
metadata: {name: podnet}
spec: {scaler: {batch: 8, buffer: 0.25}}
---
apiVersion: acn.azure.com/v1alpha1
kind: ClusterSubnetState
metadata: {name: podnet}
---
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: NodeSlicePool
metadata: {name: storage}
spec: {range: 10.20.0.0/16, sliceSize: /24}
status:
  allocations:
    - {nodeName: node-1, sliceRange: 10.20.0.0/24}
    - {nodeName: "", sliceRange: 10.20.1.0/24}
  assigned: 1
  total: 256
---
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: IPPool
metadata: {name: storage-node-1, annotations: {podtide.io/node: node-1}}
spec:
  range: 10.20.0.0/24
  allocations:
    "5": {id: 0a1b, podref: default/web, ifname: net1}
status: {used: 1, capacity: 254}
---
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: OverlappingRangeIPReservation
metadata: {name: 10.20.0.5}
spec: {podref: default/web, ifname: net1, containerid: 0a1b}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: storage}
spec: {config: '{"type": "ipvlan", "ipam": {"type": "podtide", "range": "10.20.0.0/16"}}'}
"""

STATUSES = """
apiVersion: acn.azure.com/v1alpha
kind: NodeNetworkConfig
metadata: {name: node-1}
status:
  assignedIPCount: 47
  conditions:
    - {type: Granted, status: "True", reason: Complete, message: all of it, lastTransitionTime: "2026-01-02T03:04:05Z"}
  networkContainers:
    - {id: nc-1, subnetName: podnet, subnetAddressSpace: 10.1.0.0/16, version: 3}
---
apiVersion: acn.azure.com/v1alpha1
kind: ClusterSubnet
metadata: {name: podnet}
status:
  cidr: 10.1.0.0/16
  ranges: 10.1.0.0/16,10.9.0.0/28
  capacity: 65531
  reserved: 48
  exhausted: false
  runsOut: "2027-01-05"
  scaler: {batch: 8, buffer: 0.25}
---
apiVersion: acn.azure.com/v1alpha1
kind: ClusterSubnetState
metadata: {name: podnet}
status: {exhausted: false, timestamp: "2026-01-02T03:04:05Z"}
"""


@pytest.fixture(scope="module")
def populated(control_plane: ControlPlane) -> str:
    """A namespace with one object of every kind, as `kubectl apply` made them. Tests look, and do not touch."""
    namespace = "populated"
    control_plane.kubectl("create", "namespace", namespace)
    for arguments, documents in ((), OBJECTS), (("--subresource=status", "--server-side"), STATUSES):
        answer = control_plane.kubectl("apply", "-n", namespace, "-f", "-", *arguments, stdin=documents)
        assert answer.stderr == ""
        assert answer.returncode == 0
    return namespace


def table(control_plane: ControlPlane, *arguments: str) -> list[list[str]]:
    """What `kubectl get` prints, line by line and column by column."""
    answer = control_plane.kubectl("get", *arguments)
    assert answer.returncode == 0, answer.stderr
    return [re.split(r" {2,}", line.strip()) for line in answer.stdout.splitlines()]


def without_age(rows: list[list[str]]) -> list[list[str]]:
    assert rows[0][-1] == "AGE"
    return [row[:-1] for row in rows]


def test_the_crds_that_podtide_prints_can_be_applied(control_plane: ControlPlane) -> None:
    printed = CliRunner().invoke(podtide_crds, ["--with-network-attachments"]).stdout
    answer = control_plane.kubectl("apply", "-f", "-", stdin=printed)
    assert answer.returncode == 0, answer.stderr
    applied = re.findall(r"^customresourcedefinition\S*/(\S+)", answer.stdout, flags=re.MULTILINE)
    assert applied == [document["metadata"]["name"] for document in yaml.safe_load_all(printed)]


def test_node_network_configs_show_what_a_node_holds(control_plane: ControlPlane, populated: str) -> None:
    assert table(control_plane, "nnc", "-n", populated) == [
        ["NAME", "ALLOCATED IPS", "NC MODE", "NC VERSION", "REQUESTED", "REASON"],
        ["node-1", "47", "dynamic", "3", "48", "Complete"],
    ]


def test_wide_node_network_configs_show_what_it_asked_for_and_where_from(
    control_plane: ControlPlane, populated: str
) -> None:
    assert [
        row for row in table(control_plane, "nnc", "-A", "-o=wide") if row[0] in {"NAMESPACE", populated}
    ] == [
        [
            *("NAMESPACE", "NAME", "REQUESTED IPS", "ALLOCATED IPS", "SUBNET", "SUBNET CIDR"),
            *("NC ID", "NC MODE", "NC TYPE", "NC VERSION", "REQUESTED", "REASON"),
        ],
        [
            *(populated, "node-1", "48", "47", "podnet", "10.1.0.0/16", "nc-1", "dynamic", "vnet", "3"),
            *("48", "Complete"),
        ],
    ]


def test_cluster_subnets_show_how_full_they_are(control_plane: ControlPlane, populated: str) -> None:
    assert without_age(table(control_plane, "clustersubnets", "-n", populated)) == [
        ["NAME", "CIDRS", "CAPACITY", "RESERVED", "BATCH", "BUFFER", "EXHAUSTED", "RUNS-OUT"],
        ["podnet", "10.1.0.0/16,10.9.0.0/28", "65531", "48", "8", "0.25", "false", "2027-01-05"],
    ]
    assert table(control_plane, "clustersubnetstates", "-n", populated) == [
        ["NAME", "EXHAUSTED", "UPDATED"],
        ["podnet", "false", "2026-01-02T03:04:05Z"],
    ]


def test_node_slice_pools_show_how_many_slices_are_left(control_plane: ControlPlane, populated: str) -> None:
    assert without_age(table(control_plane, "nodeslicepools", "-n", populated)) == [
        ["NAME", "RANGE", "SLICE SIZE", "ASSIGNED", "TOTAL"],
        ["storage", "10.20.0.0/16", "/24", "1", "256"],
    ]


def test_ip_pools_show_how_many_of_their_addresses_are_used(
    control_plane: ControlPlane, populated: str
) -> None:
    assert without_age(table(control_plane, "ippools", "-n", populated)) == [
        ["NAME", "RANGE", "USED", "CAPACITY", "NODE"],
        ["storage-node-1", "10.20.0.0/24", "1", "254", "node-1"],
    ]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nnc.spec", ["requestedIPCount\t<integer>", "ipsNotInUse\t<[]string>", "What the node asks for."]),
        ("nnc.status.networkContainers", ["subcriptionID\t<string>", "ipAssignments\t<[]Object>"]),
        ("clustersubnets.spec.scaler.batch", ["<integer>", "The largest batch"]),
        ("nodeslicepools.spec", ["sliceSize\t<string> -required-"]),
        ("ippools.spec.allocations", ["Taken addresses, by decimal offset"]),
    ],
)
def test_kubectl_explains_a_field(control_plane: ControlPlane, path: str, words: list[str]) -> None:
    answer = control_plane.kubectl("explain", path)
    assert answer.returncode == 0, answer.stderr
    for each in words:
        assert each in answer.stdout


def patch(
    control_plane: ControlPlane, namespace: str, target: str, change: dict[str, object]
) -> tuple[int, str]:
    """Exit status and complaint of a `kubectl patch` that is only tried."""
    answer = control_plane.kubectl(
        *("patch", target, "-n", namespace, "--type=merge", "-p", json.dumps(change)),
        "--dry-run=server",
        *(
            ["--subresource=status"]
            if target.startswith(("nnc", "clustersubnet")) and "status" in change
            else []
        ),
    )
    return answer.returncode, answer.stderr


@pytest.mark.parametrize(
    ("target", "change", "complaint"),
    [
        pytest.param(
            "nnc/node-1",
            {"status": {"status": "Fine"}},
            'status.status: Unsupported value: "Fine": supported values: "Updating", "Updated", "Error"',
            id="an unknown word",
        ),
        pytest.param(
            "nnc/node-1",
            {"spec": {"requestedIPCount": "many"}},
            "spec.requestedIPCount in body must be of type integer",
            id="a word for a number",
        ),
        pytest.param(
            "clustersubnet/podnet",
            {"spec": {"scaler": {"batch": 0}}},
            "spec.scaler.batch: Invalid value: 0: spec.scaler.batch in body should be greater than or equal to 1",
            id="a batch of 0",
        ),
        pytest.param(
            "clustersubnet/podnet",
            {"spec": {"scaler": {"buffer": -0.5}}},
            "spec.scaler.buffer in body should be greater than or equal to 0",
            id="a negative buffer",
        ),
        pytest.param(
            "clustersubnet/podnet",
            {"status": {"cidr": "10.1.0.0/33"}},
            'status.cidr: Invalid value: "10.1.0.0/33": cidr in body must be of type cidr',
            id="a prefix that is too long",
        ),
        pytest.param(
            "ippool/storage-node-1",
            {"spec": {"range": "10.20.0.0"}},
            'spec.range: Invalid value: "10.20.0.0": spec.range in body must be of type cidr',
            id="an address for a range",
        ),
        pytest.param(
            "nodeslicepool/storage",
            {"spec": {"range": "10.20.0.1-10.20.0.9/16"}},
            'spec.range: Invalid value: "10.20.0.1-10.20.0.9/16": spec.range in body must be of type cidr',
            id="the other notation of a range, which only configurations may use",
        ),
        pytest.param(
            "nodeslicepool/storage",
            {"spec": {"sliceSize": "/129"}},
            'spec.sliceSize: Invalid value: "/129": spec.sliceSize in body should match',
            id="a slice of no size",
        ),
        pytest.param(
            "nodeslicepool/storage",
            {"status": {"allocations": [{"nodeName": "node-1", "sliceRange": "10.20.0/24"}]}},
            'status.allocations[0].sliceRange: Invalid value: "10.20.0/24"',
            id="a slice that is no range",
        ),
    ],
)
def test_a_bad_value_is_refused_by_its_path_and_with_a_reason(
    control_plane: ControlPlane, populated: str, target: str, change: dict[str, object], complaint: str
) -> None:
    status, said = patch(control_plane, populated, target, change)
    assert complaint in said
    assert status == 1


@pytest.mark.parametrize(
    ("target", "change"),
    [
        pytest.param("ippool/storage-node-1", {"spec": {"range": "192.168.2.225/28"}}, id="host bits"),
        pytest.param("ippool/storage-node-1", {"spec": {"range": "2001:db8::/64"}}, id="IPv6"),
        pytest.param("nodeslicepool/storage", {"spec": {"sliceSize": "24"}}, id="a size without its slash"),
        pytest.param("clustersubnet/podnet", {"spec": {"scaler": {"batch": 1, "buffer": 0}}}, id="the least"),
    ],
)
def test_what_podtide_and_its_peers_write_is_accepted(
    control_plane: ControlPlane, populated: str, target: str, change: dict[str, object]
) -> None:
    assert patch(control_plane, populated, target, change) == (0, "")
