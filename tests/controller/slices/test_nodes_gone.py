"""A node goes: its slice rests, then all that is left of it is collected, and only then the slice is another's."""

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.slices.network_world import QUARANTINE, NetworkWorld, a_network_world, conf, ipam, moment
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import (
    MACHINE_ANNOTATION,
    NODE_ANNOTATION,
    NODE_GONE_ANNOTATION,
    NODE_UID_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.node import Node, NodeStatus, NodeSystemInfo
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

BLUE = conf(ipam(network_name="blue"))


async def is_resting(world: NetworkWorld, pool: str) -> bool:
    return NODE_GONE_ANNOTATION in (await world.pool(pool)).metadata.annotations


async def test_a_slice_rests_for_the_quarantine_before_it_is_anothers() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.remove_node("n1")
        await moment()
        await world.add_nodes("n2")
        await moment(QUARANTINE - 5)
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        await moment(5)
        await world.add_nodes("n3")
        await moment()
        assert await world.assigned("blue") == {"n3": "10.0.0.0/24", "n2": "10.0.1.0/24"}


async def test_the_quarantine_goes_on_when_the_controller_is_replaced() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.remove_node("n1")
        await moment()
        since = (await world.pool("blue-n1")).metadata.annotations[NODE_GONE_ANNOTATION]
        await moment(QUARANTINE / 2)
        await world.start()
        assert (await world.pool("blue-n1")).metadata.annotations[NODE_GONE_ANNOTATION] == since
        await moment(QUARANTINE / 2)
        assert await world.names(IPPool) == []


async def test_a_node_that_went_while_no_controller_ran_is_noticed() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        await world.remove_node("n1")
        await world.start()
        assert await is_resting(world, "blue-n1")
        await moment(QUARANTINE)
        assert await world.names(IPPool) == []


async def test_a_slice_in_which_pods_hold_addresses_stays_until_they_are_released() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.hold("blue-n1", 5)
        await world.remove_node("n1")
        await moment(10 * QUARANTINE)
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        await world.hold("blue-n1")
        await moment()
        assert await world.assigned("blue") == {}
        assert await world.names(IPPool) == []


async def test_pool_lease_and_reservations_go_and_those_of_others_stay() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", BLUE)
        await world.start()
        for pool in ("blue-n1", "blue-n2"):
            await world.lease_of_pool(pool, pool.removeprefix("blue-"))
        for name in ("blue-10.0.0.7", "blue-10.0.1.7", "red-10.0.0.7", "10.0.0.7"):
            await world.reserve(name)
        await world.remove_node("n1")
        await moment(QUARANTINE + 5)
        assert await world.names(IPPool) == await world.names(Lease) == ["blue-n2"]
        left = await world.names(OverlappingRangeIPReservation)
        assert left == ["10.0.0.7", "blue-10.0.1.7", "red-10.0.0.7"]


async def test_a_reservation_that_may_be_of_a_pool_that_overlaps_the_slice_stays() -> None:
    async with a_network_world("n1") as world:
        await world.define("sliced", conf(ipam()))
        await world.start()
        await world.add_pool("10.0.0.0-25", "10.0.0.0/25", 5)  # another unnamed network's, which came later
        for name in ("10.0.0.5", "10.0.0.200"):
            await world.reserve(name)
        await world.remove_node("n1")
        await moment(QUARANTINE + 5)
        assert await world.names(IPPool) == ["10.0.0.0-25"]
        assert await world.names(OverlappingRangeIPReservation) == ["10.0.0.5"]


@pytest.mark.parametrize(
    ("holder", "mark"),
    [("control-plane-1_0f3c", "scheduler"), ("", ""), ("scheduler", ""), ("", "another")],
    ids=["held by another", "free", "held in the node's name", "of another node"],
)
async def test_a_lease_of_the_pools_name_that_is_somebody_elses_stays(holder: str, mark: str) -> None:
    async with a_network_world("scheduler") as world:
        await world.define("kube", conf(ipam(network_name="kube")))
        await world.start()
        await world.lease("kube-scheduler", holder, **({NODE_ANNOTATION: mark} if mark else {}))
        await world.remove_node("scheduler")
        await moment(QUARANTINE + 5)
        assert await world.names(IPPool) == []
        assert await world.names(Lease) == ["kube-scheduler"]


async def test_all_is_collected_before_the_slice_is_freed() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await world.lease_of_pool("blue-n1", "n1")
        await world.reserve("blue-10.0.0.7")
        await world.remove_node("n1")
        written = len(replica.cluster.writes)
        await moment(QUARANTINE + 5)
        assert replica.cluster.writes[written:] == [
            "replace IPPool",
            "delete IPPool",
            "delete Lease",
            "delete OverlappingRangeIPReservation",
            "replace NodeSlicePool",
        ]


async def test_what_a_copy_lacks_is_not_gone() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", BLUE)
        await world.start()
        for before in world.replicas:
            await before.stop()
        replica = await world.start_blind_to("n1")
        written = len(replica.cluster.writes)
        await moment(2 * QUARANTINE)
        assert len(replica.cluster.writes) == written == 0
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}


async def test_a_pool_that_a_copy_lacks_is_not_gone_either() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await (await world.start()).stop()
        await world.hold("blue-n1", 5)
        await world.remove_node("n1")
        replica = await world.start_blind_to("blue-n1")
        await world.add_nodes("n2", "n3", "n4", "n5")
        await moment(60)
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        assert replica.cluster.writes == []
        await world.hold("blue-n1", 5, 6)  # and now it hears of it
        await moment(60)
        assert sorted(await world.assigned("blue")) == ["n1", "n2", "n3", "n4"]


