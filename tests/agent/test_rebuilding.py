"""An agent whose journal is lost: nothing is given away twice, and the node gets on."""

import asyncio
import json
from typing import Any

import pytest
from msgspec import structs

from agent.node_bench import MANAGER, Bench, container
from podtide.agent.pool.journal import JOURNAL
from podtide.agent.port import NoAddress
from podtide.cluster.port import DeletePreconditions, Page
from podtide.core.pool.states import State
from podtide.resources.base import Resource
from podtide.resources.node_network_config import IPAssignment, NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.settings import Settings

QUICK = Settings(add_wait_seconds=1.0)


async def bench_with_lost_records(shown: int = 3, silent: int = 0) -> tuple[Bench, list[Pod], list[str]]:
    """A node that holds 15 addresses; some of its pods show theirs, some do not, and the agent's disk is new."""
    bench = Bench(settings=QUICK)
    await bench.join()
    addresses: list[str] = []
    async with bench.controller(), bench.running():
        await bench.settle()
        pods = await bench.schedule_many(shown + silent)
        for pod in pods:
            addresses += await bench.add(f"sandbox-{pod.metadata.name}", pod)
    for pod, address in zip(pods[:shown], addresses, strict=False):
        await bench.report(pod, PodPhase.RUNNING, [address])
    bench.disk = MemoryDisk()
    return bench, pods, addresses


async def test_pods_keep_what_they_show_and_the_rest_is_free() -> None:
    bench, pods, addresses = await bench_with_lost_records()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.AVAILABLE], counts[State.QUARANTINED]) == (3, 12, 0)
        assert agent.addresses.state().demand == 3
        fresh = {(await bench.add(f"new-{number}"))[0] for number in range(12)}
        assert not fresh & set(addresses)
        assert agent.addresses.state().waiting_pods == 0
        assert len(pods) == 3


async def test_a_cache_that_lags_behind_the_cluster_is_not_rebuilt_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, _pods, addresses = await bench_with_lost_records(shown=20)
    stale = await bench.config()
    (full,) = stale.status.network_containers
    early = structs.replace(full, ip_assignments=full.ip_assignments[:4], version=full.version - 1)
    status = structs.replace(stale.status, network_containers=[early])
    metadata = structs.replace(stale.metadata, resource_version="1")
    late_page = Page(
        [structs.replace(stale, metadata=metadata, status=status)], stale.metadata.resource_version
    )
    read = bench.cluster.list

    async def list_late(kind: type[Resource], *arguments: Any, **options: Any) -> Any:
        return late_page if kind is NodeNetworkConfig else await read(kind, *arguments, **options)

    monkeypatch.setattr(bench.cluster, "list", list_late)
    async with bench.running(sync=False) as agent:
        await bench.settle()
        assert not list(agent.addresses.all_addresses()), "nothing is believed that is not the present"
        async with bench.controller():
            await bench.server.replace_status(
                structs.replace(stale, status=structs.replace(stale.status, assigned_ip_count=1)),
                manager=MANAGER,
            )
            await agent.synced.wait()
            assert {a.ip for a in agent.addresses.all_addresses() if a.state is State.ASSIGNED} == set(
                addresses
            )


async def test_nothing_is_free_until_every_pod_has_shown_its_address_or_is_gone() -> None:
    bench, pods, addresses = await bench_with_lost_records(shown=1, silent=2)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.QUARANTINED]) == (0, 15)
        with pytest.raises(NoAddress, match="15 are withheld until every pod shows its address"):
            await bench.add("early")
        await bench.report(pods[1], PodPhase.RUNNING, [addresses[1]])
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 15
        await bench.remove(pods[2])
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 0
        assert not set(await bench.add("late")) & set(addresses[:2])


