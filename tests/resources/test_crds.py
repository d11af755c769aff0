import re
from collections.abc import Iterator
from ipaddress import ip_interface
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from jsonschema import Draft4Validator, FormatChecker

from podtide.cli.installation.crds import crds as command
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.codec import to_document
from podtide.resources.crds import crd, crds, rules_of_parts
from podtide.resources.ip_pool import IPPool
from podtide.resources.kinds import ALL_KINDS, BUILT_IN_KINDS, PODTIDE_KINDS
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from resources.documents import objects

STRUCTURAL = {
    "type",
    "description",
    "format",
    "default",
    "enum",
    "minimum",
    "minLength",
    "pattern",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
}
every_crd = pytest.mark.parametrize(
    "kind", [*PODTIDE_KINDS, NetworkAttachmentDefinition], ids=lambda kind: kind.api.kind
)


def version(kind: type[Resource]) -> dict[str, Any]:
    (only,) = crd(kind)["spec"]["versions"]
    assert isinstance(only, dict)
    return only


def schema(kind: type[Resource], *path: str) -> dict[str, Any]:
    """The schema at a path of fields; lists and maps are passed through."""
    found: dict[str, Any] = version(kind)["schema"]["openAPIV3Schema"]
    for name in path:
        found = found.get("items") or found.get("additionalProperties") or found
        found = found["properties"][name]
    return found


def columns(kind: type[Resource]) -> list[tuple[str, str, int]]:
    return [
        (each["name"], each["jsonPath"], each.get("priority", 0))
        for each in version(kind).get("additionalPrinterColumns", [])
    ]


