"""`delete`, finalizers and what the garbage collector takes."""

import asyncio

import pytest
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, ClusterUnderTest, OpenCluster, seen, take
from patience import PATIENCE_SECONDS
from podtide.cluster.port import AlreadyExists, Change, Conflict, Invalid, NotFound
from podtide.resources.base import ObjectMeta, OwnerReference, Resource
from podtide.resources.ip_pool import IPPool
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.pod import Pod, PodPhase, PodStatus
from podtide.resources.timestamps import to_wall_seconds

OTHER_UID = "00000000-0000-4000-8000-000000000000"
HELD = "podtide.example/held"
KEPT = "podtide.example/kept"


def owner(item: Resource) -> OwnerReference:
    return OwnerReference(
        api_version=item.api.api_version, kind=item.api.kind, name=item.metadata.name, uid=item.metadata.uid
    )


async def test_without_finalizers_the_object_is_gone_at_once(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        with pytest.raises(NotFound):
            await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=made.metadata.resource_version
        )
        assert seen(await take(watch, 1)) == [("DELETED", "node-a")]


async def test_deleting_what_is_not_there_is_not_found(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(NotFound):
            await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        with pytest.raises(NotFound):
            await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace, uid=OTHER_UID)


async def test_a_delete_of_another_uid_or_version_is_a_conflict(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        newer = await it.cluster.apply(it.config(requested=1), manager=MANAGER)
        stale = made.metadata.resource_version
        with pytest.raises(Conflict):
            await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace, uid=OTHER_UID)
        with pytest.raises(Conflict):
            await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace, resource_version=stale)
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == newer
        uid, version = newer.metadata.uid, newer.metadata.resource_version
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace, uid=uid, resource_version=version)
        await it.gone(newer)


async def test_with_finalizers_left_it_gets_a_deletion_timestamp_and_stays(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(finalizers=[HELD]))
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        marked = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        assert marked.metadata.deletion_timestamp is not None
        assert to_wall_seconds(marked.metadata.deletion_timestamp) > 0
        assert marked.metadata.generation == made.metadata.generation + 1
        assert marked.spec == made.spec
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=made.metadata.resource_version
        )
        (event,) = await take(watch, 1)
        assert (event.change, event.item) == (Change.MODIFIED, marked)
        with pytest.raises(AlreadyExists):
            await it.create(it.config())
        await release(it, marked)


async def release(it: ClusterUnderTest, item: NodeNetworkConfig, *left: str) -> NodeNetworkConfig:
    metadata = replace(item.metadata, finalizers=list(left))
    return await it.cluster.replace(replace(item, metadata=metadata), manager=MANAGER)


async def test_asking_again_changes_nothing(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config(finalizers=[HELD]))
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        marked = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == marked
        await release(it, marked)


async def test_taking_away_the_last_finalizer_of_what_is_being_deleted_removes_it(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.create(it.config(finalizers=[HELD, KEPT]))
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        marked = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        one_left = await release(it, marked, KEPT)
        assert one_left.metadata.finalizers == [KEPT]
        await release(it, one_left)
        with pytest.raises(NotFound):
            await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=marked.metadata.resource_version
        )
        assert seen(await take(watch, 2)) == [("MODIFIED", "node-a"), ("DELETED", "node-a")]


async def test_an_apply_that_leaves_out_its_finalizer_removes_what_is_being_deleted(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        made = await it.cluster.apply(it.config(finalizers=[HELD]), manager="controller")
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        await it.cluster.apply(it.config(uid=made.metadata.uid), manager="controller")
        await it.gone(made)


async def test_taking_away_a_finalizer_of_what_is_not_being_deleted_keeps_it(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(finalizers=[HELD]))
        put = await release(it, made)
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == put


async def test_adding_a_finalizer_to_what_is_being_deleted_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config(finalizers=[HELD]))
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        marked = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        with pytest.raises(Invalid):
            await release(it, marked, HELD, KEPT)
        await release(it, marked)


async def test_what_is_being_deleted_can_still_be_written(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config(finalizers=[HELD]))
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        marked = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        unmarked = replace(marked.metadata, deletion_timestamp=None, deletion_grace_period_seconds=None)
        wish = replace(marked, spec=NodeNetworkConfigSpec(requested_ip_count=3), metadata=unmarked)
        put = await it.cluster.replace(wish, manager=MANAGER)
        assert put.spec.requested_ip_count == 3
        assert put.metadata.deletion_timestamp == marked.metadata.deletion_timestamp
        await release(it, put)


