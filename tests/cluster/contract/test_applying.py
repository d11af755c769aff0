"""`apply`."""

import pytest
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, OpenCluster, seen, take
from podtide.cluster.port import Conflict, NotFound
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.node_network_config import (
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.node_slice_pool import NodeSlicePool, NodeSlicePoolSpec, NodeSlicePoolStatus


def subnet(metadata: ObjectMeta, batch: int | None = None, buffer: float | None = None) -> ClusterSubnet:
    return ClusterSubnet(
        metadata=metadata, spec=ClusterSubnetSpec(scaler=ScalerOverride(batch=batch, buffer=buffer))
    )


def scaler(item: ClusterSubnet) -> tuple[int | None, float | None]:
    return item.spec.scaler.batch, item.spec.scaler.buffer


async def test_an_absent_object_is_created(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        made = await it.cluster.apply(it.config(requested=16), manager="agent")
        assert made.metadata.uid
        assert made.metadata.generation == 1
        assert made.spec.requested_ip_count == 16
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_an_item_that_carries_a_uid_is_never_created(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        with pytest.raises(Conflict):
            await it.cluster.apply(it.config(requested=1, uid=made.metadata.uid), manager="agent")
        with pytest.raises(NotFound):
            await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)


async def test_an_item_with_the_uid_of_an_earlier_object_is_a_conflict(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (first,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        (second,) = await it.create(it.config())
        with pytest.raises(Conflict):
            await it.cluster.apply(it.config(requested=1, uid=first.metadata.uid), manager="agent")
        put = await it.cluster.apply(it.config(requested=1, uid=second.metadata.uid), manager="agent")
        assert put.spec.requested_ip_count == 1


async def test_with_a_resource_version_it_must_be_the_current_one(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        stale = made.metadata.resource_version
        newer = await it.cluster.apply(it.config(requested=1), manager="agent")
        with pytest.raises(Conflict):
            await it.cluster.apply(it.config(requested=2, resource_version=stale), manager="agent")
        current = newer.metadata.resource_version
        put = await it.cluster.apply(it.config(requested=2, resource_version=current), manager="agent")
        assert put.spec.requested_ip_count == 2


async def test_a_resource_version_without_an_object_creates_it(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        await it.cluster.delete(NodeNetworkConfig, "node-a", it.namespace)
        version = made.metadata.resource_version
        put = await it.cluster.apply(it.config(requested=2, resource_version=version), manager="agent")
        assert put.metadata.uid != made.metadata.uid


async def test_applying_the_same_again_changes_nothing(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        wish = it.config(requested=16, labels={"a": "b"}, finalizers=["podtide.example/held"])
        made = await it.cluster.apply(wish, manager="agent")
        assert await it.cluster.apply(wish, manager="agent") == made
        assert await it.cluster.apply(made, manager="agent") == made
        await it.create(it.config("next"))
        watch = it.cluster.watch(
            NodeNetworkConfig, it.namespace, resource_version=made.metadata.resource_version
        )
        assert seen(await take(watch, 1)) == [("ADDED", "next")]


async def test_generation_grows_when_an_apply_changes_the_spec(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.cluster.apply(it.config(requested=1), manager="agent")
        assert (await it.cluster.apply(it.config(requested=2), manager="agent")).metadata.generation == 2
        labelled = await it.cluster.apply(it.config(requested=2, labels={"a": "b"}), manager="agent")
        assert labelled.metadata.generation == 2


async def test_a_field_applied_before_and_left_out_now_is_removed(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        wish = it.config(requested=1, labels={"a": "x", "b": "y"}, annotations={"waiting": "3"})
        released = replace(
            wish, spec=NodeNetworkConfigSpec(requested_ip_count=1, ips_not_in_use=["ip-1", "ip-2"])
        )
        put = await it.cluster.apply(released, manager="agent")
        assert put.spec.ips_not_in_use == ["ip-1", "ip-2"]
        put = await it.cluster.apply(it.config(requested=1, labels={"b": "y"}), manager="agent")
        assert put.spec.ips_not_in_use == []
        assert put.metadata.labels == {"b": "y"}
        assert put.metadata.annotations == {}


async def test_a_field_left_out_stays_when_another_manager_owns_it_too(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for manager in ("one", "other"):
            await it.cluster.apply(it.config(labels={"shared": "x", manager: "x"}), manager=manager)
        put = await it.cluster.apply(it.config(), manager="one")
        assert put.metadata.labels == {"shared": "x", "other": "x"}
        put = await it.cluster.apply(it.config(), manager="other")
        assert put.metadata.labels == {}


async def test_fields_of_others_stay(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.cluster.apply(subnet(it.metadata("net"), batch=8), manager="one")
        both = await it.cluster.apply(subnet(it.metadata("net"), buffer=0.5), manager="other")
        assert scaler(both) == (8, 0.5)
        only = await it.cluster.apply(subnet(it.metadata("net")), manager="one")
        assert scaler(only) == (None, 0.5)


async def test_without_force_a_field_another_set_to_another_value_is_a_conflict(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        made = await it.cluster.apply(subnet(it.metadata("net"), batch=8), manager="one")
        with pytest.raises(Conflict, match=r"spec\.scaler\.batch"):
            await it.cluster.apply(subnet(it.metadata("net"), batch=4), manager="other", force=False)
        assert await it.cluster.get(ClusterSubnet, "net", it.namespace) == made


async def test_without_force_stating_the_same_value_shares_the_field(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.cluster.apply(subnet(it.metadata("net"), batch=8), manager="one")
        await it.cluster.apply(subnet(it.metadata("net"), batch=8), manager="other", force=False)
        with pytest.raises(Conflict):
            await it.cluster.apply(subnet(it.metadata("net"), batch=4), manager="one", force=False)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="one")) == (8, None)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="other")) == (None, None)


async def test_with_force_the_field_changes_hands(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.cluster.apply(subnet(it.metadata("net"), batch=8, buffer=0.5), manager="one")
        taken = await it.cluster.apply(subnet(it.metadata("net"), batch=4), manager="other")
        assert scaler(taken) == (4, 0.5)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="other")) == (None, 0.5)


async def test_who_lost_a_field_may_leave_it_out_without_removing_it(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.cluster.apply(subnet(it.metadata("net"), batch=8, buffer=0.5), manager="one")
        await it.cluster.apply(subnet(it.metadata("net"), batch=4), manager="other")
        with pytest.raises(Conflict):
            await it.cluster.apply(
                subnet(it.metadata("net"), batch=8, buffer=0.5), manager="one", force=False
            )
        left = await it.cluster.apply(subnet(it.metadata("net"), buffer=0.5), manager="one", force=False)
        assert scaler(left) == (4, 0.5)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="other")) == (None, 0.5)


async def test_who_creates_owns_what_was_created(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(subnet(it.metadata("net"), batch=8))
        with pytest.raises(Conflict):
            await it.cluster.apply(subnet(it.metadata("net"), batch=4), manager="other", force=False)
        await it.cluster.apply(subnet(it.metadata("net"), batch=8), manager="other", force=False)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="other")) == (8, None)


async def test_who_replaces_owns_what_that_changed(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        made = await it.cluster.apply(subnet(it.metadata("net"), batch=8, buffer=0.5), manager="one")
        scaler_now = replace(made.spec.scaler, batch=4)
        await it.cluster.replace(replace(made, spec=ClusterSubnetSpec(scaler=scaler_now)), manager="person")
        with pytest.raises(Conflict):
            await it.cluster.apply(
                subnet(it.metadata("net"), batch=8, buffer=0.5), manager="one", force=False
            )
        await it.cluster.apply(subnet(it.metadata("net"), buffer=0.25), manager="one", force=False)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="one")) == (4, None)


async def test_a_field_that_a_replace_removed_is_nobodys(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        made = await it.cluster.apply(subnet(it.metadata("net"), batch=8, buffer=0.5), manager="one")
        bare = replace(made, spec=ClusterSubnetSpec(scaler=ScalerOverride(buffer=0.5)))
        await it.cluster.replace(bare, manager="person")
        put = await it.cluster.apply(subnet(it.metadata("net"), batch=2), manager="other", force=False)
        assert scaler(put) == (2, 0.5)


async def test_who_creates_is_another_manager_than_who_applies_under_the_same_name(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.cluster.create(subnet(it.metadata("net"), batch=8), manager="same")
        with pytest.raises(Conflict):
            await it.cluster.apply(subnet(it.metadata("net"), batch=4), manager="same", force=False)
        await it.cluster.apply(subnet(it.metadata("net"), batch=8), manager="same", force=False)
        assert scaler(await it.cluster.apply(subnet(it.metadata("net")), manager="same")) == (8, None)


async def test_lists_are_owned_as_a_whole(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for manager, names in (("one", ["a", "b"]), ("other", ["c"])):
            spec = NodeNetworkConfigSpec(ips_not_in_use=names)
            put = await it.cluster.apply(replace(it.config(), spec=spec), manager=manager)
            assert put.spec.ips_not_in_use == names
        put = await it.cluster.apply(it.config(), manager="one")
        assert put.spec.ips_not_in_use == ["c"]


async def test_maps_are_owned_entry_by_entry(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        one = it.pool(_1="default/one", _2="default/shared")
        other = it.pool(_2="default/shared", _3="default/other")
        await it.cluster.apply(one, manager="one")
        both = await it.cluster.apply(other, manager="other", force=False)
        assert set(both.spec.allocations) == {"1", "2", "3"}
        left = await it.cluster.apply(it.pool(), manager="one")
        assert set(left.spec.allocations) == {"2", "3"}


async def test_an_entrys_fields_are_owned_one_by_one(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:

        def pool(ifname: str) -> IPPool:
            taken = {"1": IPAllocation(id="sandbox", podref="default/web", ifname=ifname)}
            return IPPool(
                metadata=it.metadata("pool-a"), spec=IPPoolSpec(range="10.0.0.0/24", allocations=taken)
            )

        await it.cluster.apply(pool(""), manager="one")
        await it.cluster.apply(pool("eth0"), manager="other", force=False)
        put = await it.cluster.apply(pool(""), manager="one", force=False)
        assert put.spec.allocations["1"].ifname == "eth0"
        put = await it.cluster.apply(pool(""), manager="other", force=False)
        assert put.spec.allocations["1"].ifname == ""


async def test_finalizers_of_several_managers_add_up(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.cluster.apply(it.config(finalizers=["podtide.example/one"]), manager="one")
        put = await it.cluster.apply(it.config(finalizers=["podtide.example/other"]), manager="other")
        assert sorted(put.metadata.finalizers) == ["podtide.example/one", "podtide.example/other"]
        put = await it.cluster.apply(it.config(), manager="one")
        assert put.metadata.finalizers == ["podtide.example/other"]
        await it.cluster.apply(it.config(), manager="other")


async def test_conditions_are_owned_by_type(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:

        def slices(*types: str) -> NodeSlicePool:
            conditions = [
                Condition(
                    type=name,
                    status=ConditionStatus.TRUE,
                    last_transition_time="2026-11-05T12:00:00Z",
                    reason="Sliced",
                    message="",
                )
                for name in types
            ]
            return NodeSlicePool(
                metadata=it.metadata("net"),
                spec=NodeSlicePoolSpec(range="10.0.0.0/16", slice_size="/24"),
                status=NodeSlicePoolStatus(allocations=[], conditions=conditions),
            )

        def types(item: NodeSlicePool) -> set[str]:
            assert item.status is not None
            return {condition.type for condition in item.status.conditions}

        await it.cluster.apply(slices("Ready", "Sliced"), manager="one")
        both = await it.cluster.apply(slices("Full", "Sliced"), manager="other", force=False)
        assert types(both) == {"Ready", "Sliced", "Full"}
        assert types(await it.cluster.apply(slices(), manager="one")) == {"Sliced", "Full"}
        assert types(await it.cluster.apply(slices("Full"), manager="other")) == {"Full"}


async def test_an_apply_ignores_the_status_of_a_kind_with_a_status_subresource(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        status = NodeNetworkConfigStatus(assigned_ip_count=5)
        made = await it.cluster.apply(replace(it.config(), status=status), manager="agent")
        assert made.status.assigned_ip_count == 0
        granted = await it.cluster.replace_status(replace(made, status=status), manager=MANAGER)
        put = await it.cluster.apply(it.config(requested=1), manager="agent")
        assert (put.spec.requested_ip_count, put.status) == (1, granted.status)
