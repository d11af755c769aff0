"""What podtide costs an API server, by the server's own audit log and by the bytes that it sends to an agent.

One node with an agent, and 5,000 pods in the cluster that are none of its business. A run is made once; each test
looks at one part of its bill.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from e2e.fleet import Fleet, running_fleet, until
from e2e.fleet_audit import AGENT, CONTROLLER, AuditLog, Request, counted
from e2e.fleet_proxy import CountingProxy
from podtide.cluster.port import Cluster
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase
from podtide.simulation.nodes.pods import MANAGER, new_pod
from podtide.simulation.world.workload import Workload

NODE = "node-0"
ELSEWHERE = "elsewhere"
CROWD = 5_000
WRITERS = 32
FEW = 8
"""As many pods as the first batch has room for, with half a batch to spare."""
BURST = 32
"""So many more need two further batches."""
CALM_LOOKS = 6
"""So often on end must all be as it is to be, with no further request, to count as settled: for longer than a node gathers."""


class Bill(Struct, frozen=True, kw_only=True):
    """What was asked, and what was sent."""

    few: tuple[list[Request], list[Request]]
    """What agent and controller asked for while a few pods started, for which there was room."""
    burst: tuple[list[Request], list[Request]]
    """The same of a burst of pods, for which there was not."""
    request_changes: int
    """How often the node's request changed in that burst."""
    agent: list[Request]
    """All that the agent ever asked for."""
    crowd_bytes: int
    """What the agent received while pods came elsewhere."""
    start_bytes: int
    """What it received from a start among all these pods until it was ready."""
    own_bytes: int
    """What it received while its own few pods came and ran, among all those."""


@pytest.fixture(scope="module")
def bill(control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bill]:
    directory = tmp_path_factory.mktemp("api-cost")
    log = AuditLog(directory)
    with ControlPlane(control_plane_binaries, api_server_options=log.options) as there:
        yield asyncio.run(run_up(there, log, directory))


async def run_up(there: ControlPlane, log: AuditLog, directory: Path) -> Bill:
    proxy = CountingProxy(there.url)
    async with proxy.serving(), running_fleet(there, directory, "10.1.0.0/20") as fleet:
        workload = Workload(fleet.cluster)
        await fleet.start_controllers(1)
        await fleet.cluster.create(Node(metadata=ObjectMeta(name=ELSEWHERE)), manager=MANAGER)
        await fleet.add_nodes(1, "--gather", "1s", "--gather-at-most", "60s", through=proxy.kubeconfig)
        await has_settled(fleet, log, pods=0, granted=15)

        begin = log.now
        await workload.add_pods(NODE, FEW)
        await has_settled(fleet, log, pods=FEW, granted=15)
        few = log.since(begin, AGENT), log.since(begin, CONTROLLER)

        begin, generation = log.now, await generation_of(fleet)
        agent = fleet.nodes[NODE].agent
        # It hears of all of them at once, however slowly they are made.
        os.kill(agent.pid, signal.SIGSTOP)
        await workload.add_pods(NODE, BURST)
        os.kill(agent.pid, signal.SIGCONT)
        await has_settled(fleet, log, pods=FEW + BURST, granted=47)
        changes = await generation_of(fleet) - generation
        burst = log.since(begin, AGENT), log.since(begin, CONTROLLER)

        crowd_begin = proxy.bytes_received
        await add_crowd(fleet.cluster)
        start_begin = proxy.bytes_received
        await asyncio.to_thread(agent.kill)
        await asyncio.to_thread(agent.start)
        own_begin = proxy.bytes_received
        await workload.add_pods(NODE, FEW)
        await has_settled(fleet, log, pods=FEW + BURST + FEW, granted=63)
        return Bill(
            few=few,
            burst=burst,
            request_changes=changes,
            agent=log.since(0, AGENT),
            crowd_bytes=start_begin - crowd_begin,
            start_bytes=own_begin - start_begin,
            own_bytes=proxy.bytes_received - own_begin,
        )


async def add_crowd(cluster: Cluster) -> None:
    async def add(numbers: range) -> None:
        for number in numbers:
            await cluster.create(new_pod(f"crowd-{number}", ELSEWHERE), manager=MANAGER)

    await asyncio.gather(*(add(range(first, CROWD, WRITERS)) for first in range(WRITERS)))


async def has_settled(fleet: Fleet, log: AuditLog, *, pods: int, granted: int) -> None:
    """Wait until all pods run, the grant is there, and nobody has anything more to ask because of it.

    A bill that is made out earlier lacks what comes last.
    """
    calm, asked_before = 0, -1

    async def is_so() -> bool:
        nonlocal calm, asked_before
        is_there = (
            await running_pods(fleet) == pods
            and (await fleet.config_of(NODE)).status.assigned_ip_count == granted
            and await shows_what_is_held(fleet)
        )
        asked = sum(counted(log.since(0, user)).total() for user in (AGENT, CONTROLLER))
        is_calm = is_there and not log.under_way() and asked == asked_before
        calm, asked_before = (calm + 1 if is_calm else 0), asked
        return calm == CALM_LOOKS

    await until(is_so)


async def shows_what_is_held(fleet: Fleet) -> bool:
    """Whether the ClusterSubnet, which is written some seconds later, counts what the nodes have."""
    configs = (await fleet.cluster.list(NodeNetworkConfig)).items
    held = sum(
        bool(container.primary_ip) + len(container.ip_assignments)
        for config in configs
        for container in config.status.network_containers
    )
    return [each.status.reserved for each in (await fleet.cluster.list(ClusterSubnet)).items] == [held]


async def running_pods(fleet: Fleet) -> int:
    """How many pods of the node run; -1 while others of it do not."""
    pods = (await fleet.cluster.list(Pod, "default", fields=f"spec.nodeName={NODE}")).items
    return len(pods) if all(pod.status.phase is PodPhase.RUNNING for pod in pods) else -1


async def generation_of(fleet: Fleet) -> int:
    return (await fleet.config_of(NODE)).metadata.generation


def test_a_pod_for_which_there_is_room_costs_no_request_at_all(bill: Bill) -> None:
    agent, controller = map(counted, bill.few)
    assert agent == {}
    assert controller == {}


def test_a_burst_costs_the_agent_one_write_whatever_its_size(bill: Bill) -> None:
    assert bill.request_changes == 1
    assert counted(bill.burst[0]) == {"patch nodenetworkconfigs": 1}


def test_a_change_of_a_request_costs_the_controller_two_writes_at_most(bill: Bill) -> None:
    requests = counted(bill.burst[1])
    assert requests["update nodenetworkconfigs/status"] == bill.request_changes
    assert requests.total() <= 2 * bill.request_changes, requests


def test_an_agent_asks_for_the_pods_of_its_own_node_alone(bill: Bill) -> None:
    asked = [request for request in bill.agent if request.object_ref.resource == "pods"]
    assert asked
    assert all(f"fieldSelector=spec.nodeName%3D{NODE}" in request.request_uri for request in asked)


def test_of_5000_pods_elsewhere_an_agent_receives_nothing(bill: Bill) -> None:
    # A pod takes more than 1,000 bytes on the wire. What is received is bookmarks, and what keeps connections going.
    assert bill.crowd_bytes < CROWD * 10
    assert bill.start_bytes < CROWD * 100
    assert bill.own_bytes < FEW * 10_000
