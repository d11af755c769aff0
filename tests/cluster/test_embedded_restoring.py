"""An embedded cluster that goes back to a snapshot, as an etcd that is restored from a backup."""

import asyncio

import pytest
from msgspec import structs

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Conflict, Gone, NotFound
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.namespace import Namespace
from podtide.resources.node import Node
from podtide.resources.pod import Pod, PodSpec
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(clock=LoopClock(), randomness=seeded_randomness(1))


async def make(cluster: EmbeddedCluster, name: str) -> Lease:
    return await cluster.create(Lease(metadata=ObjectMeta(name=name, namespace="default")), manager="test")


def test_objects_are_as_they_were_and_versions_are_given_out_again(cluster: EmbeddedCluster) -> None:
    async def story() -> None:
        kept, doomed = await make(cluster, "kept"), await make(cluster, "doomed")
        pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(node_name="n"))
        pod = await cluster.create(pod, manager="test")
        backup = cluster.snapshot()
        changed = structs.replace(kept, spec=LeaseSpec(holder_identity="me"))
        later = await cluster.replace(changed, manager="test")
        await cluster.delete(Lease, "doomed", "default")
        await make(cluster, "young")
        cluster.restore(backup)
        page = await cluster.list(Lease)
        assert (page.items, page.resource_version) == ([doomed, kept], str(backup.version))
        assert (await cluster.list(Pod, fields="spec.nodeName=n")).items == [pod]
        with pytest.raises(NotFound):
            await cluster.get(Lease, "young", "default")
        with pytest.raises(Conflict):
            await cluster.replace(later, manager="test")
        again = await make(cluster, "other")
        assert again.metadata.resource_version == later.metadata.resource_version

    virtual_time.run(story())


def test_it_is_still_the_same_cluster(cluster: EmbeddedCluster) -> None:
    async def story() -> None:
        backup = cluster.snapshot()  # before anybody asked which cluster it is
        uid = (await cluster.get(Namespace, "kube-system")).metadata.uid
        cluster.restore(backup)
        assert (await cluster.get(Namespace, "kube-system")).metadata.uid == uid

    virtual_time.run(story())


def test_watches_end_and_cannot_be_resumed_from_what_has_not_been_reached(cluster: EmbeddedCluster) -> None:
    async def story() -> None:
        backup = cluster.snapshot()
        await make(cluster, "a")
        last = await make(cluster, "b")
        version = last.metadata.resource_version
        events = cluster.watch(Lease, resource_version=version)
        reading = asyncio.ensure_future(anext(events, None))
        await asyncio.sleep(1)
        cluster.restore(backup)
        await make(cluster, "c")
        assert await reading is None
        with pytest.raises(Gone, match="ahead"):
            await anext(cluster.watch(Lease, resource_version=version))

    virtual_time.run(story())


def test_who_is_owned_by_whom_is_as_it_was(cluster: EmbeddedCluster) -> None:
    async def story() -> None:
        node = await cluster.create(Node(metadata=ObjectMeta(name="n")), manager="test")
        owner = OwnerReference(api_version="v1", kind="Node", name="n", uid=node.metadata.uid)
        owned = Lease(metadata=ObjectMeta(name="l", namespace="default", owner_references=[owner]))
        await cluster.create(owned, manager="test")
        backup = cluster.snapshot()
        await cluster.delete(Node, "n")
        await asyncio.sleep(1)
        assert (await cluster.list(Lease)).items == []
        cluster.restore(backup)
        await asyncio.sleep(1)
        assert len((await cluster.list(Lease)).items) == 1
        await cluster.delete(Node, "n")
        await asyncio.sleep(1)
        assert (await cluster.list(Lease)).items == []

    virtual_time.run(story())
