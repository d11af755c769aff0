"""What Nodes publish for schedulers: the resource in their status, the taint, and the conditions about both."""

from fractions import Fraction
from typing import Any

from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, World, a_world, condition, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.cluster.port import Patch
from podtide.core.subnet.placement import LOWER_EVERY_SECONDS
from podtide.resources.metadata_keys import (
    IPV4_RESOURCE,
    IPV6_RESOURCE,
    NO_ADDRESSES_TAINT,
    SYSTEM_NAMESPACE,
    UNREQUESTED_ANNOTATION,
)
from podtide.resources.node import Node, Taint
from podtide.resources.node_network_config import NodeNetworkConfig

PLACEMENT = structs.replace(OPTIONS, placement=True)
TAINTING = structs.replace(PLACEMENT, placement_taint=True)
CAN_HAVE = 11
"""Pods of two nodes in a /28: 13 addresses, of which each node has one."""


async def publishing(world: World, *demands: int, options: Any = PLACEMENT) -> list[str]:
    """A controller, and nodes n0, n1, … whose agents state these demands."""
    world.replica(options).start()
    names = [f"n{index}" for index in range(len(demands))]
    for name in names:
        await world.add_node(name)
    await moment()
    for name, demand in zip(names, demands, strict=True):
        await state(world, name, demand)
    await moment(10)
    return names


async def state(world: World, name: str, demand: int) -> None:
    """State a demand as an agent does in a starved subnet: exactly, and keeping nothing in reserve."""
    await world.state(name, demand, batch=1, buffer=Fraction(0))


async def published(world: World, *names: str) -> list[str]:
    """What Nodes publish, in capacity and allocatable alike; "" for nothing."""
    numbers = []
    for name in names:
        status = (await world.cluster.get(Node, name)).status
        assert status.capacity.get(IPV4_RESOURCE) == status.allocatable.get(IPV4_RESOURCE)
        numbers.append(status.capacity.get(IPV4_RESOURCE, ""))
    return numbers


async def patch(world: World, name: str, changes: dict[str, Any], *, status: bool = True) -> None:
    await world.cluster.patch(Patch(Node, name, changes=changes, status=status), manager="kubelet")


async def is_tainted(world: World, name: str) -> bool:
    return NO_ADDRESSES_TAINT in [taint.key for taint in (await world.cluster.get(Node, name)).spec.taints]


async def test_without_placement_nothing_is_published_and_no_node_is_written() -> None:
    async with a_world("10.1.0.0/28") as world:
        names = await publishing(world, 8, 8, options=OPTIONS)
        assert await published(world, *names) == ["", ""]


async def test_in_a_subnet_at_ease_a_node_publishes_its_maximum_once() -> None:
    async with a_world("10.1.0.0/16") as world:
        replica = world.replica(PLACEMENT)
        replica.start()
        await world.add_node("n0")
        await patch(world, "n0", {"status": {"allocatable": {"pods": "110"}}})
        await moment()
        for demand in (0, 20, 90, 3):
            await world.state("n0", demand)
            await moment(60)
            assert await published(world, "n0") == ["110"]
        assert replica.controller.metrics.writes["Node/status"] == 1


async def test_a_node_whose_kubelet_tells_no_limit_publishes_the_largest_pool_that_it_may_have() -> None:
    async with a_world("10.1.0.0/16") as world:
        assert await published(world, *await publishing(world, 5)) == ["250"]


async def test_a_node_whose_agent_has_asked_for_nothing_yet_publishes_nothing() -> None:
    async with a_world("10.1.0.0/16") as world:
        world.replica(PLACEMENT).start()
        await world.add_node("n0")
        await moment(30)
        assert await published(world, "n0") == [""]


async def test_a_node_whose_agent_does_not_tell_what_pods_request_publishes_nothing() -> None:
    async with a_world("10.1.0.0/16") as world:
        world.replica(PLACEMENT).start()
        await world.add_node("n0")
        await moment()
        await world.ask("n0", 16)  # as Azure CNS does
        await moment(30)
        assert await published(world, "n0") == [""]
        assert "n0" in condition(await world.cluster_subnet(), "AllNodesPublish").message


async def test_in_a_short_subnet_nodes_share_what_can_be_had_with_what_others_hold_idle() -> None:
    async with a_world("10.1.0.0/28") as world:
        names = await publishing(world, 0, 0)
        # 11 can be had: 4 is the largest power of two that both can have.
        assert await published(world, *names) == ["4", "4"]
        await world.ask("n1", CAN_HAVE)  # n1 holds all of it, and none of it is a pod's
        await state(world, "n0", 4)
        await state(world, "n1", 0)
        await moment(60)
        assert await published(world, *names) == ["6", "2"]  # 7 can be had


