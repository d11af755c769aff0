"""`create`."""

import pytest
from msgspec.structs import replace

from cluster.contract.harness import OpenCluster
from control_plane.versions import RELEASE
from podtide.cluster.port import AlreadyExists, Invalid
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node import Node, NodeAddress, NodeStatus
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigStatus
from podtide.resources.pod import Pod, PodPhase, PodStatus
from podtide.resources.timestamps import to_wall_seconds


async def test_the_answer_carries_uid_version_generation_1_and_creation_time(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=16, labels={"a": "b"}, annotations={"c": "d"}))
        metadata = made.metadata
        assert metadata.uid
        assert metadata.resource_version
        assert metadata.generation == 1
        assert metadata.creation_timestamp is not None
        assert to_wall_seconds(metadata.creation_timestamp) > 0
        assert (metadata.labels, metadata.annotations) == ({"a": "b"}, {"c": "d"})
        assert made.spec.requested_ip_count == 16


async def test_every_object_has_a_uid_and_a_version_of_its_own(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        made = [item.metadata for item in await it.create(*(it.config(name) for name in "abc"))]
        made += [item.metadata for item in await it.create(it.pool("a"))]
        assert len({metadata.uid for metadata in made}) == 4
        assert len({metadata.resource_version for metadata in made}) == 4


async def test_an_object_made_again_under_its_name_has_another_uid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (first,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        (second,) = await it.create(it.config())
        assert first.metadata.uid != second.metadata.uid


@pytest.mark.skipif(RELEASE == "1.32", reason="Kubernetes 1.32 counts no generations of pods")
async def test_generations_are_counted_for_pods_and_custom_resources_only(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        assert (await it.create(it.pod("a")))[0].metadata.generation == 1
        assert (await it.create(it.pool()))[0].metadata.generation == 1
        assert (await it.create(Lease(metadata=it.metadata("a"))))[0].metadata.generation == 0
        name = f"{it.namespace}-node"
        assert (await it.create(Node(metadata=ObjectMeta(name=name))))[0].metadata.generation == 0
        await it.cluster.delete(Node, name)


async def test_a_name_that_is_taken_already_exists(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=1))
        with pytest.raises(AlreadyExists):
            await it.create(it.config(requested=2))
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_the_same_name_is_free_in_another_namespace_and_for_another_kind(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.create(it.config("a"), it.config("a", namespace=it.other_namespace))
        await it.create(it.pool("a"))


async def test_an_item_that_carries_a_resource_version_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        with pytest.raises(Invalid):
            await it.create(made)


async def test_a_uid_is_ignored(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        uid = "00000000-0000-4000-8000-000000000000"
        (made,) = await it.create(it.config(uid=uid))
        assert made.metadata.uid not in {"", uid}


async def test_what_the_kinds_schema_does_not_allow_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for scaler in (ScalerOverride(batch=0), ScalerOverride(buffer=-1.0)):
            with pytest.raises(Invalid):
                await it.create(
                    ClusterSubnet(metadata=it.metadata("net"), spec=ClusterSubnetSpec(scaler=scaler))
                )
        assert (await it.cluster.list(ClusterSubnet, it.namespace)).items == []


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "a" * 254, "a/b"])
async def test_a_name_that_kubernetes_does_not_allow_is_invalid(open_cluster: OpenCluster, name: str) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await it.create(it.config(name))


async def test_a_label_that_kubernetes_does_not_allow_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for labels in ({"a b": "x"}, {"a": "x y"}, {"a": "x" * 64}, {"Upper.example/a": "x"}):
            with pytest.raises(Invalid):
                await it.create(it.config(labels=labels))


async def test_for_a_kind_with_a_status_subresource_the_status_sent_is_ignored(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(replace(it.config(), status=NodeNetworkConfigStatus(assigned_ip_count=5)))
        assert made.status == NodeNetworkConfigStatus()


async def test_a_nodes_first_status_is_taken(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        name = f"{it.namespace}-node"
        status = NodeStatus(addresses=[NodeAddress(type="InternalIP", address="192.0.2.1")])
        (made,) = await it.create(Node(metadata=ObjectMeta(name=name), status=status))
        assert made.status == status
        await it.cluster.delete(Node, name)


async def test_a_pod_starts_as_pending(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        sent = replace(it.pod("a"), status=PodStatus(phase=PodPhase.RUNNING, pod_ip="10.0.0.1"))
        (made,) = await it.create(sent)
        assert made.status == PodStatus(phase=PodPhase.PENDING)
        assert (await it.cluster.list(Pod, it.namespace, fields="status.phase=Pending")).items == [made]


async def test_with_generate_name_and_no_name_the_server_makes_one_up(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        wish = Lease(metadata=it.metadata("", generate_name="part-"), spec=LeaseSpec(holder_identity="me"))
        made = await it.create(wish, wish, wish)
        made_up = {item.metadata.name for item in made}
        assert len(made_up) == 3
        assert all(name.startswith("part-") and len(name) > len("part-") for name in made_up)
        for item in made:
            assert await it.cluster.get(Lease, item.metadata.name, it.namespace) == item


async def test_without_a_name_an_apply_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await it.cluster.apply(it.config(""), manager="agent")


async def test_without_a_name_and_a_prefix_it_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await it.create(it.config(""))
