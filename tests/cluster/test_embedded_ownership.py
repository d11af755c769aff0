"""Who owns which field, as `metadata.managedFields` says it on the wire."""

from typing import Any

from msgspec.structs import replace

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.embedded.records import key_of
from podtide.cluster.port import Patch
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import IPV4_RESOURCE
from podtide.resources.node import Node, NodeStatus
from podtide.resources.node_network_config import (
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.pod import Pod, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock

Fields = dict[str, Any]


def managed_fields(cluster: EmbeddedCluster, item: Resource) -> dict[tuple[str, str], Fields]:
    """The fields of each manager and operation."""
    record = cluster.server.store.table(type(item)).records[
        key_of(item.metadata.namespace, item.metadata.name)
    ]
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in record.document()["metadata"]["managedFields"]
    }


def pool(*offsets: int, **metadata: Any) -> IPPool:
    taken = {str(offset): IPAllocation(id="sandbox", podref="default/web") for offset in offsets}
    return IPPool(
        metadata=ObjectMeta(name="a", namespace="default", **metadata),
        spec=IPPoolSpec(range="10.0.0.0/24", allocations=taken),
    )


async def test_an_entry_says_who_wrote_how_and_when() -> None:
    cluster = EmbeddedCluster(clock=LoopClock(epoch=0.0))
    made = await cluster.create(pool(), manager="maker")
    (entry,) = (
        cluster.server.store.table(IPPool).records[str(made.key)].document()["metadata"]["managedFields"]
    )
    del entry["fieldsV1"]
    assert entry == {
        "manager": "maker",
        "operation": "Update",
        "apiVersion": "whereabouts.cni.cncf.io/v1alpha1",
        "time": "1970-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
    }


async def test_who_creates_owns_every_field_and_the_objects_on_the_way() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(pool(7, labels={"a": "b"}, finalizers=["example.org/x"]), manager="maker")
    assert managed_fields(cluster, made) == {
        ("maker", "Update"): {
            "f:metadata": {
                "f:labels": {".": {}, "f:a": {}},
                "f:finalizers": {".": {}, 'v:"example.org/x"': {}},
            },
            "f:spec": {
                ".": {},
                "f:range": {},
                "f:allocations": {".": {}, "f:7": {".": {}, "f:id": {}, "f:podref": {}}},
            },
        }
    }


async def test_who_applies_owns_what_was_stated() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.apply(pool(7), manager="one")
    assert managed_fields(cluster, made) == {
        ("one", "Apply"): {
            "f:spec": {"f:range": {}, "f:allocations": {"f:7": {"f:id": {}, "f:podref": {}}}},
        }
    }


async def test_who_replaces_takes_over_only_what_changed() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(pool(1, 2), manager="one")
    after = pool(2, 3).spec
    taken = {**after.allocations, "2": IPAllocation(id="newer", podref="default/web")}
    await cluster.replace(replace(made, spec=replace(after, allocations=taken)), manager="other")
    assert managed_fields(cluster, made) == {
        ("one", "Update"): {
            "f:spec": {
                ".": {},
                "f:range": {},
                "f:allocations": {".": {}, "f:2": {".": {}, "f:podref": {}}},
            }
        },
        ("other", "Update"): {
            "f:spec": {"f:allocations": {"f:2": {"f:id": {}}, "f:3": {".": {}, "f:id": {}, "f:podref": {}}}}
        },
    }


async def test_a_manager_that_owns_nothing_any_more_is_not_mentioned() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.apply(pool(1), manager="one")
    await cluster.apply(pool(1, labels={"a": "b"}), manager="other")
    assert set(managed_fields(cluster, made)) == {("one", "Apply"), ("other", "Apply")}
    bare = NodeNetworkConfig(metadata=ObjectMeta(name="n", namespace="default"))
    config = await cluster.create(bare, manager="maker")
    config = await cluster.replace(
        replace(config, metadata=replace(config.metadata, labels={"a": "b"})), manager="labeller"
    )
    assert ("labeller", "Update") in managed_fields(cluster, config)
    await cluster.replace(replace(config, metadata=replace(config.metadata, labels={})), manager="other")
    assert ("labeller", "Update") not in managed_fields(cluster, config)


async def test_status_is_owned_through_its_own_subresource_and_conditions_by_type() -> None:
    cluster = EmbeddedCluster()
    config = NodeNetworkConfig(
        metadata=ObjectMeta(name="n", namespace="default"), spec=NodeNetworkConfigSpec(requested_ip_count=1)
    )
    made = await cluster.apply(config, manager="agent")
    ready = Condition(
        type="Ready",
        status=ConditionStatus.TRUE,
        last_transition_time="2026-11-05T12:00:00Z",
        reason="Granted",
        message="",
    )
    status = NodeNetworkConfigStatus(assigned_ip_count=1, conditions=[ready])
    await cluster.replace_status(replace(made, status=status), manager="controller")
    owned = managed_fields(cluster, made)
    assert owned["agent", "Apply"] == {"f:spec": {"f:requestedIPCount": {}}}
    conditions = owned["controller", "Update"]["f:status"]["f:conditions"]
    assert set(conditions) == {".", 'k:{"type":"Ready"}'}
    assert "f:reason" in conditions['k:{"type":"Ready"}']
    record = cluster.server.store.table(NodeNetworkConfig).records[str(made.key)]
    entries = record.document()["metadata"]["managedFields"]
    assert [entry.get("subresource") for entry in entries] == [None, "status"]


async def test_nobody_is_said_to_own_the_status_of_a_pod() -> None:
    cluster = EmbeddedCluster()
    made = await cluster.create(
        Pod(metadata=ObjectMeta(name="web", namespace="default"), spec=PodSpec(node_name="n")),
        manager="maker",
    )
    await cluster.replace_status(replace(made, status=PodStatus(phase=PodPhase.RUNNING)), manager="kubelet")
    assert set(managed_fields(cluster, made)) == {("maker", "Update")}


async def test_an_entrys_time_stays_while_nothing_changes() -> None:
    cluster = EmbeddedCluster(clock=LoopClock())
    first = await cluster.apply(pool(1), manager="one")
    before = cluster.server.store.table(IPPool).records[str(first.key)].encoded
    for _ in range(3):
        await cluster.apply(pool(1), manager="one")
    assert cluster.server.store.table(IPPool).records[str(first.key)].encoded == before


async def test_of_a_nodes_resources_each_is_owned_by_itself_and_its_taints_together() -> None:
    cluster = EmbeddedCluster(clock=LoopClock())
    node = await cluster.create(
        Node(metadata=ObjectMeta(name="n"), status=NodeStatus(capacity={"pods": "110"})), manager="kubelet"
    )
    changes = {"status": {"capacity": {IPV4_RESOURCE: "8"}}}
    await cluster.patch(Patch(Node, "n", changes=changes, status=True), manager="mine")
    taints = [{"key": "a", "effect": "NoSchedule"}]
    await cluster.patch(Patch(Node, "n", changes={"spec": {"taints": taints}}), manager="other")
    owned = managed_fields(cluster, node)
    assert owned["mine", "Update"] == {"f:status": {"f:capacity": {f"f:{IPV4_RESOURCE}": {}}}}
    assert owned["kubelet", "Update"]["f:status"]["f:capacity"] == {".": {}, "f:pods": {}}
    assert owned["other", "Update"]["f:spec"]["f:taints"] == {}
