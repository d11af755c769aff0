"""Pods whose addresses are in two CIDRs of a grown subnet reach each other, by the interface plugins of Debian."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from deploy.container_runtime import (
    Namespace,
    Runtime,
    called_from,
    default_route,
    ip,
    made_namespaces,
    ping,
)
from deploy.node_in_namespace import NodeInNamespace, show_addresses
from podtide.resources.node_network_config import CidrOfAddresses

pytestmark = [pytest.mark.slow, pytest.mark.real_time]

FIRST, LATER = "10.1.0.5", "10.9.0.5"
CIDRS = [
    CidrOfAddresses(cidr="10.1.0.0/24", gateway="10.1.0.1"),
    CidrOfAddresses(cidr="10.9.0.0/28", gateway="10.9.0.1"),
]


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """Two nodes and two pods."""
    with made_namespaces(4) as made:
        yield made


@asynccontextmanager
async def a_node(
    directory: Path, namespace: Namespace, type_: str, *ips: str, cidrs: list[CidrOfAddresses]
) -> AsyncIterator[Runtime]:
    """A node with these addresses, and its network installed."""
    node = await asyncio.to_thread(NodeInNamespace, directory, namespace, type_)
    async with node.cluster() as cluster, node.agent() as agent:
        await show_addresses(cluster, *ips, cidrs=cidrs)
        for _ in ("the plugin", "the network"):
            await agent.logged("installed")
        yield node.runtime
        await agent.stop()


async def reach_each_other(first: Namespace, later: Namespace) -> None:
    """Both ways, and each by the gateway of its own CIDR."""
    assert "via 10.1.0.1" in await asyncio.to_thread(default_route, first)
    assert "via 10.9.0.1" in await asyncio.to_thread(default_route, later)
    for pod, gateway, other in ((first, "10.1.0.1", LATER), (later, "10.9.0.1", FIRST)):
        assert await asyncio.to_thread(ping, pod, gateway) == gateway
        assert await asyncio.to_thread(ping, pod, other) == other
    assert await asyncio.to_thread(called_from, first, later, LATER) == FIRST
    assert await asyncio.to_thread(called_from, later, first, FIRST) == LATER


@pytest.mark.parametrize("type_", ["ptp", "bridge"])
async def test_pods_of_one_node_in_two_cidrs_reach_each_other(
    tmp_path: Path, namespaces: list[Namespace], type_: str
) -> None:
    node, _other, *pods = namespaces
    async with a_node(tmp_path / "node", node, type_, FIRST, LATER, cidrs=CIDRS) as runtime:
        by_address = {await asyncio.to_thread(runtime.add, pod): pod for pod in pods}
        assert by_address.keys() == {FIRST, LATER}
        await reach_each_other(by_address[FIRST], by_address[LATER])


@pytest.mark.parametrize("type_", ["ptp", "bridge"])
async def test_pods_of_two_nodes_in_two_cidrs_reach_each_other(
    tmp_path: Path, namespaces: list[Namespace], type_: str
) -> None:
    *nodes, first, later = namespaces
    connect(*nodes, beyond=("10.9.0.0/28", "10.1.0.0/24"))
    async with AsyncExitStack() as stack:
        for node, pod, address, cidr in zip(nodes, (first, later), (FIRST, LATER), CIDRS, strict=True):
            made = a_node(tmp_path / address, node, type_, address, cidrs=[cidr])
            runtime = await stack.enter_async_context(made)
            assert await asyncio.to_thread(runtime.add, pod) == address
        await reach_each_other(first, later)


def connect(*nodes: Namespace, beyond: tuple[str, ...]) -> None:
    """Put a cable between two nodes, and a route to each other's CIDRs into both."""
    one, other = (node.name for node in nodes)
    ip("link", "add", "eth0", "netns", one, "type", "veth", "peer", "name", "eth0", "netns", other)
    for number, (node, cidr) in enumerate(zip(nodes, beyond, strict=True), 1):
        ip("-n", node.name, "address", "add", f"192.168.7.{number}/24", "dev", "eth0")
        ip("-n", node.name, "link", "set", "eth0", "up")
        ip("-n", node.name, "route", "add", cidr, "via", f"192.168.7.{3 - number}")