@pytest.mark.parametrize("end", ["deleted by force", "ended"])
async def test_what_a_pod_showed_that_goes_meanwhile_is_its_own_until_the_del_of_its_sandbox(
    end: str,
) -> None:
    bench, pods, addresses = await bench_with_lost_records(shown=2, silent=1)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        if end == "ended":
            await bench.report(pods[0], PodPhase.SUCCEEDED, [addresses[0]])
        else:
            bench.server.server.delete(
                Pod, pods[0].metadata.name, pods[0].metadata.namespace, DeletePreconditions(grace_seconds=0)
            )
        await bench.settle()
        await bench.remove(pods[2])
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.AVAILABLE], counts[State.QUARANTINED]) == (2, 13, 0)
        assert bench.delete("sandbox-pod-0", pods[0]) == (addresses[0],)


async def test_what_a_pod_showed_that_goes_meanwhile_is_collected_if_no_del_comes() -> None:
    bench, pods, _addresses = await bench_with_lost_records(shown=2, silent=1)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        await bench.remove(pods[0])
        await bench.remove(pods[2])
        await bench.settle(310)
        assert agent.addresses.state().collected_leaks == 1
        assert agent.addresses.state().counts[State.ASSIGNED] == 1


@pytest.mark.parametrize("call", ["DEL", "ADD"])
async def test_a_call_of_a_pod_proves_that_what_it_showed_before_is_free(call: str) -> None:
    bench, pods, _addresses = await bench_with_lost_records(shown=2, silent=1)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        if call == "DEL":
            await bench.mark_deleted(pods[0])
            await bench.settle()
            assert bench.delete("sandbox-pod-0", pods[0]) == ()
        else:
            with pytest.raises(NoAddress):
                await bench.add("its-next-sandbox", pods[0])
        await bench.remove(pods[0])
        await bench.remove(pods[2])
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.AVAILABLE]) == (1, 14)


async def test_a_late_del_of_an_earlier_sandbox_proves_nothing_of_the_one_that_the_pod_lives_in() -> None:
    bench, pods, addresses = await bench_with_lost_records(shown=2, silent=1)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.delete("an-earlier-sandbox", pods[0]) == ()
        bench.server.server.delete(
            Pod, pods[0].metadata.name, pods[0].metadata.namespace, DeletePreconditions(grace_seconds=0)
        )
        await bench.remove(pods[2])
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.AVAILABLE]) == (2, 13)
        assert bench.delete("sandbox-pod-0", pods[0]) == (addresses[0],)


async def test_a_pod_that_asks_for_an_address_does_not_wait_for_itself() -> None:
    bench, pods, _addresses = await bench_with_lost_records(shown=1, silent=1)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 15
        assert await bench.add("another-sandbox", pods[1])
        assert agent.addresses.state().counts[State.QUARANTINED] == 0


async def test_what_two_pods_show_is_neither_s_and_nobody_s_until_one_of_them_is_gone() -> None:
    bench, pods, addresses = await bench_with_lost_records()
    former = await bench.schedule("former")
    await bench.report(former, PodPhase.RUNNING, [addresses[0]])
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.QUARANTINED]) == (2, 1)
        await bench.mark_deleted(former)
        assert bench.delete("sandbox-of-former", former) == ()
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 1
        assert not set(await bench.add("fresh")) & set(addresses)
        await bench.remove(former)
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.QUARANTINED]) == (4, 0)
        await bench.mark_deleted(pods[0])
        await bench.settle()
        assert bench.delete("sandbox-pod-0", pods[0]) == (addresses[0],)


async def test_what_two_pods_show_is_still_contested_after_a_restart() -> None:
    bench, pods, addresses = await bench_with_lost_records()
    former = await bench.schedule("former")
    await bench.report(former, PodPhase.RUNNING, [addresses[0]])
    async with bench.controller():
        async with bench.running():
            await bench.settle()
        async with bench.running() as agent:
            await bench.settle()
            assert agent.addresses.state().counts[State.QUARANTINED] == 1
            await bench.report(former, PodPhase.RUNNING, await bench.add("its-next-sandbox", former))
            await bench.settle()
            counts = agent.addresses.state().counts
            assert (counts[State.ASSIGNED], counts[State.QUARANTINED]) == (4, 0)
            assert len(pods) == 3


