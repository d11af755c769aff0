"""`replace` and `replace_status`."""

import pytest
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, OpenCluster, seen, take
from control_plane.versions import RELEASE
from podtide.cluster.port import Conflict, Invalid, NotFound
from podtide.resources.base import ObjectMeta, Original
from podtide.resources.event import Event, ObjectReference
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.node_slice_pool import NodeSlicePool, NodeSlicePoolSpec, NodeSlicePoolStatus
from podtide.resources.pod import Pod, PodPhase, PodStatus

OTHER_UID = "00000000-0000-4000-8000-000000000000"


def asking(item: NodeNetworkConfig, requested: int) -> NodeNetworkConfig:
    return replace(item, spec=NodeNetworkConfigSpec(requested_ip_count=requested))


async def test_replace_puts_the_object_in_place_of_the_one_there(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1, labels={"a": "x", "b": "y"}))
        wish = replace(asking(made, 2), metadata=replace(made.metadata, labels={"b": "z"}))
        put = await it.cluster.replace(wish, manager=MANAGER)
        assert (put.spec.requested_ip_count, put.metadata.labels) == (2, {"b": "z"})
        assert put.metadata.uid == made.metadata.uid
        assert put.metadata.creation_timestamp == made.metadata.creation_timestamp
        assert put.metadata.resource_version != made.metadata.resource_version
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == put


