import asyncio
from random import Random

import pytest
from msgspec import structs

from agent.node_bench import Bench, CountingCluster, container
from cluster.faulty_cluster import Script
from podtide.cluster.port import Conflict, Forbidden, Unavailable
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE, WAITING_PODS_ANNOTATION
from podtide.resources.node_network_config import (
    IPAssignment,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    ScalerStatus,
)
from podtide.resources.pod import PodPhase
from podtide.runtime.settings import Settings


def waiting_pods(cluster: CountingCluster) -> list[str | None]:
    return [config.metadata.annotations.get(WAITING_PODS_ANNOTATION) for config in cluster.applied]


def names(cluster: CountingCluster) -> list[set[str]]:
    return [set(config.spec.ips_not_in_use) for config in cluster.applied]


async def test_a_burst_of_35_pods_as_35_events_is_one_write_of_47() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        first = await bench.schedule("first")
        await bench.settle()
        assert bench.cluster.requests == [15]
        await bench.add("sandbox", first)
        pods = await bench.schedule_many(35)
        added = await asyncio.gather(*(bench.add(pod.metadata.name, pod) for pod in pods))
        await bench.settle()
        assert bench.cluster.requests == [15, 47]
        assert len(set(added)) == 35
        assert bench.agent.addresses.state().waiting_pods == 0


async def test_a_node_without_pods_asks_for_its_buffer_and_then_writes_nothing() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.requests == [15]
        await bench.settle(3600)
        assert bench.cluster.requests == [15]


async def test_a_restarted_agent_writes_nothing_when_all_is_as_it_should_be() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller():
        async with bench.running():
            pods = await bench.schedule_many(20)
            for pod in pods:
                await bench.add(pod.metadata.name, pod)
            await bench.settle()
        before = list(bench.cluster.requests)
        async with bench.running():
            await bench.settle(3600)
            assert bench.cluster.requests == before
            assert bench.agent.addresses.state().demand == 20


async def test_pods_spread_over_time_are_one_write_per_half_second_at_most() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle()
        for number in range(60):
            await bench.schedule(f"pod-{number}")
            await asyncio.sleep(0.09)
        await bench.settle()
        written = bench.cluster.applied_at[1:]
        assert len(written) <= 4
        assert bench.cluster.requests[-1] == 79


@pytest.mark.parametrize("edited", [0, 3, 500])
async def test_an_edit_of_the_request_out_of_band_heals_in_one_write(edited: int) -> None:
    bench = Bench()
    await bench.join()
    await bench.schedule_many(20)
    async with bench.running():
        await bench.settle()
        assert bench.cluster.requests == [31]
        await bench.edit_request(edited)
        await bench.settle(60)
        assert bench.cluster.requests == [31, 31]
        assert (await bench.config()).spec.requested_ip_count == 31


async def test_a_write_carries_uid_and_spec_and_nothing_of_anybody_else() -> None:
    bench = Bench()
    config = await bench.join()
    async with bench.running():
        await bench.settle()
        [written] = bench.cluster.applied
        assert written.spec == NodeNetworkConfigSpec(requested_ip_count=15)
        assert written.metadata.uid == config.metadata.uid
        assert structs.asdict(written)["status"] == structs.asdict(NodeNetworkConfig())["status"]
        there = await bench.config()
        assert there.metadata.owner_references == config.metadata.owner_references


async def test_a_lost_answer_is_not_written_again_once_its_effect_is_seen() -> None:
    faults = Script()
    faults.lost_answers["apply"] = [Unavailable("the connection broke")]
    bench = Bench(faults=faults)
    await bench.join()
    async with bench.running():
        await bench.settle()
        assert bench.cluster.requests == [15]


@pytest.mark.parametrize("error", [Unavailable("down"), Conflict("not this one"), Forbidden("no right")])
async def test_a_write_that_fails_is_tried_again_until_it_succeeds(error: Exception) -> None:
    bench = Bench(faults=Script(apply=[error, error, error]))
    await bench.join()
    async with bench.running():
        await bench.settle(60)
        assert bench.cluster.requests == [15, 15, 15, 15]
        assert (await bench.config()).spec.requested_ip_count == 15


class LateEvents:
    """What the watches bring comes late."""

    async def before(self, call: str) -> None:
        if call == "event":
            await asyncio.sleep(2.0)

    async def after(self, call: str) -> None:
        """Answers come at once."""


async def test_an_own_write_that_is_seen_late_is_not_written_again() -> None:
    bench = Bench(faults=LateEvents())
    await bench.join()
    await bench.schedule_many(20)
    async with bench.controller(), bench.running():
        await bench.settle(60)
        assert bench.cluster.requests == [31]