async def test_a_pod_that_shows_what_a_silent_one_has_does_not_get_it() -> None:
    bench, pods, addresses = await bench_with_lost_records(shown=0, silent=1)
    former = await bench.schedule("former")
    await bench.report(former, PodPhase.RUNNING, [addresses[0]])
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        await bench.mark_deleted(former)
        assert bench.delete("sandbox-of-former", former) == ()
        await bench.report(pods[0], PodPhase.RUNNING, [addresses[0]])
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 1
        await bench.remove(former)
        await bench.settle()
        counts = agent.addresses.state().counts
        assert (counts[State.ASSIGNED], counts[State.QUARANTINED]) == (1, 0)


async def test_what_was_named_for_release_stays_named() -> None:
    bench = Bench()
    config = await bench.join()
    grants = [IPAssignment(name=f"n-{number}", ip=f"10.0.9.{number}") for number in range(15)]
    [there] = config.status.network_containers
    await bench.edit_request(15)
    config = await bench.config()
    spec = structs.replace(config.spec, ips_not_in_use=["n-3", "n-4"])
    await bench.server.replace(structs.replace(config, spec=spec), manager="podtide-agent")
    await bench.fill_in([structs.replace(there, ip_assignments=grants, version=2)])
    async with bench.running() as agent:
        await bench.settle()
        named = {each.name for each in agent.addresses.all_addresses() if each.state is State.PENDING_RELEASE}
        assert named == {"n-3", "n-4"}
        given = {await bench.add(f"sandbox-{number}") for number in range(13)}
        assert ("10.0.9.3",) not in given
        assert ("10.0.9.4",) not in given


async def test_a_rebuild_goes_on_after_a_restart() -> None:
    bench, pods, addresses = await bench_with_lost_records(shown=1, silent=1)
    async with bench.controller():
        async with bench.running():
            await bench.settle()
        async with bench.running() as agent:
            await bench.settle()
            assert agent.addresses.state().counts[State.QUARANTINED] == 15
            await bench.report(pods[1], PodPhase.RUNNING, [addresses[1]])
            await bench.settle()
            assert agent.addresses.state().counts[State.ASSIGNED] == 2
            assert agent.addresses.state().counts[State.QUARANTINED] == 0


LOST = "this node's records are lost; nothing is free until it is proven"


async def test_a_new_node_does_not_say_that_its_records_are_lost() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.schedule_many(20)
        await bench.settle(60)
    records = [json.loads(line) for line in bench.lines.getvalue().splitlines()]
    assert [each for each in records if each["level"] in {"warning", "error"}] == []
    assert bench.log(
        "there is no journal yet: nothing is free until the cluster has shown what this node has"
    )


async def test_a_new_node_whose_config_changes_while_it_is_read_alarms_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(settings=QUICK)
    config = await bench.join()
    early = structs.replace(config, metadata=structs.replace(config.metadata, resource_version="1"))
    late_page = Page([early], config.metadata.resource_version)
    read = bench.cluster.list

    async def list_late(kind: type[Resource], *arguments: Any, **options: Any) -> Any:
        return late_page if kind is NodeNetworkConfig else await read(kind, *arguments, **options)

    monkeypatch.setattr(bench.cluster, "list", list_late)
    async with bench.running(sync=False):
        await bench.settle()
    [line] = bench.log("nothing new is handed out")
    assert line["level"] == "info"
    assert "this node has no addresses yet: waiting for the watch to catch up" in line["reason"]


async def test_a_node_that_has_addresses_and_no_journal_says_once_that_its_records_are_lost() -> None:
    bench, _pods, _addresses = await bench_with_lost_records()
    async with bench.controller(), bench.running():
        await bench.settle(60)
    [line] = bench.log(LOST)
    assert (line["level"], line["reason"], line["addresses"]) == ("warning", "there was no journal", 15)


async def test_a_damaged_journal_is_reported_and_the_pool_rebuilt() -> None:
    bench, _pods, addresses = await bench_with_lost_records()
    bench.disk.replace(JOURNAL, b"this is no journal\n" * 20)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.log(LOST)
        assert agent.addresses.state().counts[State.ASSIGNED] == 3
        assert not set(await bench.add("fresh")) & set(addresses)