async def test_what_the_original_held_and_no_struct_names_is_kept(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        event = Event(
            metadata=it.metadata("a"),
            involved_object=ObjectReference.to(it.config()),
            message="first",
            original=Original({"action": "Granting", "metadata": {}}),
        )
        await it.create(event)
        read = await it.cluster.get(Event, "a", it.namespace)
        put = await it.cluster.replace(replace(read, message="second"), manager=MANAGER)
        assert put.message == "second"
        assert put.original is not None
        assert put.original.document["action"] == "Granting"


async def test_a_stale_resource_version_is_a_conflict(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        newer = await it.cluster.replace(asking(made, 1), manager=MANAGER)
        with pytest.raises(Conflict):
            await it.cluster.replace(asking(made, 2), manager=MANAGER)
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == newer


async def test_a_stale_replace_that_would_change_nothing_is_a_conflict_too(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1))
        await it.cluster.replace(
            asking(await it.cluster.replace(asking(made, 2), manager=MANAGER), 1), manager=MANAGER
        )
        with pytest.raises(Conflict):
            await it.cluster.replace(made, manager=MANAGER)


async def test_of_two_that_replace_what_they_read_one_conflicts(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(Lease(metadata=it.metadata("leader")))
        won = await it.cluster.replace(replace(made, spec=LeaseSpec(holder_identity="a")), manager="a")
        with pytest.raises(Conflict):
            await it.cluster.replace(replace(made, spec=LeaseSpec(holder_identity="b")), manager="b")
        assert await it.cluster.get(Lease, "leader", it.namespace) == won


async def test_without_a_resource_version_custom_resources_and_leases_are_invalid(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.create(it.config())
        await it.create(Lease(metadata=it.metadata("a")))
        with pytest.raises(Invalid):
            await it.cluster.replace(it.config(requested=1), manager=MANAGER)
        with pytest.raises(Invalid):
            await it.cluster.replace_status(it.config(), manager=MANAGER)
        with pytest.raises(Invalid):
            await it.cluster.replace(
                Lease(metadata=it.metadata("a"), spec=LeaseSpec(holder_identity="a")), manager=MANAGER
            )


async def test_without_a_resource_version_a_node_is_overwritten_as_it_is(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        name = f"{it.namespace}-node"
        await it.create(Node(metadata=ObjectMeta(name=name, labels={"a": "x"})))
        put = await it.cluster.replace(
            Node(metadata=ObjectMeta(name=name, labels={"b": "y"})), manager=MANAGER
        )
        assert put.metadata.labels == {"b": "y"}
        await it.cluster.delete(Node, name)


async def test_another_uid_is_a_conflict(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        wish = replace(asking(made, 1), metadata=replace(made.metadata, uid=OTHER_UID))
        with pytest.raises(Conflict):
            await it.cluster.replace(wish, manager=MANAGER)


@pytest.mark.skipif(
    RELEASE == "1.32", reason="Kubernetes 1.32 says that it conflicts, and only a get tells that it is gone"
)
async def test_replacing_what_is_not_there_is_not_found(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        for write in (it.cluster.replace, it.cluster.replace_status):
            with pytest.raises(NotFound):
                await write(made, manager=MANAGER)


async def test_a_lease_that_is_not_there_is_created_by_a_replace_unless_it_carries_a_uid(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        put = await it.cluster.replace(
            Lease(metadata=it.metadata("a"), spec=LeaseSpec(holder_identity="me")), manager=MANAGER
        )
        assert await it.cluster.get(Lease, "a", it.namespace) == put
        await it.cluster.delete(Lease, "a", it.namespace)
        with pytest.raises(Conflict):
            await it.cluster.replace(put, manager=MANAGER)
        with pytest.raises(NotFound):
            await it.cluster.get(Lease, "a", it.namespace)


async def test_a_write_that_changes_nothing_keeps_the_version_and_no_watch_hears_of_it(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1, labels={"a": "b"}))
        assert await it.cluster.replace(made, manager="somebody-else") == made
        assert await it.cluster.replace_status(made, manager="somebody-else") == made
        await it.create(it.config("next"))
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=made.metadata.resource_version
        )
        assert seen(await take(watch, 1)) == [("ADDED", "next")]


async def test_generation_grows_by_one_when_anything_outside_metadata_and_status_changed(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (item,) = await it.create(it.config())
        item = await it.cluster.replace(asking(item, 1), manager=MANAGER)
        assert item.metadata.generation == 2
        item = await it.cluster.replace(
            replace(item, metadata=replace(item.metadata, labels={"a": "b"})), manager=MANAGER
        )
        assert item.metadata.generation == 2
        item = await it.cluster.replace(
            replace(asking(item, 2), metadata=replace(item.metadata, generation=77)), manager=MANAGER
        )
        assert item.metadata.generation == 3


async def test_for_a_custom_resource_without_a_status_subresource_status_counts_too(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (item,) = await it.create(
            NodeSlicePool(
                metadata=it.metadata("net"), spec=NodeSlicePoolSpec(range="10.0.0.0/16", slice_size="/24")
            )
        )
        status = NodeSlicePoolStatus(allocations=[], assigned=0, total=256)
        item = await it.cluster.replace(replace(item, status=status), manager=MANAGER)
        assert item.status == status
        assert item.metadata.generation == 2


async def test_replace_ignores_the_status_of_a_kind_with_a_status_subresource(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        granted = replace(made, status=NodeNetworkConfigStatus(assigned_ip_count=5))
        granted = await it.cluster.replace_status(granted, manager=MANAGER)
        wish = replace(asking(granted, 3), status=NodeNetworkConfigStatus(assigned_ip_count=9))
        put = await it.cluster.replace(wish, manager=MANAGER)
        assert (put.spec.requested_ip_count, put.status.assigned_ip_count) == (3, 5)


async def test_replace_status_takes_only_status_and_generation_stays(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1, labels={"a": "b"}))
        wish = replace(
            asking(made, 9),
            metadata=replace(
                made.metadata, labels={}, annotations={"c": "d"}, finalizers=["podtide.example/x"]
            ),
            status=NodeNetworkConfigStatus(assigned_ip_count=5),
        )
        put = await it.cluster.replace_status(wish, manager=MANAGER)
        assert put.spec == made.spec
        assert put.metadata == replace(made.metadata, resource_version=put.metadata.resource_version)
        assert put.status.assigned_ip_count == 5


async def test_replace_status_with_a_stale_version_or_another_uid_is_a_conflict(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        newer = await it.cluster.replace(asking(made, 1), manager=MANAGER)
        status = NodeNetworkConfigStatus(assigned_ip_count=5)
        with pytest.raises(Conflict):
            await it.cluster.replace_status(replace(made, status=status), manager=MANAGER)
        stranger = replace(newer.metadata, uid=OTHER_UID)
        with pytest.raises(Conflict):
            await it.cluster.replace_status(replace(newer, status=status, metadata=stranger), manager=MANAGER)


async def test_replace_status_of_a_kind_without_that_is_not_found(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.pool())
        with pytest.raises(NotFound):
            await it.cluster.replace_status(made, manager=MANAGER)


async def test_a_pods_status_is_replaced(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.pod("a", "n1"))
        running = replace(made, status=PodStatus(phase=PodPhase.RUNNING))
        put = await it.cluster.replace_status(running, manager=MANAGER)
        assert put.status.phase is PodPhase.RUNNING
        assert (await it.cluster.list(Pod, it.namespace, fields="status.phase=Running")).items == [put]


async def test_what_the_schema_does_not_allow_is_not_put_in_place_either(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.pool(_1="default/web"))
        wish = replace(made, spec=replace(made.spec, range=7))
        with pytest.raises(Invalid):
            await it.cluster.replace(wish, manager=MANAGER)
        assert await it.cluster.get(IPPool, "pool-a", it.namespace) == made
