"""What is shown of objects and kinds: cells, ages, forms, discovery and schemas."""

import hashlib
from typing import Any

import msgspec
import pytest

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served.ages import age
from podtide.cluster.served.answers import AnswerForm, form_for
from podtide.cluster.served.discovery import discovery
from podtide.cluster.served.kinds import SERVED_KINDS
from podtide.cluster.served.openapi import openapi_documents
from podtide.cluster.served.statuses import NotAcceptable
from podtide.cluster.served.tables import TableMaker, columns_of, find_first
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (5 * MINUTE + 3, "5m3s"),
        (10 * MINUTE + 3, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 5 * MINUTE, "7h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 5 * HOUR, "7d5h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (3 * YEAR + 12 * DAY, "3y12d"),
        (9 * YEAR + 12 * DAY, "9y"),
    ],
)
def test_an_age_is_as_coarse_as_it_is_old(seconds: float, shown: str) -> None:
    assert age(seconds) == shown


def cells(kind: type[Any], document: dict[str, Any], now: float = 0.0) -> dict[str, Any]:
    """Column by column what a table shows of a document."""
    cluster = EmbeddedCluster(kinds=[kind]).server
    table = cluster.store.table(kind)
    base = {"metadata": {"name": "a", "namespace": "b", "uid": "c"}}
    record = cluster.store.prepare(table, base | document)
    shown = TableMaker(kind.api, "None").table([record], {}, now)
    (row,) = shown["rows"]
    assert row.keys() == {"cells"}
    return dict(zip((column["name"] for column in shown["columnDefinitions"]), row["cells"], strict=True))


def test_the_columns_of_a_nodenetworkconfig_show_its_first_network_container() -> None:
    containers = [
        {"id": "nc-1", "subnetName": "podnet", "assignmentMode": "dynamic", "type": "vnet", "version": 3},
        {"id": "nc-2"},
    ]
    document = {
        "spec": {"requestedIPCount": 16},
        "status": {"assignedIPCount": 0, "networkContainers": containers},
    }
    assert cells(NodeNetworkConfig, document) == {
        "Name": "a",
        "Requested IPs": 16,
        "Allocated IPs": 0,
        "Subnet": "podnet",
        "Subnet CIDR": None,
        "NC ID": "nc-1",
        "NC Mode": "dynamic",
        "NC Type": "vnet",
        "NC Version": 3,
        "Requested": 16,
        "Reason": None,
    }


def test_a_clustersubnet_shows_numbers_truth_and_age() -> None:
    metadata = {"name": "a", "namespace": "b", "uid": "c", "creationTimestamp": "1970-01-01T00:00:10Z"}
    status = {
        "cidr": "10.0.0.0/24",
        "ranges": "10.0.0.0/24,10.9.0.0/28",
        "capacity": 251,
        "exhausted": False,
        "scaler": {"batch": 16, "buffer": 0.5},
    }
    assert cells(ClusterSubnet, {"metadata": metadata, "status": status}, now=70.0) == {
        "Name": "a",
        "CIDRs": "10.0.0.0/24,10.9.0.0/28",
        "Capacity": 251,
        "Reserved": None,
        "Batch": 16,
        "Buffer": 0.5,
        "Exhausted": False,
        "Runs-Out": None,
        "Age": "60s",
    }


def test_what_is_no_time_has_no_age() -> None:
    assert (
        cells(IPPool, {"metadata": {"name": "a", "uid": "b", "creationTimestamp": "soon"}})["Age"]
        == "<invalid>"
    )


def test_a_kind_without_columns_shows_its_age_and_a_pod_where_it_is_when_asked_for_more() -> None:
    assert [column.name for column in columns_of(NetworkAttachmentDefinition.api)] == ["Age"]
    assert [(column.name, column.priority) for column in columns_of(Pod.api)] == [
        ("Status", 0),
        ("Age", 0),
        ("IP", 1),
        ("Node", 1),
    ]


def test_a_pool_shows_its_node_and_a_request_why_it_was_granted_or_not() -> None:
    marked = {"metadata": {"name": "a", "uid": "b", "annotations": {"podtide.io/node": "node-1"}}}
    assert cells(IPPool, marked | {"spec": {"range": "10.7.0.0/28"}})["Node"] == "node-1"
    conditions = [{"type": "Other", "reason": "No"}, {"type": "Granted", "reason": "SubnetShort"}, "text"]
    shown = cells(NodeNetworkConfig, {"spec": {"requestedIPCount": 15}, "status": {"conditions": conditions}})
    assert (shown["Requested"], shown["Reason"]) == (15, "SubnetShort")
    assert cells(NodeNetworkConfig, {"status": {"conditions": conditions[:1]}})["Reason"] is None


@pytest.mark.parametrize("document", [None, [], "text", {"a": None}, {"a": []}, {"a": [None]}, {"a": ["b"]}])
def test_a_path_into_what_is_not_there_finds_nothing(document: Any) -> None:
    assert find_first(document, ".a[*].b") is None


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", AnswerForm.OBJECTS),
        ("*/*", AnswerForm.OBJECTS),
        ("application/json, */*", AnswerForm.OBJECTS),
        ("application/vnd.kubernetes.protobuf,application/json", AnswerForm.OBJECTS),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", AnswerForm.TABLE),
        ("application/json; as=Table; v=v1; g=meta.k8s.io", AnswerForm.TABLE),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", AnswerForm.OBJECTS),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json", AnswerForm.OBJECTS),
    ],
)
def test_the_first_form_that_we_have_is_taken(accept: str, form: AnswerForm) -> None:
    assert form_for(accept) is form


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Table;v=v2;g=meta.k8s.io"])
def test_a_client_that_takes_none_of_our_forms_is_told_so(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        form_for(accept)


def test_every_kind_can_be_discovered_with_what_can_be_done_to_it() -> None:
    documents = discovery(kind.api for kind in SERVED_KINDS)
    found = {
        (group, resource["name"]): resource
        for group, document in documents.items()
        for resource in document.get("resources", ())
    }
    for kind in SERVED_KINDS:
        api = kind.api
        root = f"/apis/{api.group}/{api.version}" if api.group else f"/api/{api.version}"
        resource = found.pop((root, api.plural))
        assert (resource["kind"], resource["namespaced"]) == (api.kind, api.namespaced)
        assert {"get", "list", "watch", "create", "update", "patch", "delete"} == set(resource["verbs"])
        assert (found.pop((root, f"{api.plural}/status"), None) is not None) is api.status_subresource
    assert not found


def test_a_group_with_two_versions_names_both() -> None:
    documents = discovery(kind.api for kind in SERVED_KINDS)
    (group,) = [group for group in documents["/apis"]["groups"] if group["name"] == "acn.azure.com"]
    assert [each["version"] for each in group["versions"]] == ["v1alpha", "v1alpha1"]
    assert documents["/apis/acn.azure.com"]["versions"] == group["versions"]
    assert documents["/api"]["versions"] == ["v1"]


def test_a_schema_can_be_kept_for_ever_because_its_address_changes_with_it() -> None:
    documents = openapi_documents(SERVED_KINDS)
    paths = msgspec.json.decode(documents.pop("/openapi/v3"))["paths"]
    assert {f"/openapi/v3/{path}" for path in paths} == set(documents)
    for path, body in documents.items():
        digest = hashlib.sha256(body).hexdigest()
        assert paths[path.removeprefix("/openapi/v3/")]["serverRelativeURL"] == f"{path}?hash={digest}"