async def test_demand_that_changed_during_an_outage_is_one_write_after_it() -> None:
    bench = Bench(faults=Script(apply=[Unavailable("down")] * 3))
    await bench.join()
    async with bench.running():
        await bench.settle(1)
        await bench.schedule_many(36)
        await bench.settle(60)
        assert (await bench.config()).spec.requested_ip_count == 47
        assert bench.cluster.requests[-1] == 47
        assert (await bench.config()).metadata.generation == 2


async def test_updates_of_a_pods_status_alone_cause_no_work() -> None:
    bench = Bench()
    await bench.join()
    pod = await bench.schedule("pod")
    async with bench.running() as agent:
        await bench.settle()
        before = agent.requester.decisions
        for number in range(10):
            await bench.report(pod, PodPhase.RUNNING, [f"10.0.0.{number}"])
        await bench.settle()
        assert agent.requester.decisions == before


async def test_a_burst_is_thought_about_a_few_times_and_not_once_for_every_pod() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        before = agent.requester.decisions
        await bench.schedule_many(60)
        await bench.settle()
        assert agent.requester.decisions - before <= 6
        assert bench.cluster.requests[-1] == 79


async def test_a_burst_is_written_when_it_has_been_gathered_however_late_it_was_thought_about() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle()
        scheduled_at = bench.clock.monotonic()
        await bench.schedule_many(60)
        await bench.settle()
        assert bench.cluster.applied_at[-1] == pytest.approx(scheduled_at + bench.settings.gather_seconds)


@pytest.mark.parametrize("phase", [PodPhase.SUCCEEDED, PodPhase.FAILED])
async def test_a_terminal_phase_takes_a_pod_out_of_demand(phase: PodPhase) -> None:
    bench = Bench()
    await bench.join()
    pods = await bench.schedule_many(20)
    async with bench.running() as agent:
        await bench.settle()
        for pod in pods[:5]:
            await bench.report(pod, phase)
        await bench.settle()
        assert agent.addresses.state().demand == 15


async def test_pods_on_the_hosts_network_and_pods_of_other_nodes_need_nothing() -> None:
    bench = Bench()
    await bench.join()
    await bench.schedule("host", host_network=True)
    await bench.schedule("elsewhere", node="node-2")
    await bench.schedule("here")
    async with bench.running() as agent:
        assert agent.addresses.state().demand == 1


async def test_a_pod_being_deleted_needs_nothing_unless_it_holds_an_address() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        pods = await bench.schedule_many(2)
        await bench.add("sandbox", pods[0])
        for pod in pods:
            await bench.mark_deleted(pod)
        await bench.settle()
        assert agent.addresses.state().demand == 1
        bench.delete("sandbox", pods[0])
        assert agent.addresses.state().demand == 0


async def test_a_static_pod_is_known_by_the_hash_of_its_configuration() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        mirror = await bench.schedule("static", config_hash="0123abcd")
        await bench.settle()
        await bench.add(
            "sandbox", structs.replace(mirror, metadata=structs.replace(mirror.metadata, uid="0123abcd"))
        )
        assert agent.addresses.state().demand == 1
        assert agent.addresses.state().waiting_pods == 0


async def test_shrinking_waits_for_the_delay_and_names_what_is_free_longest() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        pods = await bench.schedule_many(36)
        for pod in pods:
            await bench.add(pod.metadata.name, pod)
        await bench.settle()
        for pod in pods:
            bench.delete(pod.metadata.name, pod)
            await bench.remove(pod)
        await bench.settle(29)
        assert bench.cluster.requests == [47]
        await bench.settle(10)
        assert bench.cluster.requests == [47, 15, 15]
        assert len(names(bench.cluster)[1]) == 32
        assert names(bench.cluster)[2] == set(), "names that are gone are taken out"
        assert agent.addresses.state().requested == 15
        assert len(list(agent.addresses.all_addresses())) == 15


async def test_one_pod_coming_and_going_at_a_batch_boundary_writes_nothing() -> None:
    bench = Bench()
    await bench.join()
    await bench.schedule_many(8)
    async with bench.controller(), bench.running():
        await bench.settle()
        pod = await bench.schedule("one-too-many")
        await bench.settle()
        assert bench.cluster.requests == [15, 31]
        for _ in range(20):
            await bench.remove(pod)
            await bench.settle(10)
            pod = await bench.schedule("one-too-many")
            await bench.settle(10)
        assert bench.cluster.requests == [15, 31]


