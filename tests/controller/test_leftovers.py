"""What a removed Node had is nobody's until a look at the pods, and its own machine's when that comes back."""

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, World, a_world, condition, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.quarantine import Quarantined
from podtide.allocator.store import StoreRules
from podtide.core.machine_identity import MachineIdentity
from podtide.resources.base import ObjectMeta
from podtide.resources.event import Event
from podtide.resources.node import Node, NodeStatus, NodeSystemInfo
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodContainer, PodIP, PodPhase, PodSpec, PodStatus
from podtide.runtime.settings import Settings

QUARANTINE = 360.0
MACHINE = MachineIdentity("m1", "s1", "b1")
BOOTED = MachineIdentity("m1", "s1", "b2")
ANOTHER = MachineIdentity("m2", "s2", "b9")


async def join(world: World, name: str = "n1", machine: MachineIdentity = MACHINE) -> Node:
    info = NodeSystemInfo(
        machine_id=machine.machine_id, system_uuid=machine.system_uuid, boot_id=machine.boot_id
    )
    node = Node(metadata=ObjectMeta(name=name), status=NodeStatus(node_info=info))
    made = await world.cluster.create(node, manager="kubelet")
    await moment()
    return made


async def joined_with(world: World, count: int, machine: MachineIdentity = MACHINE) -> list[str]:
    """A node that holds so many addresses: which they are, the primary first."""
    await join(world, machine=machine)
    await world.ask("n1", count)
    await moment()
    return await held(world)


async def held(world: World, name: str = "n1") -> list[str]:
    (container,) = (await world.config(name)).status.network_containers
    return [container.primary_ip, *(each.ip for each in container.ip_assignments)]


async def run_pod(
    world: World, ip: str, node: str = "n1", name: str = "p1", phase: PodPhase = PodPhase.RUNNING
) -> Pod:
    pod = Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(node_name=node, containers=[PodContainer(name="c", image="i")]),
    )
    made = await world.cluster.create(pod, manager="test")
    status = PodStatus(phase=phase, pod_ip=ip, pod_ips=[PodIP(ip=ip)])
    return await world.cluster.replace_status(structs.replace(made, status=status), manager="kubelet")


async def leave(world: World, name: str = "n1") -> None:
    await world.remove_node(name)
    await moment()


async def quarantined(world: World) -> list[Quarantined]:
    return list((await world.allocator.quarantined()).items)


async def test_a_node_registered_again_on_the_same_boot_has_its_addresses_again() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica().start()
        before = await joined_with(world, 9)
        await world.foreign_node("w1", 2)
        assert (await world.subnet()).reserved == 13  # not one is free
        await leave(world)
        new = await join(world)
        assert await held(world) == before
        config = await world.config("n1")
        assert config.status.network_containers[0].id == new.metadata.uid
        assert await quarantined(world) == []
        assert "AddressesMoved" in await world.events(config)


async def test_what_pods_still_show_is_kept_from_others_however_long_it_takes() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica().start()
        before = await joined_with(world, 8)
        await run_pod(world, before[3])
        await leave(world)
        await moment(QUARANTINE + 1)
        (left,) = await quarantined(world)
        assert left.addresses == (before[3],)
        await moment(10 * QUARANTINE)
        assert (await world.subnet()).reserved == 1
        pod = await world.cluster.get(Pod, "p1", "default")
        ended = structs.replace(pod.status, phase=PodPhase.FAILED)
        await world.cluster.replace_status(structs.replace(pod, status=ended), manager="kubelet")
        await moment(QUARANTINE + 1)
        assert await quarantined(world) == []
        assert (await world.subnet()).reserved == 0


