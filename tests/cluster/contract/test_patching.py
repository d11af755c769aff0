"""`patch`."""

from typing import Any

import pytest
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, ClusterUnderTest, OpenCluster, seen, take
from podtide.cluster.port import Conflict, Invalid, NotFound, Patch
from podtide.resources.base import ObjectMeta, Original
from podtide.resources.event import Event, ObjectReference
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import IPV4_RESOURCE, NO_ADDRESSES_TAINT
from podtide.resources.node import Node, NodeAddress, NodeSpec, NodeStatus, Taint
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigStatus
from podtide.resources.quantity import read_count

OTHER_UID = "00000000-0000-4000-8000-000000000000"
STALE = "1"
TAINT = Taint(key="example.com/theirs", value="x", effect="NoSchedule")


async def a_node(it: ClusterUnderTest) -> Node:
    """A Node with what others write: a taint, an address and a resource. Nodes are in no namespace: delete it."""
    status = NodeStatus(
        capacity={"example.com/theirs": "3"},
        allocatable={"example.com/theirs": "2"},
        addresses=[NodeAddress(type="InternalIP", address="192.0.2.1")],
    )
    place = ObjectMeta(name=f"{it.namespace}-node", labels={"a": "x", "b": "y"})
    (made,) = await it.create(Node(metadata=place, spec=NodeSpec(taints=[TAINT]), status=status))
    return made


def resources(count: str | None) -> dict[str, Any]:
    return {"status": {"capacity": {IPV4_RESOURCE: count}, "allocatable": {IPV4_RESOURCE: count}}}


async def test_what_is_stated_is_put_in_none_removes_and_the_rest_stays(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1, labels={"a": "x", "b": "y"}))
        put = await it.cluster.patch(
            Patch(
                NodeNetworkConfig,
                "node-a",
                namespace=it.namespace,
                changes={
                    "metadata": {"labels": {"a": None, "c": "z"}, "annotations": {"d": "e"}},
                    "spec": {"requestedIPCount": 7},
                },
            ),
            manager=MANAGER,
        )
        assert put.metadata.labels == {"b": "y", "c": "z"}
        assert put.metadata.annotations == {"d": "e"}
        assert put.spec == replace(made.spec, requested_ip_count=7)
        assert (put.metadata.uid, put.metadata.generation) == (made.metadata.uid, 2)
        assert put.metadata.resource_version != made.metadata.resource_version
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == put