async def test_what_is_named_is_in_the_journal_before_the_cluster_is_told() -> None:
    bench = Bench(faults=Script(apply=[None, *[Unavailable("down")] * 20]))
    await bench.join()
    async with bench.controller():
        async with bench.running():
            pods = await bench.schedule_many(36)
            await bench.settle()
            for pod in pods:
                await bench.remove(pod)
            await bench.settle(36)
            told = names(bench.cluster)[1]
            assert len(told) == 32
            assert len(bench.log("cannot write the request; will go on trying")) == 1
        bench.disk.crash(Random(1))
        async with bench.running() as agent:
            named = {each.name for each in agent.addresses.all_addresses() if each.state == "PendingRelease"}
            assert named == told


async def test_a_grant_that_comes_after_the_target_fell_is_given_back() -> None:
    bench = Bench(settings=Settings(shrink_delay_seconds=0.0))
    await bench.join()
    async with bench.running() as agent:
        pods = await bench.schedule_many(36)
        await bench.settle()
        for pod in pods:
            await bench.remove(pod)
        await bench.settle()
        assert bench.cluster.requests == [47, 15]
        config = await bench.config()
        spec = NodeNetworkConfigSpec(requested_ip_count=47)
        await bench.fill_in([bench._granted(each, spec) for each in config.status.network_containers])
        await bench.settle()
        assert bench.cluster.requests == [47, 15, 15]
        assert len(names(bench.cluster)[2]) == 32
        await bench.grant()
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 15
        assert names(bench.cluster)[3:] == [set()]


async def test_foreign_names_in_ips_not_in_use_are_cleaned_though_the_count_stays() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        await bench.settle()
        config = await bench.config()
        spec = structs.replace(config.spec, ips_not_in_use=["somebody-elses"])
        await bench.server.replace(structs.replace(config, spec=spec), manager="kubectl")
        await bench.settle()
        assert (await bench.config()).spec.ips_not_in_use == []
        assert set(bench.cluster.requests) == {15}
        writes = len(bench.cluster.applied)
        await bench.settle(600)
        assert len(bench.cluster.applied) == writes


async def test_the_scaler_of_the_node_is_in_force_without_a_cluster_subnet() -> None:
    bench = Bench()
    config = await bench.join()
    scaler = ScalerStatus(
        batch_size=8, request_threshold_percent=25, release_threshold_percent=125, max_ip_count=20
    )
    await bench.fill_in(config.status.network_containers, scaler=scaler)
    await bench.schedule_many(9)
    async with bench.running():
        await bench.settle()
        assert bench.cluster.requests == [15]
        await bench.schedule_many(20, "more")
        await bench.settle()
        assert bench.cluster.requests == [15, 20]


async def test_a_scaler_with_batch_size_zero_counts_otherwise_and_its_batch_is_one() -> None:
    bench = Bench()
    config = await bench.join()
    scaler = ScalerStatus(request_threshold_percent=300, release_threshold_percent=400, max_ip_count=6)
    await bench.fill_in(config.status.network_containers, scaler=scaler)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.requests == [2]  # 1·⌈3 + 0/1⌉, less the primary
        await bench.schedule_many(2)
        await bench.settle()
        assert bench.cluster.requests == [2, 4]
        await bench.schedule_many(5, "more")
        await bench.settle()
        assert bench.cluster.requests == [2, 4, 6]  # and no more than the maximum


async def test_a_cluster_subnet_goes_before_the_nodes_scaler() -> None:
    bench = Bench()
    config = await bench.join()
    await bench.fill_in(config.status.network_containers, scaler=ScalerStatus(batch_size=8, max_ip_count=250))
    await bench.make_subnet(batch=32, buffer=1.0)
    async with bench.running() as agent:
        await bench.settle()
        assert bench.cluster.requests == [31]
        assert agent.addresses.state().scaler is not None


async def test_exhaustion_makes_a_node_give_back_at_once_and_keep_one() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    async with bench.controller(), bench.running() as agent:
        pods = await bench.schedule_many(5)
        for pod in pods:
            await bench.add(pod.metadata.name, pod)
        await bench.set_subnet(batch=1, buffer=1.0, exhausted=True)
        await bench.settle(1)
        assert bench.cluster.requests[:2] == [15, 6]
        assert len(list(agent.addresses.all_addresses())) == 6
        await bench.set_subnet(batch=1, buffer=0.0, exhausted=True, starved=True)
        await bench.settle(1)
        assert len(list(agent.addresses.all_addresses())) == 5
        assert agent.addresses.state().starved
        await bench.set_subnet()
        await bench.settle(1)
        assert (await bench.config()).spec.requested_ip_count == 15


async def test_several_containers_of_a_family_share_the_request() -> None:
    bench = Bench()
    await bench.join(container("one"), container("two"))
    await bench.schedule_many(36)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.cluster.requests == [23]  # (48 - 2) / 2
        assert len(list(agent.addresses.all_addresses())) == 46
        assert agent.addresses.state().primaries == 2