@pytest.mark.parametrize("uid", ["uid-of-another", ""])
async def test_what_another_cluster_or_one_that_is_not_known_left_under_the_name_is_not_ours_to_end(
    uid: str,
) -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        foreign = await world.foreign_node("n1", 5, cluster="east", cluster_uid=uid)
        await world.allocator.delete_container(foreign, cluster="east", cluster_uid=uid)
        world.replica().start()
        await joined_with(world, 8)
        await leave(world)
        await moment(10 * QUARANTINE)
        assert [(left.container, len(left.addresses)) for left in await quarantined(world)] == [(foreign, 6)]
        await world.allocator.forget_cluster("east", uid=uid)
        assert await quarantined(world) == []


async def test_a_pod_that_has_ended_or_runs_elsewhere_keeps_nothing() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica().start()
        before = await joined_with(world, 8)
        await run_pod(world, before[3], phase=PodPhase.SUCCEEDED)
        await run_pod(world, before[4], node="n2", name="p2")
        await run_pod(world, "no address", name="p3")
        await leave(world)
        await moment(QUARANTINE + 1)
        assert await quarantined(world) == []


async def test_a_machine_that_was_booted_since_waits_for_nothing() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica().start()
        before = await joined_with(world, 8)
        await leave(world)
        assert len(await quarantined(world)) == 1
        await join(world, machine=BOOTED)
        assert await quarantined(world) == []
        assert len(await held(world)) == 1
        assert len(before) == 9


async def test_a_boot_under_the_same_node_is_told_to_the_allocator() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica().start()
        before = await joined_with(world, 8)
        node = await world.cluster.get(Node, "n1")
        info = structs.replace(node.status.node_info, boot_id=BOOTED.boot_id)
        await world.cluster.replace_status(
            structs.replace(node, status=structs.replace(node.status, node_info=info)), manager="kubelet"
        )
        await moment()
        await leave(world)
        await join(world, machine=BOOTED)
        assert await held(world) == before


async def test_another_machine_under_the_name_proves_nothing_and_says_what_waits() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica().start()
        before = await joined_with(world, 8)
        await leave(world)
        await join(world, machine=ANOTHER)
        (left,) = await quarantined(world)
        assert set(left.addresses) == set(before)
        former = condition(await world.config("n1"), "FormerAddresses")
        assert (former.status, former.reason) == ("False", "InQuarantine")
        assert "9 addresses in subnet pods of the removed Node n1" in former.message
        assert " are in quarantine until " in former.message
        await moment(QUARANTINE + 1)
        assert await quarantined(world) == []
        assert condition(await world.config("n1"), "FormerAddresses").status == "True"
        assert not set(before) & set(await held(world))


async def test_what_is_held_is_told_once_on_the_node_that_is_gone() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica().start()
        before = await joined_with(world, 8)
        uid = (await world.cluster.get(Node, "n1")).metadata.uid
        await run_pod(world, before[1])
        await leave(world)
        await moment(5 * QUARANTINE)
        events = (await world.cluster.list(Event, "default")).items
        told = [event.reason for event in events if event.involved_object.uid == uid]
        assert sorted(told) == ["AddressesQuarantined", "QuarantineHeld"]


async def test_removed_nodes_are_held_for_a_person_where_that_is_set() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica(structs.replace(OPTIONS, hold_removed_nodes=True)).start()
        before = await joined_with(world, 8)
        await leave(world)
        await moment(10 * QUARANTINE)
        (left,) = await quarantined(world)
        assert len(left.addresses) == 9
        await join(world)
        assert await held(world) == before
        await leave(world)
        await join(world, machine=BOOTED)
        assert await quarantined(world) == []


async def test_a_new_term_finds_what_is_in_quarantine_and_ends_it() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        first = world.replica()
        first.start()
        await joined_with(world, 8)
        await leave(world)
        await first.stop()
        await moment(2 * QUARANTINE)
        assert len(await quarantined(world)) == 1
        world.replica(name="b").start()
        await moment(1.0)
        assert await quarantined(world) == []


