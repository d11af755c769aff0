"""How the embedded cluster reads CRDs: nothing they say may pass it by."""

from collections.abc import Iterator

import pytest

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Invalid
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.crds import Schema, crds
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)

NESTING = {"properties", "items", "additionalProperties"}
CHECKED_BY_THE_STRUCT = {"type", "required", "minimum", "minLength"}
CHECKED_OR_FILLED_IN_BY_THE_SERVER = {"enum", "pattern", "format", "default"}
KEYED_LISTS = {"x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
RULES = {"x-kubernetes-validations"}
FOR_PEOPLE = {"description"}


def schemas_in(schema: Schema) -> Iterator[Schema]:
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for each in inner:
        if each:
            yield from schemas_in(each)


def all_schemas() -> list[Schema]:
    versions = [version for crd in crds(with_network_attachments=True) for version in crd["spec"]["versions"]]
    return [each for version in versions for each in schemas_in(version["schema"]["openAPIV3Schema"])]


def test_the_crds_say_nothing_that_the_embedded_cluster_does_not_know() -> None:
    known = (
        NESTING
        | CHECKED_BY_THE_STRUCT
        | CHECKED_OR_FILLED_IN_BY_THE_SERVER
        | KEYED_LISTS
        | RULES
        | FOR_PEOPLE
    )
    assert {word for schema in all_schemas() for word in schema} <= known
    formats = {schema["format"] for schema in all_schemas() if "format" in schema}
    assert formats <= {"cidr", "date-time", "int64"}
    rules = [rule for schema in all_schemas() for rule in schema.get("x-kubernetes-validations", [])]
    assert {word for rule in rules for word in rule} <= {"rule", "message"}
    assert {schema.get("x-kubernetes-list-type", "map") for schema in all_schemas()} == {"map"}
    assert all(isinstance(schema.get("default", 0), int | str) for schema in all_schemas())


async def test_a_refusal_by_a_rule_names_the_object_and_the_part_and_says_what_to_give() -> None:
    subnet = ClusterSubnet(
        metadata=ObjectMeta(name="pods", namespace="default"),
        spec=ClusterSubnetSpec(scaler=ScalerOverride(batch=4, min_batch=8)),
    )
    with pytest.raises(Invalid) as refusal:
        await EmbeddedCluster().create(subnet, manager="test")
    assert str(refusal.value) == (
        "ClusterSubnet default/pods: .spec.scaler: "
        "minBatch must not be more than batch: give a smaller minBatch or a larger batch"
    )


async def test_a_refusal_names_the_object_the_field_the_value_and_what_to_give() -> None:
    slices = [NodeSliceAllocation(node_name="", slice_range=text) for text in ("10.0.0.0/24", "nonsense")]
    pool = NodeSlicePool(
        metadata=ObjectMeta(name="net", namespace="default"),
        spec=NodeSlicePoolSpec(range="10.0.0.0/16", slice_size="/24"),
        status=NodeSlicePoolStatus(allocations=slices),
    )
    with pytest.raises(Invalid) as refusal:
        await EmbeddedCluster().create(pool, manager="test")
    assert str(refusal.value) == (
        "NodeSlicePool default/net: .status.allocations.1.sliceRange cannot be 'nonsense': "
        "it must be a CIDR such as 10.0.0.0/16"
    )