async def test_a_pod_bound_to_a_node_is_only_marked_until_it_is_finished(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.pod("a", "n1"))
        await it.cluster.delete(Pod, "a", it.namespace)
        marked = await it.cluster.get(Pod, "a", it.namespace)
        assert marked.metadata.deletion_timestamp is not None
        assert marked.metadata.deletion_grace_period_seconds == 30
        await it.cluster.replace_status(
            replace(marked, status=PodStatus(phase=PodPhase.FAILED)), manager=MANAGER
        )
        await it.cluster.delete(Pod, "a", it.namespace)
        await it.gone(marked)


async def test_a_pod_bound_to_no_node_is_gone_at_once(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.pod("a"))
        await it.cluster.delete(Pod, "a", it.namespace)
        with pytest.raises(NotFound):
            await it.cluster.get(Pod, "a", it.namespace)


async def test_what_an_object_owned_is_collected(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        name = f"{it.namespace}-node"
        (node,) = await it.create(Node(metadata=ObjectMeta(name=name)))
        (config,) = await it.create(it.config(owner_references=[owner(node)]))
        pool = it.pool()
        (pool,) = await it.create(
            replace(pool, metadata=replace(pool.metadata, owner_references=[owner(config)]))
        )
        (unowned,) = await it.create(it.config("unowned"))
        await it.cluster.delete(Node, name)
        await it.gone(config)
        await it.gone(pool)
        assert await it.cluster.get(NodeNetworkConfig, "unowned", it.namespace) == unowned


async def test_a_watch_hears_of_what_is_collected(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (parent,) = await it.create(it.pool())
        (child,) = await it.create(it.config(owner_references=[owner(parent)]))
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=child.metadata.resource_version
        )
        reading = asyncio.create_task(take(watch, 1))
        await it.cluster.delete(IPPool, "pool-a", it.namespace)
        assert seen(await reading) == [("DELETED", "node-a")]


async def test_what_is_collected_and_has_finalizers_is_marked(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (parent,) = await it.create(it.pool())
        (child,) = await it.create(it.config(owner_references=[owner(parent)], finalizers=[HELD]))
        await it.cluster.delete(IPPool, "pool-a", it.namespace)
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=child.metadata.resource_version
        )
        (event,) = await take(watch, 1)
        assert event.item is not None
        assert event.item.metadata.deletion_timestamp is not None
        await release(it, event.item)
        await it.gone(child)


async def test_an_owner_with_finalizers_keeps_what_it_owns_until_it_is_gone(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (parent,) = await it.create(it.config("parent", finalizers=[HELD]))
        (child,) = await it.create(it.config("child", owner_references=[owner(parent)]))
        await it.cluster.delete(NodeNetworkConfig, "parent", it.namespace)
        await asyncio.sleep(0.2)
        assert await it.cluster.get(NodeNetworkConfig, "child", it.namespace) == child
        await release(it, await it.cluster.get(NodeNetworkConfig, "parent", it.namespace))
        await it.gone(child)


async def test_an_owner_that_is_gone_is_struck_off_where_others_are_left(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        first, second = await it.create(it.pool("first"), it.pool("second"))
        (child,) = await it.create(it.config(owner_references=[owner(first), owner(second)]))
        await it.cluster.delete(IPPool, "first", it.namespace)
        async with asyncio.timeout(PATIENCE_SECONDS):
            left = child
            while len(left.metadata.owner_references) > 1:
                await asyncio.sleep(0.05)
                left = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        assert left.metadata.owner_references == [owner(second)]
        await it.cluster.delete(IPPool, "second", it.namespace)
        await it.gone(child)


async def test_what_names_only_owners_that_never_were_is_collected(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (pool,) = await it.create(it.pool())
        nobody = replace(owner(pool), uid=OTHER_UID)
        (child,) = await it.create(it.config(owner_references=[nobody]))
        await it.gone(child)


async def test_an_object_made_again_under_its_name_does_not_own_what_the_first_did(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (parent,) = await it.create(it.pool())
        (child,) = await it.create(it.config(owner_references=[owner(parent)]))
        await it.cluster.delete(IPPool, "pool-a", it.namespace)
        await it.create(it.pool())
        await it.gone(child)
