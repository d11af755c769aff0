"""Whose NodeNetworkConfig it is, and what the agent makes of one that is not its Node's."""

import asyncio

import pytest
from msgspec import structs

from agent.node_bench import MANAGER, NODE, Bench, container, owner
from cluster.faulty_cluster import Script
from podtide.agent.port import NotReady
from podtide.agent.program import NodeAgent
from podtide.cluster.port import Unavailable
from podtide.core.pool.states import State
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import IPV4_RESOURCE, SYSTEM_NAMESPACE, unrequested_in
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
)
from podtide.resources.pod import PodContainer, ResourceRequirements
from podtide.runtime.disk import Locked
from podtide.runtime.settings import Settings

QUICK = Settings(add_wait_seconds=1.0)


async def delete_config(bench: Bench) -> NodeNetworkConfig:
    config = await bench.config()
    await bench.server.delete(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
    return config


async def recreate_node(bench: Bench) -> Node:
    """Another machine, or the same anew, under the old name."""
    await bench.server.delete(Node, NODE)
    await bench.settle(1)
    return await bench.server.create(Node(metadata=ObjectMeta(name=NODE)), manager=MANAGER)


async def test_a_config_deleted_by_hand_and_made_again_keeps_the_pool() -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("sandbox")
        await bench.settle()
        before = {address.name for address in agent.addresses.all_addresses()}
        old = await delete_config(bench)
        await bench.settle(1)
        with pytest.raises(NotReady, match="does not exist"):
            await bench.add("meanwhile")
        agent.addresses.require_ready()
        assert await bench.add("sandbox") == held, "who has an address is told it again"
        node = await bench.server.get(Node, NODE)
        await bench.make_config(node, fill_in=False)
        await bench.fill_in(old.status.network_containers)
        await bench.settle()
        assert {address.name for address in agent.addresses.all_addresses()} == before
        assert (await bench.config()).spec.requested_ip_count == 15
        assert await bench.add("afterwards") != held
        assert agent.addresses.state().alarms == 0


@pytest.mark.parametrize("status", [None, ConfigStatus.UPDATING, ConfigStatus.ERROR])
async def test_a_config_that_is_not_settled_withdraws_nothing(status: ConfigStatus | None) -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.running() as agent:
        await bench.settle()
        await bench.grant()
        await bench.add("sandbox")
        await delete_config(bench)
        config = await bench.make_config(await bench.server.get(Node, NODE), fill_in=False)
        unsettled = structs.replace(config.status, status=status)
        await bench.server.replace_status(structs.replace(config, status=unsettled), manager=MANAGER)
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 15
        assert agent.addresses.state().alarms == 0


async def test_a_recreated_node_starts_clean_and_its_pods_keep_what_they_have() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("old-sandbox")
        await bench.settle()
        old = {address.ip for address in agent.addresses.all_addresses()}
        node = await recreate_node(bench)
        await bench.make_config(node)
        await bench.settle()
        states = {address.ip: address.state for address in agent.addresses.all_addresses()}
        assert states[held[0]] is State.ORPHANED
        new = await bench.add("new-sandbox")
        assert not old & set(new)
        assert await bench.add("old-sandbox") == held
        assert bench.delete("old-sandbox") == held
        assert held[0] not in {address.ip for address in agent.addresses.all_addresses()}


async def test_a_pod_that_outlived_its_node_needs_no_address_of_the_next_one() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        for sandbox in ("first", "second"):
            await bench.add(sandbox)
        await bench.settle()
        await bench.make_config(await recreate_node(bench))
        await bench.settle()
        assert agent.addresses.state().demand == 0
        held = await bench.add("third")
        assert agent.addresses.state().demand == 1
        bench.delete("first")
        assert agent.addresses.state().demand == 1
        assert await bench.add("first") not in (held, ())
        assert agent.addresses.state().demand == 2


async def test_a_pod_that_outlived_its_node_is_not_stated_as_unrequested() -> None:
    bench = Bench()
    await bench.join()
    quantities = {IPV4_RESOURCE: "1"}
    requesting = [PodContainer(name="main", resources=ResourceRequirements(requests=quantities))]
    async with bench.controller(), bench.running():
        for name in ("first", "second"):
            await bench.add(name, await bench.schedule(name))
        await bench.settle()
        await bench.make_config(await recreate_node(bench))
        await bench.settle()
        for number in range(20):
            await bench.schedule(f"pod-{number}", containers=requesting)
        await bench.settle()
        assert unrequested_in(bench.cluster.applied[-1].metadata.annotations) == 0


async def moved_to_new_node(bench: Bench, *without: str) -> NetworkContainer:
    """The Node is registered again on the same boot: the allocator moved its addresses, with new names, but for these."""
    [old] = (await bench.config()).status.network_containers
    node = await recreate_node(bench)
    moved = [
        structs.replace(each, name=f"moved-{each.name}")
        for each in old.ip_assignments
        if each.ip not in without
    ]
    new = structs.replace(old, id=node.metadata.uid, ip_assignments=moved, version=1)
    await bench.make_config(node, fill_in=False)
    await bench.settle(2)
    await bench.fill_in([new])
    await bench.settle()
    return new


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_node_registered_again_on_the_same_boot_keeps_its_pods_addresses(restarted: bool) -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller():
        async with bench.running() as agent:
            held = await bench.add("sandbox")
            await bench.settle()
            if not restarted:
                new = await moved_to_new_node(bench)
                await check_moved(bench, agent, new, held)
        if restarted:
            new = await moved_to_new_node(bench)
            async with bench.running() as agent:
                await bench.settle()
                await check_moved(bench, agent, new, held)


async def check_moved(bench: Bench, agent: NodeAgent, new: NetworkContainer, held: tuple[str, ...]) -> None:
    addresses = {address.ip: address for address in agent.addresses.all_addresses()}
    assert addresses[held[0]].state is State.ASSIGNED
    assert {address.container for address in addresses.values()} == {new.id}
    assert agent.addresses.state().alarms == 0
    assert await bench.add("sandbox") == held
    assert await bench.add("another") != held


async def test_what_went_to_others_before_the_node_was_registered_again_is_an_alarm() -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("sandbox")
        await bench.settle()
        await moved_to_new_node(bench, *held)
        addresses = {address.ip: address for address in agent.addresses.all_addresses()}
        assert addresses[held[0]].state is State.ORPHANED
        assert agent.addresses.state().alarms == 1
        assert bench.delete("sandbox") == held
        assert held[0] not in {address.ip for address in agent.addresses.all_addresses()}


async def test_what_was_named_for_release_stays_so_under_its_new_name() -> None:
    bench = Bench(settings=QUICK)
    await bench.make_subnet()
    await bench.join()
    async with bench.running() as agent:
        await bench.settle()
        await bench.grant()
        await bench.settle()
        await bench.set_subnet(batch=1)
        await bench.settle(60)
        named = [
            address.ip
            for address in agent.addresses.all_addresses()
            if address.state is State.PENDING_RELEASE
        ]
        assert len(named) == 14
        await bench.set_subnet(batch=16)  # it could use them again by now, and may not
        await moved_to_new_node(bench)
        spec = (await bench.config()).spec
        assert sorted(spec.ips_not_in_use) == sorted(
            address.name for address in agent.addresses.all_addresses() if address.ip in named
        )
        assert all(name.startswith("moved-") for name in spec.ips_not_in_use)
        assert not set(named) & set(await bench.add("sandbox"))


async def test_an_agent_restarted_after_its_node_was_recreated_hands_out_nothing_of_the_old() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller():
        async with bench.running() as agent:
            held = await bench.add("old-sandbox")
            await bench.settle()
            old = {address.ip for address in agent.addresses.all_addresses()}
        node = await recreate_node(bench)
        await bench.make_config(node)
        async with bench.running() as agent:
            assert not old & set(await bench.add("new-sandbox"))
            assert await bench.add("old-sandbox") == held


async def test_another_nodes_journal_is_one_sentence_that_says_what_to_do() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller():
        async with bench.running():
            pods = await bench.schedule_many(60)
            for pod in pods:
                await bench.add(pod.metadata.name, pod)
            await bench.settle()
            former = (await bench.config()).metadata.owner_references[0].uid
        node = await recreate_node(bench)
        await bench.make_config(node)
        async with bench.running() as agent:
            await bench.settle()
            held = agent.addresses.state().alarms
            assert held == 79
    [line] = bench.log("the cluster contradicts the pool")
    assert line["alarm"] == (
        f"the journal is that of the Node with uid {former}, and this one's is {node.metadata.uid}: of the 79 addresses of "
        f"container {former} none is handed out any more, and 60 stay with the sandboxes that have them; if this machine "
        "never was that Node, stop the agent and empty its state directory"
    )


async def test_many_addresses_that_the_cluster_takes_away_at_once_are_one_line() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await bench.schedule_many(60)
        await bench.settle()
        config = await bench.config()
        [full] = config.status.network_containers
        less = structs.replace(full, ip_assignments=full.ip_assignments[:9], version=full.version + 1)
        await bench.fill_in([less])
        await bench.settle()
        assert agent.addresses.state().alarms == 70
    [line] = bench.log("the cluster contradicts the pool")
    assert line["alarm"].endswith("which this node did not name for release; and the same for 69 more")


@pytest.mark.parametrize("recreated", [True, False])
async def test_a_config_left_by_an_earlier_node_is_not_gone_by(recreated: bool) -> None:
    faults = Script()
    bench = Bench(settings=QUICK, faults=faults)
    config = await bench.join()
    grants = [IPAssignment(name=f"old-{number}", ip=f"10.0.7.{number}") for number in range(9)]
    [old] = config.status.network_containers
    await bench.fill_in([structs.replace(old, ip_assignments=grants, version=5)])
    async with bench.running(sync=False) as agent:
        # The object was read, and while the Node is read, its successor registers.
        faults.steps["get"] = [0.5]
        await asyncio.sleep(0.1)
        await bench.server.delete(Node, NODE)
        if recreated:
            await bench.server.create(Node(metadata=ObjectMeta(name=NODE)), manager=MANAGER)
        with pytest.raises(NotReady):
            await bench.add("sandbox")
        [line] = bench.log("nothing new is handed out")[:1]
        assert "is that of a Node with uid" in line["reason"]
        assert bench.cluster.applied == []
        assert list(agent.addresses.all_addresses()) == []
        with pytest.raises(NotReady):
            agent.addresses.require_ready()


async def test_a_config_that_is_being_deleted_hands_out_nothing_new() -> None:
    bench = Bench(settings=QUICK)
    config = await bench.join()
    metadata = structs.replace(config.metadata, finalizers=["podtide.io/network-container"])
    await bench.server.replace(structs.replace(config, metadata=metadata), manager=MANAGER)
    async with bench.controller(), bench.running():
        held = await bench.add("before")
        await delete_config(bench)
        await bench.settle(1)
        with pytest.raises(NotReady, match="is being deleted"):
            await bench.add("after")
        assert await bench.add("before") == held
        writes = len(bench.cluster.applied)
        await bench.schedule_many(30)
        await bench.settle()
        assert len(bench.cluster.applied) == writes


async def test_a_config_that_belongs_to_no_node_is_not_gone_by() -> None:
    bench = Bench(settings=QUICK)
    await bench.server.create(Node(metadata=ObjectMeta(name=NODE)), manager=MANAGER)
    metadata = ObjectMeta(name=NODE, namespace=SYSTEM_NAMESPACE)
    await bench.server.create(NodeNetworkConfig(metadata=metadata), manager=MANAGER)
    await bench.fill_in([container("nobodys")])
    async with bench.running(sync=False):
        with pytest.raises(NotReady, match="has no Node as its controller"):
            await bench.add("sandbox")
        assert bench.cluster.applied == []


async def test_a_config_that_becomes_another_nodes_is_not_gone_by_though_its_first_owner_was_confirmed() -> (
    None
):
    bench = Bench(settings=QUICK)
    await bench.join(container("one"))
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("before")
        await bench.settle()
        before = {address.name for address in agent.addresses.all_addresses()}
        config = await bench.config()
        [owner_reference] = config.metadata.owner_references
        elsewhere = structs.replace(owner_reference, uid="uid-of-a-node-that-is-not-there")
        metadata = structs.replace(config.metadata, owner_references=[elsewhere])
        bench.server.server.housekeeping.is_collecting = False
        await bench.server.replace(structs.replace(config, metadata=metadata), manager="kubectl")
        await bench.settle()
        with pytest.raises(NotReady, match="is that of a Node with uid uid-of-a-node-that-is-not-there"):
            await bench.add("after")
        assert await bench.add("before") == held
        assert {address.name for address in agent.addresses.all_addresses()} == before


async def test_a_container_that_the_controller_has_not_answered_for_yet_is_not_withdrawn() -> None:
    """Of two containers the status shows one while the controller is still at work on the other."""
    bench = Bench(settings=QUICK)
    await bench.join(container("one"), container("two", family=6))
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("before")
        await bench.settle()
        before = {address.name for address in agent.addresses.all_addresses()}
        config = await bench.config()
        half = structs.replace(
            config.status,
            network_containers=config.status.network_containers[:1],
            status=ConfigStatus.UPDATING,
        )
        await bench.server.replace_status(structs.replace(config, status=half), manager=MANAGER)
        await bench.settle()
        assert {address.name for address in agent.addresses.all_addresses()} == before
        assert agent.addresses.state().alarms == 0
        await bench.fill_in(config.status.network_containers)
        await bench.settle()
        assert await bench.add("before") == held
        assert agent.addresses.state().alarms == 0


async def test_a_container_that_is_gone_from_the_status_is_withdrawn_with_an_alarm() -> None:
    bench = Bench(settings=QUICK)
    await bench.join(container("one"), container("two"))
    async with bench.controller(), bench.running() as agent:
        held = {await bench.add(f"sandbox-{number}") for number in range(10)}
        await bench.settle()
        config = await bench.config()
        await bench.fill_in(config.status.network_containers[:1])
        await bench.settle()
        state = agent.addresses.state()
        assert state.alarms > 0
        assert bench.log("the cluster contradicts the pool")
        again = {await bench.add(f"sandbox-{number}") for number in range(10)}
        assert again == held, "what pods have is theirs"
        fresh = await bench.add("another")
        assert agent.addresses.check(owner("another"))[0].container == "one"
        assert fresh not in held


async def test_an_older_version_of_a_container_is_ignored() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await bench.schedule_many(36)
        await bench.settle()
        config = await bench.config()
        assert len(list(agent.addresses.all_addresses())) == 47
        [current] = config.status.network_containers
        stale = structs.replace(
            current, ip_assignments=current.ip_assignments[:3], version=current.version - 1
        )
        await bench.fill_in([stale])
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 47
        assert agent.addresses.state().alarms == 0


async def test_addresses_that_are_none_are_left_out_and_said_once() -> None:
    bench = Bench()
    config = await bench.join()
    [there] = config.status.network_containers
    odd = [
        IPAssignment(name="good", ip="10.0.0.9"),
        IPAssignment(name="", ip="10.0.0.10"),
        IPAssignment(name="text", ip="not an address"),
        IPAssignment(name="six", ip="fd00::1"),
    ]
    await bench.fill_in([structs.replace(there, ip_assignments=odd, version=1)])
    async with bench.running() as agent:
        await bench.settle()
        assert [address.name for address in agent.addresses.all_addresses()] == ["good"]
        [line] = bench.log("a network container has values that cannot be used")
        assert len(line["complaints"]) == 3


async def test_a_second_agent_on_the_same_disk_is_refused() -> None:
    bench = Bench()
    await bench.join()
    async with bench.running():
        with pytest.raises(Locked):
            async with bench.running():
                pass


async def test_a_list_anew_while_the_node_is_read_does_not_leave_the_agent_waiting_for_news() -> None:
    """Found by simulation: the list brings another copy of the same object, of which nobody is told."""
    bench = Bench(settings=QUICK, faults=Script(get=[Unavailable("no answer"), 5.0]))
    await bench.join()
    async with bench.running(sync=False) as agent:
        await bench.settle(2)
        await bench.server.create(Node(metadata=ObjectMeta(name="another")), manager=MANAGER)
        bench.server.server.expire_history()
        bench.server.server.close_watches()
        await bench.settle(60)
        assert agent.synced.is_set()


async def test_what_another_program_serves_is_neither_handed_out_nor_asked_about() -> None:
    bench = Bench(settings=QUICK)
    config = await bench.join(fill_in=False)
    theirs = container("a-guid", addresses=[IPAssignment(name="another-guid", ip="10.0.0.9")])
    await bench.fill_in([theirs])
    pod = await bench.schedule("web")
    await bench.report(pod, addresses=["10.0.0.9"])
    async with bench.running(sync=False) as agent:
        await bench.settle()
        with pytest.raises(NotReady, match="podtide migrate cns --hand-over"):
            await bench.add("sandbox")
        assert list(agent.addresses.all_addresses()) == []
        assert bench.cluster.applied == []
        await bench.fill_in([structs.replace(theirs, id=config.node_uid)])
        await bench.settle()
        assert [address.ip for address in agent.addresses.all_addresses()] == ["10.0.0.9"]
        assert agent.addresses.state().counts[State.ASSIGNED] == 1