async def test_with_two_families_each_container_is_asked_for_the_same() -> None:
    bench = Bench()
    await bench.join(container("four"), container("six", subnet="pods-v6", family=6))
    pods = await bench.schedule_many(20)
    async with bench.controller(), bench.running() as agent:
        added = [await bench.add(pod.metadata.name, pod) for pod in pods]
        await bench.settle()
        assert bench.cluster.requests == [31]
        assert all(len(both) == 2 and ":" not in both[0] and ":" in both[1] for both in added)
        assert agent.addresses.state().demand == 20
        await bench.make_subnet("pods-v6", batch=1, buffer=1.0, exhausted=True)
        await bench.settle()
        assert (await bench.config()).spec.requested_ip_count == 21, "the scarcer subnet decides"


async def test_waiting_pods_are_told_along_with_a_write_and_left_out_at_none() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        pods = await bench.schedule_many(12)
        await bench.settle()
        assert waiting_pods(bench.cluster) == ["12"]
        for pod in pods:
            await bench.add(pod.metadata.name, pod)
        await bench.settle()
        assert len(bench.cluster.applied) == 1, "nobody waits for this node's word: it is not owed anything"
        await bench.edit_request(3)
        await bench.settle()
        assert waiting_pods(bench.cluster) == ["12", None]


async def test_a_node_that_is_owed_tells_when_the_number_of_waiting_pods_changes_and_only_then() -> None:
    bench = Bench(settings=Settings(add_wait_seconds=1.0))
    bench.capacity = 2
    await bench.join()
    await bench.make_subnet(batch=1, buffer=0.0, exhausted=True, starved=True)
    async with bench.controller(), bench.running():
        pods = await bench.schedule_many(5)
        await bench.settle()
        assert (bench.cluster.requests, waiting_pods(bench.cluster)) == ([5], ["5"])
        for pod in pods[:2]:
            await bench.add(pod.metadata.name, pod)
        await bench.settle()
        assert (bench.cluster.requests, waiting_pods(bench.cluster)) == ([5, 5], ["5", "3"])
        await bench.settle(600)
        assert len(bench.cluster.applied) == 2


async def test_nothing_is_asked_for_before_the_pods_are_listed() -> None:
    bench = Bench(faults=Script(list=[60.0, 0.0]))
    config = await bench.join()
    grants = [IPAssignment(name=f"n-{number}", ip=f"10.0.9.{number}") for number in range(40)]
    held = structs.replace(config.status.network_containers[0], ip_assignments=grants, version=1)
    await bench.edit_request(40)
    await bench.fill_in([held])
    await bench.schedule_many(30)
    async with bench.running(sync=False) as agent:
        await bench.settle(50)
        assert bench.cluster.requests == []
        assert agent.addresses.state().demand is None
        await bench.settle(60)
        assert agent.addresses.state().demand == 30
        assert bench.cluster.requests == [47]


async def test_nothing_is_asked_for_before_there_is_a_network_container() -> None:
    bench = Bench()
    config = await bench.join(fill_in=False)
    await bench.schedule_many(3)
    async with bench.running(sync=False) as agent:
        await bench.settle(60)
        assert bench.cluster.requests == []
        assert not agent.synced.is_set()
        node_uid = config.metadata.owner_references[0].uid
        await bench.fill_in([container(node_uid)])
        await bench.settle()
        assert bench.cluster.requests == [15]


async def test_a_container_that_names_no_subnet_goes_by_the_nodes_own_scaler() -> None:
    bench = Bench()
    await bench.join(container("nameless", subnet=""))
    await bench.schedule_many(3)
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert bench.cluster.requests == [15]
        assert agent.addresses.state().subnet == ""


async def test_an_object_that_was_deleted_is_not_made_again() -> None:
    bench = Bench(faults=Script(apply=[2.0]))
    await bench.join()
    async with bench.running():
        await bench.settle(1)
        assert len(bench.cluster.applied) == 1
        await bench.server.delete(NodeNetworkConfig, "node-1", SYSTEM_NAMESPACE)
        await bench.settle(60)
        assert (await bench.server.list(NodeNetworkConfig)).items == []


async def test_each_decision_that_is_written_is_logged_with_its_words() -> None:
    bench = Bench()
    await bench.join()
    await bench.schedule_many(36)
    async with bench.controller(), bench.running():
        await bench.settle(600)
        [line] = bench.log("request written")
        assert "16·⌈0.5 + 36/16⌉ - 1" in line["decision"]
        assert (line["node"], line["before"], line["request"]) == ("node-1", 0, 47)