async def test_quarantined_addresses_are_held_and_neither_given_back_nor_asked_for_again() -> None:
    bench, _pods, _addresses = await bench_with_lost_records(shown=1, silent=1)
    await bench.make_subnet(batch=1, buffer=0.0, exhausted=True, starved=True)
    async with bench.controller(), bench.running() as agent:
        await bench.settle(60)
        assert agent.addresses.state().counts[State.QUARANTINED] == 15
        assert (await bench.config()).spec.requested_ip_count == 2
        assert (await bench.config()).spec.ips_not_in_use == []


async def test_addresses_granted_during_a_rebuild_can_be_given_at_once() -> None:
    bench, _pods, addresses = await bench_with_lost_records(shown=1, silent=1)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        await bench.schedule_many(20, "more")
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 15
        assert not set(await bench.add("stranger")) & set(addresses)


async def test_pods_on_the_hosts_network_and_ended_ones_are_not_waited_for() -> None:
    bench, _pods, addresses = await bench_with_lost_records()
    await bench.schedule("host", host_network=True)
    ended = await bench.schedule("ended")
    await bench.report(ended, PodPhase.FAILED, [addresses[0]])
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert agent.addresses.state().counts[State.QUARANTINED] == 0
        assert agent.addresses.state().counts[State.ASSIGNED] == 3


async def test_the_del_of_a_pod_that_is_on_its_way_out_frees_what_was_adopted_for_it() -> None:
    bench, pods, addresses = await bench_with_lost_records()
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.delete("an-earlier-sandbox", pods[0]) == (), (
            "the pod lives: it may be another sandbox's DEL"
        )
        await bench.mark_deleted(pods[0])
        await bench.settle()
        assert bench.delete("sandbox-pod-0", pods[0]) == (addresses[0],)


async def test_a_new_sandbox_of_a_pod_gets_a_fresh_address_and_the_adopted_one_is_collected() -> None:
    bench, pods, addresses = await bench_with_lost_records()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        fresh = await bench.add("new-sandbox", pods[0])
        assert fresh != (addresses[0],)
        await bench.report(pods[0], PodPhase.RUNNING, fresh)
        await bench.settle(310)
        assert agent.addresses.state().collected_leaks == 1
        assert agent.addresses.state().demand == 3
        assert await bench.add("new-sandbox", pods[0]) == fresh


async def test_a_new_node_needs_no_proof() -> None:
    bench = Bench()
    await bench.join()
    pods = await bench.schedule_many(3)
    async with bench.controller(), bench.running() as agent:
        added = await asyncio.gather(*(bench.add(pod.metadata.name, pod) for pod in pods))
        assert len(set(added)) == 3
        assert bench.clock.monotonic() < 1.0
        assert agent.addresses.state().counts[State.QUARANTINED] == 0


async def test_both_addresses_of_a_pod_are_adopted() -> None:
    bench = Bench()
    await bench.join(container("four"), container("six", subnet="pods-v6", family=6))
    async with bench.controller():
        async with bench.running():
            pod = await bench.schedule("pod")
            both = await bench.add("sandbox", pod)
        await bench.report(pod, PodPhase.RUNNING, both)
        bench.disk = MemoryDisk()
        async with bench.running() as agent:
            await bench.settle()
            assert agent.addresses.state().counts[State.ASSIGNED] == 2
            assert agent.addresses.state().demand == 1


async def test_a_full_disk_delays_the_rebuild_and_breaks_nothing() -> None:
    bench, _pods, _addresses = await bench_with_lost_records()
    async with bench.controller(), bench.running(sync=False) as agent:
        await asyncio.sleep(0)
        bench.disk.full = True
        await bench.settle(60)
        assert agent.addresses.state().counts[State.AVAILABLE] == 0
        bench.disk.full = False
        await bench.settle(60)
        assert agent.addresses.state().counts[State.ASSIGNED] == 3