async def test_fields_that_no_struct_names_stay(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        event = Event(
            metadata=it.metadata("a"),
            involved_object=ObjectReference.to(it.config()),
            message="first",
            original=Original({"action": "Granting", "metadata": {}}),
        )
        await it.create(event)
        put = await it.cluster.patch(
            Patch(Event, "a", namespace=it.namespace, changes={"message": "second"}), manager=MANAGER
        )
        assert put.message == "second"
        assert put.original is not None
        assert put.original.document["action"] == "Granting"


async def test_a_list_is_replaced_whole(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        node = await a_node(it)
        name = node.metadata.name
        full = {"key": NO_ADDRESSES_TAINT, "effect": "NoSchedule"}
        put = await it.cluster.patch(Patch(Node, name, changes={"spec": {"taints": [full]}}), manager=MANAGER)
        assert put.spec.taints == [Taint(key=NO_ADDRESSES_TAINT, effect="NoSchedule")]
        put = await it.cluster.patch(
            Patch(Node, name, changes={"spec": {"taints": None, "unschedulable": True}}), manager=MANAGER
        )
        assert put.spec == NodeSpec(unschedulable=True)
        await it.cluster.delete(Node, name)


async def test_a_patch_of_a_nodes_status_changes_what_it_states_and_nothing_else(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        node = await a_node(it)
        name = node.metadata.name
        put = await it.cluster.patch(
            Patch(Node, name, changes=resources("1000"), status=True), manager=MANAGER
        )
        theirs = {"example.com/theirs": "3"}, {"example.com/theirs": "2"}
        mine = put.status.capacity.pop(IPV4_RESOURCE), put.status.allocatable.pop(IPV4_RESOURCE)
        assert [read_count(each) for each in mine] == [1000, 1000]
        assert (put.status.capacity, put.status.allocatable) == theirs
        assert put.status.addresses == node.status.addresses
        assert TAINT in put.spec.taints  # beside those of the controllers that are at work on a real cluster
        assert put.metadata.labels.items() >= {"a": "x", "b": "y"}.items()
        put = await it.cluster.patch(Patch(Node, name, changes=resources(None), status=True), manager=MANAGER)
        assert put.status == node.status
        await it.cluster.delete(Node, name)


async def test_a_patch_of_a_status_leaves_the_generation(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1))
        granted = replace(made, status=NodeNetworkConfigStatus(assigned_ip_count=5))
        granted = await it.cluster.replace_status(granted, manager=MANAGER)
        put = await it.cluster.patch(
            Patch(
                NodeNetworkConfig,
                "node-a",
                namespace=it.namespace,
                changes={"status": {"assignedIPCount": 6}},
                status=True,
            ),
            manager=MANAGER,
        )
        assert put.status == replace(granted.status, assigned_ip_count=6)
        assert (put.spec, put.metadata.generation) == (made.spec, 1)


async def test_a_patch_of_a_status_can_change_nothing_else(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        for beside in ({"metadata": {"labels": {"a": "b"}}}, {"spec": {"requestedIPCount": 7}}):
            with pytest.raises(Invalid):
                await it.cluster.patch(
                    Patch(
                        NodeNetworkConfig,
                        "node-a",
                        namespace=it.namespace,
                        changes={"status": {"assignedIPCount": 6}} | beside,
                        status=True,
                    ),
                    manager=MANAGER,
                )
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_without_status_the_status_of_a_kind_with_that_subresource_is_ignored(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        node = await a_node(it)
        changes = {**resources("5"), "metadata": {"labels": {"c": "z"}}}
        put = await it.cluster.patch(Patch(Node, node.metadata.name, changes=changes), manager=MANAGER)
        assert put.metadata.labels.items() >= {"a": "x", "b": "y", "c": "z"}.items()
        assert put.status == node.status
        await it.cluster.delete(Node, node.metadata.name)


async def test_the_status_of_a_kind_without_that_subresource_is_not_found(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.pool())
        with pytest.raises(NotFound):
            await it.cluster.patch(
                Patch(type(it.pool()), "pool-a", namespace=it.namespace, changes={"status": {}}, status=True),
                manager=MANAGER,
            )


async def test_another_uid_or_resource_version_of_a_custom_resource_is_a_conflict(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        spec, status = {"spec": {"requestedIPCount": 6}}, {"status": {"assignedIPCount": 6}}
        for uid, version in ((OTHER_UID, ""), ("", STALE)):
            with pytest.raises(Conflict):
                await it.cluster.patch(
                    Patch(
                        NodeNetworkConfig,
                        "node-a",
                        namespace=it.namespace,
                        changes=spec,
                        uid=uid,
                        resource_version=version,
                    ),
                    manager=MANAGER,
                )
        with pytest.raises(Conflict):
            await it.cluster.patch(
                Patch(
                    NodeNetworkConfig,
                    "node-a",
                    namespace=it.namespace,
                    changes=status,
                    uid=OTHER_UID,
                    resource_version=STALE,
                    status=True,
                ),
                manager=MANAGER,
            )
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_the_status_of_a_custom_resource_is_not_patched_by_its_uid_alone(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        place, changes = made.metadata, {"status": {"assignedIPCount": 6}}
        with pytest.raises(Invalid, match="version"):
            await it.cluster.patch(
                Patch(
                    NodeNetworkConfig,
                    "node-a",
                    namespace=it.namespace,
                    changes=changes,
                    uid=place.uid,
                    status=True,
                ),
                manager=MANAGER,
            )
        put = await it.cluster.patch(
            Patch(
                NodeNetworkConfig,
                "node-a",
                namespace=it.namespace,
                changes=changes,
                uid=place.uid,
                resource_version=place.resource_version,
                status=True,
            ),
            manager=MANAGER,
        )
        assert put.status.assigned_ip_count == 6


@pytest.mark.parametrize("status", [False, True])
async def test_another_uid_or_resource_version_of_a_node_is_a_conflict(
    open_cluster: OpenCluster, *, status: bool
) -> None:
    async with open_cluster() as it:
        node = await a_node(it)
        name = node.metadata.name
        changes = resources("5") if status else {"metadata": {"labels": {"c": "z"}}}

        async def patch(**expected: str) -> Node:
            return await it.cluster.patch(
                Patch(Node, name, changes=changes, status=status, **expected), manager=MANAGER
            )

        for expected in ({"uid": OTHER_UID}, {"resource_version": STALE}):
            with pytest.raises(Conflict):
                await patch(**expected)
        now = await it.cluster.get(Node, name)
        assert now.status == node.status
        assert "c" not in now.metadata.labels
        put = await patch(uid=node.metadata.uid)
        assert IPV4_RESOURCE in put.status.capacity if status else "c" in put.metadata.labels
        await it.cluster.delete(Node, name)


async def test_a_patch_never_creates_the_object(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(NotFound):
            await it.cluster.patch(
                Patch(Lease, "a", namespace=it.namespace, changes={"spec": {"holderIdentity": "me"}}),
                manager=MANAGER,
            )
        with pytest.raises(NotFound):
            await it.cluster.patch(
                Patch(Node, f"{it.namespace}-node", changes=resources("5"), uid=OTHER_UID, status=True),
                manager=MANAGER,
            )


async def test_without_a_resource_version_whatever_is_current_is_patched(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(Lease(metadata=it.metadata("a"), spec=LeaseSpec(holder_identity="me")))
        await it.cluster.replace(replace(made, spec=LeaseSpec(holder_identity="you")), manager=MANAGER)
        put = await it.cluster.patch(
            Patch(Lease, "a", namespace=it.namespace, changes={"spec": {"leaseTransitions": 4}}),
            manager=MANAGER,
        )
        assert (put.spec.holder_identity, put.spec.lease_transitions) == ("you", 4)


async def test_a_patch_that_changes_nothing_keeps_the_version_and_no_watch_hears_of_it(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1, labels={"a": "b"}))
        changes = {"metadata": {"labels": {"a": "b", "c": None}}, "spec": {"requestedIPCount": 1}}
        same = await it.cluster.patch(
            Patch(NodeNetworkConfig, "node-a", namespace=it.namespace, changes=changes),
            manager="somebody-else",
        )
        assert same == made
        await it.create(it.config("next"))
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=made.metadata.resource_version
        )
        assert seen(await take(watch, 1)) == [("ADDED", "next")]


async def test_what_a_patch_set_is_its_managers(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config(requested=1))
        await it.cluster.patch(
            Patch(
                NodeNetworkConfig, "node-a", namespace=it.namespace, changes={"spec": {"requestedIPCount": 7}}
            ),
            manager="patching",
        )
        with pytest.raises(Conflict, match="patching"):
            await it.cluster.apply(it.config(requested=9), manager=MANAGER, force=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"requestedIPCount": "many"}},
        {"spec": 7},
        {"metadata": {"labels": ["a"]}},
        {"metadata": {"name": "another"}},
        {"metadata": {"labels": {"not a label!": "x"}}},
    ],
    ids=str,
)
async def test_an_outcome_that_is_not_valid_is_refused(
    open_cluster: OpenCluster, changes: dict[str, Any]
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        with pytest.raises(Invalid):
            await it.cluster.patch(
                Patch(NodeNetworkConfig, "node-a", namespace=it.namespace, changes=changes), manager=MANAGER
            )
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_what_a_caller_does_to_its_changes_later_does_not_matter(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        node = await a_node(it)
        name = node.metadata.name
        taints = [{"key": NO_ADDRESSES_TAINT, "effect": "NoSchedule"}]
        await it.cluster.patch(Patch(Node, name, changes={"spec": {"taints": taints}}), manager=MANAGER)
        taints[0]["effect"] = "NoExecute"
        put = await it.cluster.patch(
            Patch(Node, name, changes={"metadata": {"labels": {"c": "z"}}}), manager=MANAGER
        )
        assert [each.effect for each in put.spec.taints if each.key == NO_ADDRESSES_TAINT] == ["NoSchedule"]
        await it.cluster.delete(Node, name)
