"""The pretend kubelet does for its pods what a real one would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from itertools import pairwise
from random import Random

import pytest
from msgspec import Struct, structs

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import DeletePreconditions, NotFound
from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodIP, PodPhase, PodStatus
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.nodes.container_runtime import ContainerRuntime
from podtide.simulation.nodes.kubelet import Kubelet, KubeletHabits, Move, Sandbox, next_move
from podtide.simulation.nodes.pods import MANAGER, NAMESPACE, new_pod
from podtide.simulation.trace import Trace
from simulation.scripted_plugin import OUT_OF_ADDRESSES, ScriptedPlugin


class Node(Struct, frozen=True):
    """A cluster with one kubelet in it."""

    cluster: EmbeddedCluster
    kubelet: Kubelet
    trace: Trace

    async def add(self, name: str, node: str = "node-1", *, host_network: bool = False) -> Pod:
        return await self.cluster.create(new_pod(name, node, host_network=host_network), manager=MANAGER)

    async def pod(self, name: str) -> Pod:
        return await self.cluster.get(Pod, name, NAMESPACE)

    async def is_gone(self, name: str) -> bool:
        try:
            await self.pod(name)
        except NotFound:
            return True
        return False


@asynccontextmanager
async def a_node(plugin: ScriptedPlugin, habits: KubeletHabits | None = None) -> AsyncIterator[Node]:
    clock, trace = LoopClock(), Trace()
    cluster = EmbeddedCluster(clock=clock, randomness=Random(1))
    kubelet = Kubelet(
        cluster,
        "node-1",
        ContainerRuntime("node-1", plugin, clock=clock, trace=trace),
        habits=habits or KubeletHabits(),
        clock=clock,
        randomness=Random(2),
        log=make_logger(StringIO(), clock),
    )
    running = asyncio.create_task(kubelet.run())
    try:
        yield Node(cluster, kubelet, trace)
    finally:
        running.cancel()
        await asyncio.wait({running})
        cluster.close()


async def test_a_pod_gets_a_sandbox_an_address_and_shows_it() -> None:
    plugin = ScriptedPlugin()
    async with a_node(plugin) as node:
        pod = await node.add("web")
        await asyncio.sleep(1)
        assert (await node.pod("web")).status == PodStatus(
            phase=PodPhase.RUNNING, pod_ip="10.0.0.1", pod_ips=[PodIP(ip="10.0.0.1")]
        )
        (sandbox,) = node.kubelet.sandboxes()
        (call,) = plugin.calls
        assert (call.container_id, call.ifname, call.pod.pod_namespace, call.pod.pod_name) == (
            sandbox.id,
            "eth0",
            "default",
            "web",
        )
        assert (call.pod.pod_uid, call.pod.infra_container_id) == (pod.metadata.uid, sandbox.id)


async def test_a_pod_of_another_node_or_on_the_hosts_network_needs_no_call() -> None:
    plugin = ScriptedPlugin()
    async with a_node(plugin) as node:
        await node.add("elsewhere", "node-2")
        await node.add("host", host_network=True)
        await asyncio.sleep(1)
        assert plugin.calls == []
        assert (await node.pod("host")).status.phase is PodPhase.RUNNING


async def test_a_failed_sandbox_is_torn_down_and_tried_anew_under_another_id_after_a_pause() -> None:
    plugin = ScriptedPlugin(failing_adds=2)
    async with a_node(plugin) as node:
        await node.add("web")
        await asyncio.sleep(60)
        assert plugin.verbs() == ["ADD", "DEL", "ADD", "DEL", "ADD"]
        first, first_deleted, second, _, third = [call.container_id for call in plugin.calls]
        assert first == first_deleted
        assert len({first, second, third}) == 3
        adds = node.trace.plugin_calls("ADD")
        assert [call.words for call in adds] == [f"code 11: {OUT_OF_ADDRESSES}"] * 2 + ["10.0.0.1"]
        assert all(10 <= later.at - earlier.at <= 15 for earlier, later in pairwise(adds))


async def test_an_impatient_kubelet_makes_the_next_sandbox_without_a_pause() -> None:
    plugin = ScriptedPlugin(failing_adds=2)
    async with a_node(plugin, KubeletHabits(impatience=1.0)) as node:
        await node.add("web")
        await asyncio.sleep(1)
        assert plugin.verbs() == ["ADD", "DEL", "ADD", "DEL", "ADD"]


async def test_a_pod_whose_sandbox_dies_shows_no_address_until_it_has_another_one() -> None:
    plugin = ScriptedPlugin(add_seconds=1)
    async with a_node(plugin) as node:
        await node.add("web")
        await asyncio.sleep(5)
        (sandbox,) = node.kubelet.sandboxes()
        node.kubelet.lose_sandbox(sandbox)
        await asyncio.sleep(0.5)
        assert (await node.pod("web")).status == PodStatus(phase=PodPhase.RUNNING)
        await asyncio.sleep(5)
        assert plugin.verbs() == ["ADD", "DEL", "ADD"]
        assert (await node.pod("web")).status.pod_ip == "10.0.0.2"


async def test_a_deleted_pod_is_torn_down_ended_and_removed() -> None:
    plugin = ScriptedPlugin()
    async with a_node(plugin) as node:
        await node.add("web")
        await asyncio.sleep(1)
        await node.cluster.delete(Pod, "web", NAMESPACE)
        await asyncio.sleep(1)
        assert plugin.verbs() == ["ADD", "DEL"]
        assert plugin.held == {}
        assert node.kubelet.sandboxes() == ()
        assert await node.is_gone("web")


async def test_a_pod_stays_until_its_sandbox_could_be_torn_down() -> None:
    plugin = ScriptedPlugin(failing_dels=2)
    async with a_node(plugin) as node:
        await node.add("web")
        await asyncio.sleep(1)
        await node.cluster.delete(Pod, "web", NAMESPACE)
        await asyncio.sleep(1)
        assert not await node.is_gone("web")
        await asyncio.sleep(60)
        assert plugin.verbs() == ["ADD", "DEL", "DEL", "DEL"]
        assert await node.is_gone("web")


async def test_a_pod_that_completes_gives_its_address_back_and_stays() -> None:
    plugin = ScriptedPlugin()
    async with a_node(plugin) as node:
        await node.add("job")
        await asyncio.sleep(1)
        done = structs.replace(await node.pod("job"), status=PodStatus(phase=PodPhase.SUCCEEDED))
        await node.cluster.replace_status(done, manager=MANAGER)
        await asyncio.sleep(60)
        assert plugin.verbs() == ["ADD", "DEL"]
        assert (await node.pod("job")).status.phase is PodPhase.SUCCEEDED


async def test_a_pod_deleted_while_its_add_waits_is_torn_down_at_once() -> None:
    plugin = ScriptedPlugin(add_seconds=10)
    async with a_node(plugin) as node:
        await node.add("web")
        await asyncio.sleep(1)
        await node.cluster.delete(Pod, "web", NAMESPACE)
        await asyncio.sleep(1)
        assert plugin.verbs() == ["ADD", "DEL"]
        assert plugin.calls[0].container_id == plugin.calls[1].container_id
        assert await node.is_gone("web")
        await asyncio.sleep(20)
        assert node.kubelet.sandboxes() == ()


async def test_a_pod_made_again_under_its_name_gets_a_sandbox_of_its_own() -> None:
    plugin = ScriptedPlugin()
    async with a_node(plugin) as node:
        for _ in range(2):
            await node.add("web-0")
            await asyncio.sleep(1)
            await node.cluster.delete(Pod, "web-0", NAMESPACE)
            await asyncio.sleep(1)
        first, _, second, _ = [call.container_id for call in plugin.calls]
        assert plugin.verbs() == ["ADD", "DEL", "ADD", "DEL"]
        assert first != second


async def test_a_pod_that_comes_back_with_a_backup_while_its_sandbox_is_torn_down_gets_another_one() -> None:
    plugin = ScriptedPlugin(failing_dels=1)
    async with a_node(plugin) as node:
        await node.add("web")
        await asyncio.sleep(1)
        backup = node.cluster.snapshot()
        node.cluster.server.delete(Pod, "web", NAMESPACE, DeletePreconditions(grace_seconds=0))
        await asyncio.sleep(1)
        node.cluster.restore(backup)
        await asyncio.sleep(60)
        assert plugin.verbs() == ["ADD", "DEL", "DEL", "ADD"]
        assert (await node.pod("web")).status.pod_ip


@pytest.mark.parametrize(("at_once", "seconds"), [(1, 4), (2, 2), (8, 1)])
async def test_no_more_sandboxes_than_allowed_are_set_up_side_by_side(at_once: int, seconds: int) -> None:
    plugin = ScriptedPlugin(add_seconds=1)
    async with a_node(plugin, KubeletHabits(at_once=at_once)) as node:
        for number in range(4):
            await node.add(f"web-{number}")
        await asyncio.sleep(60)
        assert plugin.most_adds_at_once == min(at_once, 4)
        assert node.trace.plugin_calls("ADD")[-1].at == pytest.approx(seconds)


def a_pod(phase: PodPhase, *shown: str, leaving: bool = False) -> Pod:
    pod = new_pod("web", "node-1")
    metadata = ObjectMeta(name="web", deletion_timestamp="2025-06-15T15:06:40Z" if leaving else None)
    status = PodStatus(phase=phase, pod_ips=[PodIP(ip=ip) for ip in shown])
    return structs.replace(pod, metadata=metadata, status=status)


@pytest.mark.parametrize(
    ("pod", "sandbox", "move"),
    [
        (None, None, Move.FORGET),
        (None, Sandbox("s", "web", ("10.0.0.1",)), Move.TEAR_DOWN),
        (a_pod(PodPhase.PENDING), None, Move.SET_UP),
        (a_pod(PodPhase.RUNNING, "10.0.0.1"), None, Move.HIDE),
        (a_pod(PodPhase.PENDING), Sandbox("s", "web"), Move.TEAR_DOWN),
        (a_pod(PodPhase.PENDING), Sandbox("s", "web", ("10.0.0.1",)), Move.SHOW),
        (a_pod(PodPhase.RUNNING), Sandbox("s", "web", ("10.0.0.1",)), Move.SHOW),
        (a_pod(PodPhase.RUNNING, "10.0.0.1"), Sandbox("s", "web", ("10.0.0.1",)), Move.REST),
        (a_pod(PodPhase.FAILED), Sandbox("s", "web", ("10.0.0.1",)), Move.TEAR_DOWN),
        (a_pod(PodPhase.FAILED), None, Move.REST),
        (a_pod(PodPhase.RUNNING, leaving=True), Sandbox("s", "web", ("10.0.0.1",)), Move.TEAR_DOWN),
        (a_pod(PodPhase.RUNNING, leaving=True), None, Move.REMOVE),
    ],
)
def test_the_next_move_follows_from_the_pod_and_its_sandbox(
    pod: Pod | None, sandbox: Sandbox | None, move: Move
) -> None:
    assert next_move(pod, sandbox) is move