async def test_a_copy_that_shows_an_older_node_of_that_name_does_not_make_the_newer_one_gone() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        replica.cluster.turn_deaf(Node)
        await world.remove_node("n1")
        [newer] = await world.add_nodes("n1")
        pool = await world.pool("blue-n1")
        notes = pool.metadata.annotations | {NODE_UID_ANNOTATION: newer.metadata.uid}
        await world.cluster.replace(
            structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=notes)),
            manager="another",
        )
        await moment(2 * QUARANTINE)
        assert not await is_resting(world, "blue-n1")


async def test_a_node_that_comes_back_under_its_name_has_no_pool_until_the_quarantine_is_over() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        before = await world.cluster.get(Node, "n1")
        await world.hold("blue-n1", 5)
        await world.remove_node("n1")
        [after] = await world.add_nodes("n1")
        await moment(QUARANTINE - 5)
        resting = await world.pool("blue-n1")
        assert resting.metadata.annotations[NODE_UID_ANNOTATION] == before.metadata.uid
        assert NODE_GONE_ANNOTATION in resting.metadata.annotations
        await moment(10)
        handed_over = await world.pool("blue-n1")
        assert handed_over.metadata.annotations[NODE_UID_ANNOTATION] == after.metadata.uid
        assert NODE_GONE_ANNOTATION not in handed_over.metadata.annotations
        assert list(handed_over.spec.allocations) == ["5"]  # who outlived the old Node keeps his address
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_a_node_that_comes_back_during_the_quarantine_does_not_prolong_it() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.hold("blue-n1", 5)
        await world.remove_node("n1")
        await moment(QUARANTINE / 2)
        [after] = await world.add_nodes("n1")
        await moment(QUARANTINE / 2 + 5)
        pool = await world.pool("blue-n1")
        assert pool.metadata.annotations[NODE_UID_ANNOTATION] == after.metadata.uid


async def test_a_pool_that_is_written_to_while_it_is_collected_stays() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        faults = Script()
        await world.start(faults)
        await world.remove_node("n1")
        await moment(QUARANTINE - 5)
        faults.steps["delete"] = [20.0]  # the request to delete it is on its way, and late
        await moment(10)
        await world.hold("blue-n1", 9)
        await moment(60)
        assert list((await world.pool("blue-n1")).spec.allocations) == ["9"]
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_an_entry_without_a_pool_is_freed_at_once_when_its_node_is_gone() -> None:
    async with a_network_world("n1") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", ("gone", "10.0.0.0/24"))
        await world.define("blue", BLUE)
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_a_mark_that_cannot_be_read_begins_the_quarantine_again() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.remove_node("n1")
        await moment()
        pool = await world.pool("blue-n1")
        notes = pool.metadata.annotations | {NODE_GONE_ANNOTATION: "yesterday"}
        await world.cluster.replace(
            structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=notes)),
            manager="kubectl",
        )
        await moment(QUARANTINE - 5)
        assert await world.find(IPPool, "blue-n1", SYSTEM_NAMESPACE) is not None
        await moment(10)
        assert await world.find(IPPool, "blue-n1", SYSTEM_NAMESPACE) is None


@pytest.mark.parametrize("seconds", [0.0, QUARANTINE / 2])
async def test_a_node_replaced_under_its_name_waits_for_nothing_where_nothing_was_in_use(
    seconds: float,
) -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.remove_node("n1")
        await moment(seconds)
        [after] = await world.add_nodes("n1")
        await moment()
        pool = await world.pool("blue-n1")
        assert pool.metadata.annotations[NODE_UID_ANNOTATION] == after.metadata.uid
        assert NODE_GONE_ANNOTATION not in pool.metadata.annotations


async def test_a_pool_that_was_written_to_meanwhile_is_not_handed_over_as_empty() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        faults = Script()
        await world.start(faults)
        before = await world.cluster.get(Node, "n1")
        await world.remove_node("n1")
        await moment()
        faults.steps["replace"] = [5.0]  # the request to hand it over is on its way, and late
        await world.add_nodes("n1")
        await moment(1)
        await world.hold("blue-n1", 9)
        await moment(60)
        pool = await world.pool("blue-n1")
        assert pool.metadata.annotations[NODE_UID_ANNOTATION] == before.metadata.uid


@pytest.mark.parametrize("boot", ["b1", "b2"])
async def test_a_node_registered_again_on_its_machine_has_its_pool_at_once_and_its_pods_keep_theirs(
    boot: str,
) -> None:
    async with a_network_world() as world:
        await world.define("blue", BLUE)
        await world.start()
        await join(world, "b1")
        await world.hold("blue-n1", 5)
        await world.remove_node("n1")
        await moment()
        after = await join(world, boot)
        pool = await world.pool("blue-n1")
        assert pool.metadata.annotations[NODE_UID_ANNOTATION] == after.metadata.uid
        assert pool.metadata.annotations[MACHINE_ANNOTATION] == f"m1 s1 {boot}"
        assert list(pool.spec.allocations) == ["5"]


async def join(world: NetworkWorld, boot: str) -> Node:
    info = NodeSystemInfo(machine_id="m1", system_uuid="s1", boot_id=boot)
    node = Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(node_info=info))
    made = await world.cluster.create(node, manager="kubelet")
    await moment()
    return made