async def test_a_boot_that_nobody_watched_proves_nothing_before_the_time_is_over() -> None:
    """The Node may have been booted twice: then pods may have started since the boot that it is known by."""
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        first = world.replica()
        first.start()
        await joined_with(world, 8)
        await leave(world)
        await first.stop()
        await join(world, machine=BOOTED)
        world.replica(name="b").start()
        await moment(1.0)
        assert len(await quarantined(world)) == 1
        await moment(QUARANTINE)
        assert await quarantined(world) == []


async def test_a_new_term_moves_what_was_left_before_it() -> None:
    async with a_world() as world:
        first = world.replica()
        first.start()
        before = await joined_with(world, 8)
        await leave(world)
        await first.stop()
        await join(world)
        world.replica(name="b").start()
        await moment(1.0)
        assert set(await held(world)) >= set(before)
        assert await quarantined(world) == []


async def test_pods_are_listed_only_when_something_is_due() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        replica = world.replica(settings=Settings())
        lists: list[type] = []
        listing = replica.cluster.list

        async def counted(kind: type, *args: object, **more: object) -> object:
            lists.append(kind)
            return await listing(kind, *args, **more)  # type: ignore[arg-type]  # as the port has it

        replica.cluster.list = counted  # type: ignore[assignment,method-assign]  # only counted
        replica.start()
        await joined_with(world, 8)
        await moment(3_600)
        await leave(world)
        await moment(QUARANTINE - 10)
        assert Pod not in lists
        await moment(20)
        assert lists.count(Pod) == 1


async def test_a_node_that_is_in_another_subnet_now_waits_for_what_it_had() -> None:
    """It cannot move there, and the look must not ask for it for ever."""
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        await world.add_subnet("10.2.0.0/24", name="other")
        world.replica().start()
        before = await joined_with(world, 8)
        await leave(world)
        node = Node(
            metadata=ObjectMeta(name="n1", labels={"podtide.io/subnet": "other"}),
            status=NodeStatus(node_info=NodeSystemInfo(machine_id="m1", system_uuid="s1", boot_id="b1")),
        )
        await world.cluster.create(node, manager="kubelet")
        await moment()
        calls = world.allocator.calls["put"]
        await moment(30)
        (left,) = await quarantined(world)
        assert set(left.addresses) == set(before)
        assert world.allocator.calls["put"] == calls
        await moment(QUARANTINE)
        assert await quarantined(world) == []


async def test_a_node_whose_config_is_known_as_of_the_past_is_not_looked_at_over_and_over() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await joined_with(world, 8)
        replica.cluster.turn_deaf(NodeNetworkConfig)
        plenty: list[Exception | float | None] = [None] * 20
        world.allocator.faults = Script(delete=plenty + [AllocatorUnavailable("asked for too often")] * 99)
        await leave(world)
        await join(world)
        await moment(1.0)
        assert world.allocator.calls["delete"] <= len(plenty)
        world.allocator.faults = Script()
        replica.cluster.hear()
        await moment(60)
        assert len(await held(world)) == 9


async def test_nothing_moves_to_nodes_whose_agents_are_not_podtides() -> None:
    """Azure CNS knows addresses by their names: under new ones it would take them for free while its pods have them."""
    async with a_world(rules=StoreRules(quarantine_seconds=QUARANTINE)) as world:
        world.replica(structs.replace(OPTIONS, cluster_subnets=False)).start()
        before = await joined_with(world, 8)
        await run_pod(world, before[3])
        await leave(world)
        await join(world)
        assert not set(await held(world)) & set(before)
        await moment(QUARANTINE + 1)
        (left,) = await quarantined(world)
        assert left.addresses == (before[3],)


async def test_both_families_of_a_node_move() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00:1::/64", "pods6")
        world.replica(structs.replace(OPTIONS, subnet_v6="pods6")).start()
        await join(world)
        await world.ask("n1", 3)
        await moment()
        before = await world.everybody()
        assert len(before) == 8
        await leave(world)
        await join(world)
        assert await world.everybody() == before
        assert await quarantined(world) == []