async def test_a_full_subnet_publishes_what_pods_have_and_opens_everywhere_when_one_ends() -> None:
    async with a_world("10.1.0.0/28") as world:
        names = await publishing(world, 6, CAN_HAVE - 6)
        await moment(60)
        assert await published(world, *names) == ["6", "5"]
        await state(world, "n1", 4)
        await moment(2)
        assert await published(world, *names) == ["7", "5"]
        await state(world, "n0", 7)
        await moment(2)
        # Of what both had, n0 has used its own: n1's is taken back within half a minute.
        await moment(LOWER_EVERY_SECONDS + 10)
        assert await published(world, *names) == ["7", "4"]


async def test_numbers_are_lowered_at_most_every_half_minute() -> None:
    async with a_world("10.1.0.0/28") as world:
        replica = world.replica(PLACEMENT)
        replica.start()
        for name in ("n0", "n1"):
            await world.add_node(name)
        await moment()
        for _ in range(20):
            for demands in ((6, 5), (2, 1)):
                for name, demand in zip(("n0", "n1"), demands, strict=True):
                    await state(world, name, demand)
                await moment(3)
        assert replica.controller.metrics.writes["Node/status"] <= 2 * (1 + 2 * (120 // 30 + 1))


async def test_pods_that_request_nothing_are_deducted() -> None:
    async with a_world("10.1.0.0/28") as world:
        names = await publishing(world, 6, 2)
        assert await published(world, *names) == ["7", "3"]
        noted = {"metadata": {"annotations": {UNREQUESTED_ANNOTATION: "5"}}}
        await world.cluster.patch(
            Patch(NodeNetworkConfig, "n0", namespace=SYSTEM_NAMESPACE, changes=noted), manager="agent"
        )
        await moment(LOWER_EVERY_SECONDS + 5)
        assert await published(world, *names) == ["2", "3"]


async def test_what_a_kubelet_sets_to_0_when_it_starts_is_published_again_at_once() -> None:
    async with a_world("10.1.0.0/16") as world:
        names = await publishing(world, 5)
        zero = {IPV4_RESOURCE: "0"}
        await patch(world, "n0", {"status": {"capacity": zero, "allocatable": zero}})
        await moment()
        assert await published(world, *names) == ["250"]
        await patch(world, "n0", {"status": {"allocatable": zero}})
        await moment()
        assert await published(world, *names) == ["250"]


async def test_a_node_of_two_families_publishes_both_and_each_by_its_own_subnet() -> None:
    async with a_world("10.1.0.0/28") as world:
        await world.add_subnet("fd00::/64", name="pods6")
        await publishing(world, 3, options=structs.replace(PLACEMENT, subnet_v6="pods6"))
        capacity = (await world.cluster.get(Node, "n0")).status.capacity
        assert (capacity[IPV4_RESOURCE], capacity[IPV6_RESOURCE]) == ("11", "250")


async def test_a_new_leader_that_finds_what_it_would_publish_writes_nothing() -> None:
    async with a_world("10.1.0.0/28") as world:
        first = world.replica(PLACEMENT)
        first.start()
        for name in ("n0", "n1"):
            await world.add_node(name)
        await moment()
        for name in ("n0", "n1"):
            await state(world, name, 3)
        await moment(120)
        before = await published(world, "n0", "n1")
        await first.stop()
        second = world.replica(PLACEMENT, name="b")
        second.start()
        await moment(120)
        assert await published(world, "n0", "n1") == before
        assert second.controller.metrics.writes["Node/status"] == 0


async def test_a_node_that_can_get_no_address_is_tainted_until_it_can_and_taints_of_others_stay() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica(TAINTING).start()
        for name in ("n0", "n1"):
            await world.add_node(name)
        foreign = {"key": "example.com/gpu", "effect": "NoSchedule", "value": "yes"}
        await patch(world, "n0", {"spec": {"taints": [foreign]}}, status=False)
        await moment()
        await state(world, "n0", 6)
        await state(world, "n1", CAN_HAVE - 6)
        await moment(10)
        assert [await is_tainted(world, name) for name in ("n0", "n1")] == [True, True]
        assert Taint(**foreign) in (await world.cluster.get(Node, "n0")).spec.taints
        await state(world, "n0", 5)
        await moment(2)
        assert [await is_tainted(world, name) for name in ("n0", "n1")] == [False, False]
        assert (await world.cluster.get(Node, "n0")).spec.taints == [Taint(**foreign)]


async def test_a_node_at_its_own_limit_alone_is_tainted() -> None:
    async with a_world("10.1.0.0/24") as world:
        world.replica(TAINTING).start()
        for name in ("n0", "n1"):
            await world.add_node(name)
            await patch(world, name, {"status": {"allocatable": {"pods": "20"}}})
        await moment()
        await state(world, "n0", 20)
        await state(world, "n1", 19)
        await moment(10)
        assert [await is_tainted(world, name) for name in ("n0", "n1")] == [True, False]


async def test_the_condition_full_says_so_once_it_has_lasted_and_not_for_every_pod_that_ends() -> None:
    async with a_world("10.1.0.0/28") as world:
        await publishing(world, 6, CAN_HAVE - 6)
        assert condition(await world.cluster_subnet(), "Full").status == "False"
        await moment(60)
        assert condition(await world.cluster_subnet(), "Full").status == "True"
        for _ in range(5):
            await state(world, "n0", 5)
            await moment(7)
            assert condition(await world.cluster_subnet(), "Full").status == "True"
            await state(world, "n0", 6)
            await moment(7)
        await state(world, "n0", 5)
        await moment(60)
        assert condition(await world.cluster_subnet(), "Full").status == "False"


async def test_schedulable_nodes_that_publish_nothing_are_named_in_a_condition() -> None:
    async with a_world("10.1.0.0/24") as world:
        await publishing(world, 1)
        await world.add_node("virtual")
        await world.add_node("cordoned")
        await patch(world, "cordoned", {"spec": {"unschedulable": True}}, status=False)
        await moment(10)
        told = condition(await world.cluster_subnet(), "AllNodesPublish")
        assert told.status == "False"
        assert "virtual" in told.message
        assert "cordoned" not in told.message
        await world.remove_node("virtual")
        await moment(10)
        assert condition(await world.cluster_subnet(), "AllNodesPublish").status == "True"


async def test_the_limits_of_kubelets_count_in_whether_every_maximum_fits() -> None:
    async with a_world("10.1.0.0/24") as world:  # 253 addresses: 2 and 220 fit, 2 and 500 do not
        world.replica(PLACEMENT).start()
        for name in ("n0", "n1"):
            await world.add_node(name)
            await patch(world, name, {"status": {"allocatable": {"pods": "110"}}})
        await moment()
        for name in ("n0", "n1"):
            await state(world, name, 10)
        await moment(10)
        assert await published(world, "n0", "n1") == ["110", "110"]


async def test_a_node_with_more_pods_than_its_pool_may_have_publishes_no_less_than_them() -> None:
    async with a_world("10.1.0.0/16") as world:
        assert await published(world, *await publishing(world, 260)) == ["260"]


async def test_a_node_that_was_short_of_its_room_gets_it_when_others_are_lowered() -> None:
    async with a_world("10.1.0.0/24") as world:  # 251 pods can have an address
        await publishing(world, 0, 0)
        assert await published(world, "n0", "n1") == ["64", "64"]
        for pods in (64, 128, 160, 192, 208):
            await state(world, "n0", pods)
            await moment(5.5)
        # n1 was lowered to 32 half a minute ago at most, so its room of 16 is not in force yet.
        assert await published(world, "n0", "n1") == ["219", "32"]
        await state(world, "n0", 219)
        await moment(1)
        assert await published(world, "n0", "n1") == ["220", "32"]
        await moment(LOWER_EVERY_SECONDS)
        assert await published(world, "n0", "n1") == ["235", "16"]


async def test_what_is_known_of_the_nodes_own_pods_counts_before_the_subnet_is_read_again() -> None:
    async with a_world("10.1.0.0/28") as world:
        await publishing(world, 6, 4)
        assert await published(world, "n0", "n1") == ["7", "5"]
        read = world.allocator.calls["demand"]
        while world.allocator.calls["demand"] == read:
            await moment(0.1)
        await state(world, "n0", 7)
        await moment(0.5)
        assert await published(world, "n0", "n1") == ["7", "5"]
        await state(world, "n1", 3)
        await moment(0.5)
        assert await published(world, "n0", "n1") == ["8", "4"]


async def test_a_stale_cache_of_nodes_neither_repeats_a_write_nor_undoes_a_taint_of_others() -> None:
    async with a_world("10.1.0.0/28") as world:
        replica = world.replica(TAINTING)
        replica.start()
        for name in ("n0", "n1"):
            await world.add_node(name)
        await moment()
        for name in ("n0", "n1"):
            await state(world, name, 3)
        await moment(60)
        writes = replica.controller.metrics.writes
        replica.cluster.turn_deaf(Node)
        await state(world, "n0", 5)
        await moment(1)
        before = writes["Node/status"]
        for look in range(3):
            noted = {"metadata": {"annotations": {"example.com/look": str(look)}}}
            await world.cluster.patch(
                Patch(NodeNetworkConfig, "n0", namespace=SYSTEM_NAMESPACE, changes=noted), manager="x"
            )
            await moment(1)
        assert writes["Node/status"] == before
        foreign = {"key": "example.com/gpu", "effect": "NoSchedule"}
        await patch(world, "n1", {"spec": {"taints": [foreign]}}, status=False)
        await state(world, "n1", 6)
        await moment(60)
        assert not await is_tainted(world, "n1")
        replica.cluster.hear()
        await moment(60)
        assert await is_tainted(world, "n1")
        assert Taint(**foreign) in (await world.cluster.get(Node, "n1")).spec.taints


async def test_a_node_under_a_removed_nodes_name_does_not_publish_what_that_one_had() -> None:
    async with a_world("10.1.0.0/24") as world:
        await publishing(world, 5)
        world.allocator.faults = Script(delete=[AllocatorUnavailable("away")] * 100)
        await world.remove_node("n0")
        await moment(1)
        await world.add_node("n0")
        await moment(10)
        assert (await world.config("n0")).status.network_containers, "it is still the removed one's"
        assert await published(world, "n0") == [""]


async def test_once_placement_is_off_the_condition_about_it_is_gone() -> None:
    async with a_world("10.1.0.0/24") as world:
        first = world.replica(PLACEMENT)
        first.start()
        await world.add_node("n0")
        await moment(10)
        assert condition(await world.cluster_subnet(), "AllNodesPublish").status == "False"
        await first.stop()
        world.replica(OPTIONS, name="b").start()
        await moment(60)
        told = [each.type for each in (await world.cluster_subnet()).status.conditions]
        assert "Full" in told
        assert "AllNodesPublish" not in told


async def test_a_node_that_comes_into_a_full_subnet_is_tainted_until_it_has_an_address_of_its_own() -> None:
    async with a_world("10.1.0.0/28") as world:
        await publishing(world, 6, CAN_HAVE - 6, options=TAINTING)
        await world.add_node("late")
        await moment(10)
        assert not (await world.config("late")).status.network_containers
        assert await is_tainted(world, "late")
        await state(world, "n0", 4)
        await moment(10)
        await state(world, "late", 0)
        await moment(10)
        assert not await is_tainted(world, "late")


async def test_a_node_under_a_removed_nodes_name_does_not_count_with_the_pods_of_that_one() -> None:
    async with a_world("10.1.0.0/28") as world:
        replica = world.replica(PLACEMENT)
        replica.start()
        for name in ("n0", "n1"):
            await world.add_node(name)
        await moment()
        await state(world, "n0", 6)
        await state(world, "n1", CAN_HAVE - 6)
        await moment(60)
        assert await published(world, "n1") == ["5"]
        replica.cluster.turn_deaf(Node)
        await world.remove_node("n0")
        await world.add_node("n0")
        replica.cluster.hear()  # of both at once
        await moment(600)  # no agent runs there, and all that the removed one had is free
        assert await published(world, "n1") == ["7"]


async def test_a_leader_that_reads_the_subnet_before_it_has_looked_at_all_nodes_publishes_on_all() -> None:
    async with a_world("10.1.0.0/16") as world:
        first = world.replica(OPTIONS)
        first.start()
        names = [f"n{number}" for number in range(20)]
        for name in names:
            await world.add_node(name)
        await moment()
        for name in names:
            await state(world, name, 3)
        await moment(60)
        await first.stop()
        world.allocator.faults = Script(put=[1.0] * 40)
        world.replica(PLACEMENT, name="b").start()
        await moment(120)
        assert set(await published(world, *names)) == {"250"}


async def test_a_node_that_publishes_nothing_is_tainted_like_others() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica(TAINTING).start()
        for name in ("n0", "n1", "cns"):
            await world.add_node(name)
        await moment()
        await world.ask("cns", 0)  # as Azure CNS does: it does not tell what pods request
        await state(world, "n0", 6)
        await state(world, "n1", CAN_HAVE - 6 - 1)
        await moment(10)
        assert [await is_tainted(world, name) for name in ("n0", "n1", "cns")] == [True, True, True]
        assert await published(world, "cns") == [""]
        await state(world, "n0", 4)
        await moment(10)
        assert [await is_tainted(world, name) for name in ("n0", "n1", "cns")] == [False, False, False]


async def test_a_new_node_that_waits_for_the_allocator_alone_is_not_tainted() -> None:
    async with a_world("10.1.0.0/24") as world:
        world.replica(TAINTING).start()
        await moment()
        world.allocator.faults = Script(put=[AllocatorUnavailable("away")] * 100)
        await world.add_node("n0")
        await moment(10)
        assert condition(await world.config("n0"), "Granted").reason == "AllocatorUnavailable"
        assert not await is_tainted(world, "n0")
