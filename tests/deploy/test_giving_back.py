"""What pods and nodes leave behind is taken back on a real API server, by programs with their own roles and no more."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cli.processes import until
from control_plane.cluster import ControlPlane
from deploy.installed import NAMESPACE, Installed, connected
from deploy.programs import (
    Configuration,
    NodeFiles,
    Site,
    a_controller,
    an_agent,
    an_allocator,
    clear_networks,
    clear_nodes,
    define,
    secondary,
    stop_unrefused,
)
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.core.ranges import parse_address
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import Naming, reservation_name
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import Pod, PodContainer, PodSpec

SLICED = secondary("returned-sliced", range="10.22.0.0/16", node_slice_size="/24")
SHARED = secondary("returned-shared", range="10.23.0.0/24")
STAYS, GOES = "returned-a", "returned-b"
KEPT, DELETED, GARBAGE, STRANDED = (
    f"{STAYS}-kept",
    f"{STAYS}-deleted",
    f"{STAYS}-garbage",
    f"{GOES}-stranded",
)
LEAKED = f"{STAYS}-leaked"
"""The only one that there is no Pod of."""
IMPATIENT = {
    "PODTIDE_CONTACT_TIMEOUT": "1s",
    "PODTIDE_QUARANTINE": "2s",
    "PODTIDE_LEAK_GRACE": "1s",
    "PODTIDE_REPAIR_INTERVAL": "1s",
}


class Books:
    """All that the cluster says of the two networks, as an administrator reads it."""

    def __init__(self, admin: KubernetesCluster) -> None:
        self._admin = admin

    async def holders(self) -> dict[str, set[str]]:
        """By the network, the pods that hold addresses of it or for which such are reserved."""
        pools = (await self._admin.list(IPPool, NAMESPACE)).items
        reservations = (await self._admin.list(OverlappingRangeIPReservation, NAMESPACE)).items
        said = [
            *((pool.metadata.name, held.podref) for pool in pools for held in pool.spec.allocations.values()),
            *((each.metadata.name, each.spec.podref) for each in reservations),
        ]
        return {
            network["name"]: {
                podref.removeprefix("default/") for name, podref in said if name.startswith(network["name"])
            }
            for network in (SLICED, SHARED)
        }

    async def pool_of(self, node: str) -> IPPool | None:
        pools = (await self._admin.list(IPPool, NAMESPACE)).items
        own = [each for each in pools if each.metadata.annotations.get(NODE_ANNOTATION) == node]
        return own[0] if own else None

    async def leases(self) -> set[str]:
        return {each.metadata.name for each in (await self._admin.list(Lease, NAMESPACE)).items}

    async def nodes_with_slices(self) -> set[str]:
        listed = await self._admin.get(NodeSlicePool, SLICED["name"], NAMESPACE)
        entries = listed.status.allocations if listed.status else []
        return {each.node_name for each in entries} - {""}


async def bind(admin: KubernetesCluster, node: str, *names: str) -> None:
    """Let there be Pods on a node."""
    spec = PodSpec(node_name=node, containers=[PodContainer(name="main", image="web")])
    for name in names:
        await admin.create(
            Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec), manager="test"
        )


def clear_pods(control_plane: ControlPlane) -> None:
    control_plane.kubectl(
        *("delete", "pods", KEPT, DELETED, GARBAGE, STRANDED),
        *("--namespace=default", "--force", "--grace-period=0"),
    )


def with_alive(network: Configuration, sandboxes: Iterable[str]) -> Configuration:
    """The network as a runtime states it for GC."""
    alive = [{"containerID": each, "ifname": "eth0"} for each in sandboxes]
    return {**network, "cni.dev/valid-attachments": alive}


async def reserve_for_no_pod(admin: KubernetesCluster, slice_: str) -> None:
    """Of such a reservation nobody can prove that it is a leak, so that repair leaves it: it goes with its slice."""
    address = parse_address(slice_.replace(".0/24", ".200"))
    place = ObjectMeta(name=reservation_name(SLICED["name"], address), namespace=NAMESPACE)
    spec = OverlappingRangeIPReservationSpec(podref="nobody")
    await admin.create(OverlappingRangeIPReservation(metadata=place, spec=spec), manager="test")


@pytest.mark.parametrize("naming", Naming)
async def test_with_its_own_role_each_program_takes_back_what_is_left_and_is_refused_nothing(
    installed: Installed, tmp_path: Path, naming: Naming
) -> None:
    site, here, there = Site(tmp_path), NodeFiles(tmp_path, STAYS), NodeFiles(tmp_path, GOES)
    async with connected(installed.control_plane.kubeconfig) as admin, AsyncExitStack() as programs:
        books = Books(admin)
        for name in (STAYS, GOES):
            await admin.create(Node(metadata=ObjectMeta(name=name)), manager="test")
        programs.push_async_callback(clear_nodes, admin, [STAYS, GOES])
        await define(admin, SLICED, SHARED)
        programs.push_async_callback(clear_networks, admin, SLICED, SHARED)
        await bind(admin, STAYS, KEPT, DELETED, GARBAGE)
        await bind(admin, GOES, STRANDED)
        programs.callback(clear_pods, installed.control_plane)

        allocator, url = await programs.enter_async_context(an_allocator(site))
        controller = await programs.enter_async_context(
            a_controller(site, url, installed.controller(), naming, **IMPATIENT)
        )
        agents = [
            await programs.enter_async_context(an_agent(node, installed.agent(node.name)))
            for node in (here, there)
        ]
        for agent in agents:
            await agent.logged("installed")
        for network in (SLICED, SHARED):
            for pod in (KEPT, DELETED, GARBAGE, LEAKED):
                await here.address(pod, network)
            await there.address(STRANDED, network)

        for network in (SLICED, SHARED):
            assert await here.call("DEL", DELETED, network) == {}
            assert await here.call("GC", "", with_alive(network, [KEPT, LEAKED])) == {}

        async def pods_hold(*pods: str) -> bool:
            return set(map(frozenset, (await books.holders()).values())) == {frozenset(pods)}

        await until(lambda: pods_hold(KEPT, STRANDED))

        await stop_unrefused(agents[1])
        left = await books.pool_of(GOES)
        assert left is not None
        assert left.metadata.name in await books.leases()
        await reserve_for_no_pod(admin, left.spec.range)
        await admin.delete(Node, GOES)

        async def is_freed() -> bool:
            return await books.nodes_with_slices() == {STAYS}

        await until(is_freed)
        assert await books.pool_of(GOES) is None
        assert left.metadata.name not in await books.leases()
        await until(lambda: pods_hold(KEPT))

        await stop_unrefused(agents[0], controller, allocator)
        repaired = {
            (line["pod"], line["pool"].startswith(SLICED["name"]))
            for line in controller.lines
            if line["event"] == "released a leaked address"
        }
        leaks = {(f"default/{pod}", is_sliced) for pod in (LEAKED, STRANDED) for is_sliced in (True, False)}
        assert repaired == leaks, "all else was given back by the agent, and the pod that lives keeps its own"
