"""A NodeNetworkConfig that was seen to go and is back, as after a restore of etcd: nothing new is given on its word alone."""

from io import StringIO

import pytest
from msgspec import structs

from agent.node_bench import MANAGER, NODE, Bench
from cluster.faulty_cluster import Script
from podtide.agent.pool.journal import Identity
from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.port import NotReady
from podtide.resources.conditions import with_condition
from podtide.resources.config_confirmation import confirmation, doubt_in
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import LoopClock
from podtide.runtime.disk import Disk
from podtide.runtime.logging import make_logger
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.settings import Settings

QUICK = Settings(add_wait_seconds=1.0)


async def confirm(bench: Bench) -> None:
    """Answer as the controller does."""
    config = await bench.config()
    answer = confirmation(doubt_in(config.metadata.annotations), "2026-01-01T00:00:00Z", 1)
    status = structs.replace(config.status, conditions=with_condition(config.status.conditions, answer))
    await bench.server.replace_status(structs.replace(config, status=status), manager=MANAGER)


async def go_and_come_back(bench: Bench, what: str) -> None:
    """The object goes, alone or with its Node, and a second later it is restored."""
    backup = bench.server.snapshot()
    if what == "with its Node":
        await bench.server.delete(Node, NODE)
    await bench.server.delete(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
    await bench.settle(1)
    bench.server.restore(backup)


@pytest.mark.parametrize("what", ["alone", "with its Node"])
async def test_an_object_that_was_gone_is_gone_by_when_the_controller_has_answered(what: str) -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("sandbox")
        await bench.settle()
        writes = len(bench.cluster.applied)
        await go_and_come_back(bench, what)
        await bench.settle()
        with pytest.raises(NotReady, match="was gone and is back"):
            await bench.add("another")
        assert await bench.add("sandbox") == held
        agent.addresses.require_ready()
        assert len(bench.cluster.applied) == writes + 1
        assert (await bench.config()).spec.requested_ip_count == 15
        await confirm(bench)
        await bench.settle()
        assert await bench.add("another") != held
        assert len(bench.cluster.applied) == writes + 1
        assert agent.addresses.state().alarms == 0


async def test_an_object_that_goes_and_comes_while_the_node_is_read_was_seen_to_go() -> None:
    faults = Script()
    bench = Bench(settings=QUICK, faults=faults)
    await bench.join()
    async with bench.controller():
        async with bench.running():
            await bench.add("sandbox")
            await bench.settle()
        faults.steps["get"] = [3.0]
        async with bench.running(sync=False):
            await bench.settle(1)
            await go_and_come_back(bench, "alone")
            await bench.settle()
            with pytest.raises(NotReady, match="was gone and is back"):
                await bench.add("another")


async def test_the_doubt_outlives_the_agent_and_an_answer_to_an_earlier_one_does_not_end_it() -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller():
        async with bench.running():
            held = await bench.add("sandbox")
            await go_and_come_back(bench, "alone")
            await bench.settle()
            await confirm(bench)
            await bench.settle()
            backup = bench.server.snapshot()
            await bench.server.delete(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
            await bench.settle(1)
        bench.server.restore(backup)
        async with bench.running(sync=False):
            await bench.settle()
            with pytest.raises(NotReady, match="was gone and is back"):
                await bench.add("another")
            await confirm(bench)
            await bench.settle()
            assert await bench.add("another") != held


async def test_an_object_that_another_came_after_is_doubted_too() -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller():
        async with bench.running():
            await bench.add("sandbox")
            await bench.settle()
            backup = bench.server.snapshot()
            old = await bench.config()
            await bench.server.delete(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
            await bench.make_config(await bench.server.get(Node, NODE), fill_in=False)
            await bench.fill_in(old.status.network_containers)
            await bench.settle()
            await bench.add("with the new one")
            assert not doubt_in((await bench.config()).metadata.annotations)
        bench.server.restore(backup)
        async with bench.running(sync=False):
            await bench.settle()
            with pytest.raises(NotReady, match="was gone and is back"):
                await bench.add("another")


async def test_an_object_of_before_the_first_one_that_the_agent_knows_is_doubted_too() -> None:
    """As after a restore to the day on which another machine bore the node's name."""
    bench = Bench(settings=QUICK)
    await bench.join()
    backup = bench.server.snapshot()
    await bench.settle(60)
    await bench.server.delete(Node, NODE)
    await bench.settle(1)
    async with bench.controller():
        await bench.join()
        async with bench.running():
            await bench.add("sandbox")
            await bench.settle()
            bench.server.restore(backup)
            await bench.settle()
            with pytest.raises(NotReady, match="was gone and is back"):
                await bench.add("another")
            await confirm(bench)
            await bench.settle()
            await bench.add("another")


async def test_what_is_granted_anew_under_other_names_goes_on_and_what_went_to_others_is_not_given() -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("sandbox")
        await bench.settle()
        await go_and_come_back(bench, "with its Node")
        await bench.settle()
        config = await bench.config()
        [there] = config.status.network_containers
        kept = [structs.replace(each, name=f"anew-{each.name}") for each in there.ip_assignments[:5]]
        assert held[0] in {each.ip for each in kept}
        lost = {each.ip for each in there.ip_assignments[5:]}
        await bench.fill_in([structs.replace(there, ip_assignments=kept, version=there.version + 2)])
        await bench.settle()
        with pytest.raises(NotReady, match="was gone and is back"):
            await bench.add("another")
        await confirm(bench)
        await bench.settle()
        assert await bench.add("sandbox") == held
        assert not lost & {address.ip for address in agent.addresses.all_addresses()}
        assert agent.addresses.state().alarms == len(lost)


def opened(disk: Disk) -> JournaledPool:
    clock = LoopClock()
    return JournaledPool.open(disk, cooldown_seconds=0.0, clock=clock, log=make_logger(StringIO(), clock))


async def test_doubt_and_former_objects_are_in_the_journal_however_often_it_is_shortened() -> None:
    disk = MemoryDisk()
    kept = opened(disk)
    for number in range(3):
        kept.bind(Identity("node", f"config-{number}"))
    kept.doubt_it("mark")
    kept.doubt_it("another mark")
    kept.shorten_after(-(10**9))
    kept.prove_free()
    kept.close()
    again = opened(disk)
    assert again.doubt == "mark"
    assert [again.is_former(f"config-{number}") for number in range(3)] == [True, True, False]
    again.bind(Identity("node", "config-0"))
    again.believe()
    again.close()
    last = opened(disk)
    assert not last.doubt
    assert [last.is_former(f"config-{number}") for number in range(3)] == [False, True, True]