def nodes(of: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, with where it is."""
    yield path, of
    for name, field in of.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for below in ("items", "additionalProperties"):
        if below in of:
            yield from nodes(of[below], f"{path}[]")


formats = FormatChecker(formats=())


@formats.checks("cidr", raises=ValueError)
def is_cidr(value: object) -> bool:
    """Host bits are allowed, the prefix length is a must."""
    return "/" in str(value) and bool(ip_interface(str(value)))


def validator(kind: type[Resource]) -> Draft4Validator:
    return Draft4Validator(schema(kind), format_checker=formats)


def valid(kind: type[Resource], document: dict[str, Any]) -> bool:
    return validator(kind).is_valid(document)


@every_crd
def test_a_schema_is_structural(kind: type[Resource]) -> None:
    for path, of in nodes(schema(kind)):
        assert set(of) <= STRUCTURAL, path
        assert of["type"] in {"object", "array", "string", "integer", "number", "boolean"}, path
        assert not ("properties" in of and "additionalProperties" in of), path
        assert set(of.get("required", [])) <= set(of.get("properties", {})), path
        if "default" in of:
            assert Draft4Validator(of).is_valid(of["default"]), path
        for key in of.get("x-kubernetes-list-map-keys", []):
            assert key in of["items"]["required"], path


@every_crd
def test_every_field_has_a_description(kind: type[Resource]) -> None:
    bare = [path for path, of in nodes(schema(kind)) if not of.get("description") and not path.endswith("[]")]
    assert bare == [".metadata"]  # the API server describes that itself


@every_crd
def test_every_column_shows_a_field_that_exists_and_has_that_type(kind: type[Resource]) -> None:
    for column in version(kind).get("additionalPrinterColumns", []):
        path = re.sub(r"\[.*?\]", "", column["jsonPath"]).strip(".").split(".")
        if path[:2] == ["metadata", "annotations"]:
            assert column["type"] == "string"
        elif path[0] == "metadata":
            assert column["type"] == "date"
        else:
            assert schema(kind, *path)["type"] == column["type"]


@given(objects)
def test_whatever_a_struct_can_say_its_crd_accepts(item: Resource) -> None:
    if type(item) not in BUILT_IN_KINDS:
        validator(type(item)).validate(to_document(item))


def test_node_network_configs_are_those_of_azure_cns() -> None:
    definition = crd(NodeNetworkConfig)
    assert definition["metadata"]["name"] == "nodenetworkconfigs.acn.azure.com"
    assert definition["spec"]["names"] == {
        "kind": "NodeNetworkConfig",
        "listKind": "NodeNetworkConfigList",
        "plural": "nodenetworkconfigs",
        "singular": "nodenetworkconfig",
        "shortNames": ["nnc"],
    }
    assert definition["spec"]["scope"] == "Namespaced"
    assert version(NodeNetworkConfig)["name"] == "v1alpha"
    assert version(NodeNetworkConfig)["subresources"] == {"status": {}}
    assert columns(NodeNetworkConfig) == [
        ("Requested IPs", ".spec.requestedIPCount", 1),
        ("Allocated IPs", ".status.assignedIPCount", 0),
        ("Subnet", ".status.networkContainers[*].subnetName", 1),
        ("Subnet CIDR", ".status.networkContainers[*].subnetAddressSpace", 1),
        ("NC ID", ".status.networkContainers[*].id", 1),
        ("NC Mode", ".status.networkContainers[*].assignmentMode", 0),
        ("NC Type", ".status.networkContainers[*].type", 1),
        ("NC Version", ".status.networkContainers[*].version", 0),
        ("Requested", ".spec.requestedIPCount", 0),  # ours, after theirs
        ("Reason", '.status.conditions[?(@.type=="Granted")].reason', 0),
    ]


def test_a_network_container_has_every_field_of_the_wire_and_requires_none() -> None:
    container = schema(NodeNetworkConfig, "status", "networkContainers")["items"]
    assert set(container["properties"]) == {
        *("id", "assignmentMode", "type", "version", "status", "ipAssignments", "nodeIP", "macAddress"),
        *("primaryIP", "primaryIPV6", "defaultGateway", "defaultGatewayV6"),
        *("subnetName", "subnetAddressSpace", "subnetAddressSpaceV6"),
        *("subcriptionID", "resourceGroupID", "vnetID", "subnetID"),
        "cidrs",  # ours; what knows only the others passes over it
    }
    assert "required" not in container
    assert set(container["properties"]["ipAssignments"]["items"]["properties"]) == {"name", "ip"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("spec", "requestedIPCount"), {"type": "integer", "format": "int64", "default": 0}),
        (("spec", "availabilityZone"), {"type": "integer"}),
        (("status", "assignedIPCount"), {"type": "integer", "default": 0}),
        (("status", "scaler", "maxIPCount"), {"type": "integer", "format": "int64"}),
        (("status", "status"), {"type": "string", "enum": ["Updating", "Updated", "Error"]}),
        (
            ("status", "networkContainers", "assignmentMode"),
            {"type": "string", "enum": ["dynamic", "static"], "default": "dynamic"},
        ),
        (("status", "networkContainers", "type"), {"type": "string", "default": "vnet"}),
        (("status", "networkContainers", "version"), {"type": "integer", "format": "int64", "default": 0}),
        (
            ("status", "networkContainers", "status"),
            {
                "type": "string",
                "enum": [
                    "NCUpdateSubnetFullError",
                    "NCUpdateInternalServerError",
                    "NCUpdateUnauthorizedError",
                    "NCUpdateSuccess",
                    "NCUpdateFailed",
                ],
            },
        ),
    ],
)
def test_types_enums_and_defaults_are_the_wire_s(path: tuple[str, ...], expected: dict[str, Any]) -> None:
    found = schema(NodeNetworkConfig, *path)
    assert {name: value for name, value in found.items() if name != "description"} == expected


@pytest.mark.parametrize(
    "kind", [NodeNetworkConfig, ClusterSubnet, NodeSlicePool], ids=lambda kind: kind.api.kind
)
def test_conditions_are_additive_and_merge_by_type(kind: type[Resource]) -> None:
    conditions = schema(kind, "status", "conditions")
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["properties"]["status"]["enum"] == ["True", "False", "Unknown"]
    assert "conditions" not in schema(kind, "status").get("required", [])


def test_cluster_subnet_states_have_a_status_of_two_required_fields_and_no_spec() -> None:
    assert set(schema(ClusterSubnetState)["properties"]) == {"apiVersion", "kind", "metadata", "status"}
    assert schema(ClusterSubnetState, "status")["required"] == ["exhausted", "timestamp"]
    assert columns(ClusterSubnetState) == [
        ("Exhausted", ".status.exhausted", 0),
        ("Updated", ".status.timestamp", 0),
    ]


def test_cluster_subnets_show_how_full_they_are_and_what_is_in_force() -> None:
    assert version(ClusterSubnet)["subresources"] == {"status": {}}
    assert columns(ClusterSubnet) == [
        ("CIDRs", ".status.ranges", 0),
        ("Capacity", ".status.capacity", 0),
        ("Reserved", ".status.reserved", 0),
        ("Batch", ".status.scaler.batch", 0),
        ("Buffer", ".status.scaler.buffer", 0),
        ("Exhausted", ".status.exhausted", 0),
        ("Runs-Out", ".status.runsOut", 0),
        ("Age", ".metadata.creationTimestamp", 0),
    ]


def test_the_rules_between_fields_of_an_override_are_in_the_crd_with_words_for_people() -> None:
    scaler = schema(ClusterSubnet, "spec", "scaler")
    assert scaler["x-kubernetes-validations"] == [
        {
            "rule": "!has(self.fixed) || (!has(self.batch) && !has(self.minBatch))",
            "message": "fixed excludes batch and minBatch: give fixed alone, or leave it out",
        },
        {
            "rule": "!has(self.minBatch) || !has(self.batch) || self.minBatch <= self.batch",
            "message": "minBatch must not be more than batch: give a smaller minBatch or a larger batch",
        },
    ]
    (rule,) = scaler["properties"]["thresholds"]["x-kubernetes-validations"]
    assert rule == {
        "rule": "0.0 < self.lower && self.lower < self.upper && self.upper < 1.0",
        "message": "thresholds must be 0 < lower < upper < 1, such as 0.8 and 0.9",
    }


@every_crd
def test_every_rule_in_a_crd_is_there_for_clusters_without_cel_too(kind: type[Resource]) -> None:
    stated = {
        each["rule"] for _, of in nodes(schema(kind)) for each in of.get("x-kubernetes-validations", [])
    }
    assert stated == set(rules_of_parts(kind))


def test_node_slice_pools_show_their_counts_and_the_counts_are_optional() -> None:
    assert columns(NodeSlicePool) == [
        ("Range", ".spec.range", 0),
        ("Slice Size", ".spec.sliceSize", 0),
        ("Assigned", ".status.assigned", 0),
        ("Total", ".status.total", 0),
        ("Age", ".metadata.creationTimestamp", 0),
    ]
    assert schema(NodeSlicePool, "spec")["required"] == ["range", "sliceSize"]
    assert schema(NodeSlicePool, "status")["required"] == ["allocations"]


@pytest.mark.parametrize(
    "kind", [NodeSlicePool, IPPool, OverlappingRangeIPReservation], ids=lambda kind: kind.api.kind
)
def test_the_kinds_of_whereabouts_have_no_status_subresource(kind: type[Resource]) -> None:
    assert "subresources" not in version(kind)
    assert crd(kind)["spec"]["group"] == "whereabouts.cni.cncf.io"


def slices(*, slice_size: str | None, allocations: object) -> dict[str, Any]:
    spec = {"range": "10.0.0.0/8"} if slice_size is None else {"range": "10.0.0.0/8", "sliceSize": slice_size}
    return {"spec": spec, "status": {"allocations": allocations}}


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (NodeNetworkConfig, {"spec": {"requestedIPCount": 48, "ipsNotInUse": ["a"]}}),
        (ClusterSubnet, {"spec": {"scaler": {"batch": 1, "buffer": 0}}}),
        (ClusterSubnet, {"spec": {"scaler": {"buffer": 0.5}}}),
        (
            NodeSlicePool,
            slices(slice_size="/24", allocations=[{"nodeName": "", "sliceRange": "10.0.0.0/24"}]),
        ),
        (
            IPPool,
            {
                "spec": {
                    "range": "2001:db8::/32",
                    "allocations": {"9223372036854775809": {"id": "c", "podref": "a/b"}},
                }
            },
        ),
        (IPPool, {"spec": {"range": "192.168.2.225/28", "allocations": {}}}),
        (NodeSlicePool, slices(slice_size="24", allocations=[])),
        (NodeSlicePool, slices(slice_size="/128", allocations=[])),
        (OverlappingRangeIPReservation, {"spec": {"podref": "a/b"}}),
    ],
)
def test_good_objects_pass(kind: type[Resource], document: dict[str, Any]) -> None:
    assert valid(kind, document)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (NodeNetworkConfig, {"spec": {"requestedIPCount": "48"}}),
        (NodeNetworkConfig, {"status": {"status": "Fine"}}),
        (ClusterSubnet, {"spec": {"scaler": {"batch": 0}}}),
        (ClusterSubnet, {"spec": {"scaler": {"batch": 1.5}}}),
        (ClusterSubnet, {"spec": {"scaler": {"buffer": -0.5}}}),
        (ClusterSubnet, {"status": {"scaler": {"batch": 16}}}),
        (ClusterSubnetState, {"status": {"exhausted": True}}),
        (NodeSlicePool, slices(slice_size=None, allocations=[])),
        (NodeSlicePool, slices(slice_size="/24", allocations=[{"sliceRange": "10.0.0.0/24"}])),
        (NodeSlicePool, slices(slice_size="/24", allocations=[{"nodeName": "", "sliceRange": "10.0.0.0"}])),
        (NodeSlicePool, slices(slice_size="/129", allocations=[])),
        (NodeSlicePool, slices(slice_size="a quarter", allocations=[])),
        (ClusterSubnet, {"status": {"cidr": "10.0.0.0/33"}}),
        (IPPool, {"spec": {"range": "10.0.0.0/8"}}),
        (IPPool, {"spec": {"range": "10.0.0.0/8", "allocations": {"1": {"id": "c"}}}}),
        (IPPool, {"spec": {"range": "10.0.0.1-10.0.0.9/8", "allocations": {}}}),
        (OverlappingRangeIPReservation, {"spec": {}}),
    ],
)
def test_bad_objects_do_not(kind: type[Resource], document: dict[str, Any]) -> None:
    assert not valid(kind, document)


def test_every_kind_is_built_in_or_has_a_crd() -> None:
    defined = {document["spec"]["names"]["kind"] for document in crds(with_network_attachments=True)}
    assert defined | {kind.api.kind for kind in BUILT_IN_KINDS} == {kind.api.kind for kind in ALL_KINDS}


def test_the_command_prints_the_same_crds_as_yaml_every_time() -> None:
    first, second = (CliRunner().invoke(command).stdout for _ in range(2))
    assert first == second
    assert list(yaml.safe_load_all(first)) == crds()


def test_multus_s_crd_is_printed_only_when_asked_for() -> None:
    def kinds(*arguments: str) -> set[str]:
        printed = CliRunner().invoke(command, arguments).stdout
        return {document["spec"]["names"]["kind"] for document in yaml.safe_load_all(printed)}

    assert "NetworkAttachmentDefinition" not in kinds()
    assert kinds("--with-network-attachments") - kinds() == {"NetworkAttachmentDefinition"}
