"""Pods whose addresses are in two CIDRs of a grown subnet reach each other, by the interface plugins of Debian."""

import asyncio
import os
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from cli.processes import running, served_cluster
from cli.test_agent import NODE, Place, join
from deploy.test_primary_network import (
    INTERFACE_PLUGINS,
    PLUGIN,
    Namespace,
    Runtime,
    called_from,
    default_route,
)
from left_out import leave_out
from podtide.agent.cni_installation import CONFLIST
from podtide.agent.request.gateway_warning import TOLD
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import CidrOfAddresses, NodeNetworkConfig

pytestmark = [pytest.mark.slow, pytest.mark.real_time]

FIRST, LATER = "10.1.0.5", "10.9.0.5"
CIDRS = [
    CidrOfAddresses(cidr="10.1.0.0/24", gateway="10.1.0.1"),
    CidrOfAddresses(cidr="10.9.0.0/28", gateway="10.9.0.1"),
]
PING = """
import socket, struct, sys
echo = struct.pack("!BBHHH", 8, 0, 0, 7, 1)
checksum = ~sum(struct.unpack("!4H", echo)) & 0xFFFF
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as link:
    link.settimeout(10)
    link.sendto(struct.pack("!BBHHH", 8, 0, checksum, 7, 1), (sys.argv[1], 0))
    while True:
        packet, (peer, _) = link.recvfrom(100)
        if packet[20] == 0:
            print(peer)
            break
"""


def ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True)  # noqa: S607 - the ip of this machine


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """Two nodes and two pods."""
    if os.geteuid() or not shutil.which("ip") or not (INTERFACE_PLUGINS / "ptp").exists():
        leave_out("network namespaces", "that takes root, iproute2 and containernetworking-plugins")
    made = [Namespace(f"podtide-{uuid.uuid4().hex[:8]}") for _ in range(4)]
    try:
        for namespace in made:
            ip("netns", "add", namespace.name)
            ip("-n", namespace.name, "link", "set", "lo", "up")
        yield made
    finally:
        for namespace in made:
            subprocess.run(["ip", "netns", "delete", namespace.name], check=False)  # noqa: S607 - as above


def ping(pod: Namespace, address: str) -> str:
    """Who answers."""
    answer = subprocess.run(pod.python(PING, address), check=True, capture_output=True, text=True, timeout=20)
    return answer.stdout.strip()


@asynccontextmanager
async def a_node(
    directory: Path, node: Namespace, type_: str, *ips: str, cidrs: list[CidrOfAddresses], tells: str = ""
) -> AsyncIterator[Runtime]:
    """A node with these addresses, shown as the request controller shows them: the first CIDR is the primary's.

    `tells` is the event of a line that its agent has to write before any pod comes.
    """
    await asyncio.to_thread(directory.mkdir)
    place, bin_directory, conf_directory = Place(directory), directory / "bin", directory / "net.d"
    options = (
        *("--cni-bin-directory", bin_directory, "--cni-conf-directory", conf_directory),
        *("--plugin", PLUGIN, "--network-type", type_),
    )
    async with served_cluster(place.kubeconfig) as cluster, running(*place.options, *options) as agent:
        await join(cluster, *ips)
        config = await cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        [container] = config.status.network_containers
        shown = structs.replace(
            container,
            primary_ip=cidrs[0].gateway.removesuffix(".1") + ".4",
            subnet_address_space=cidrs[0].cidr,
            default_gateway=cidrs[0].gateway,
            cidrs=cidrs if len(cidrs) > 1 else [],
        )
        status = structs.replace(config.status, network_containers=[shown])
        await cluster.replace_status(structs.replace(config, status=status), manager="test")
        for _ in ("the plugin", "the network"):
            await agent.logged("installed")
        if tells and not any(line["event"] == tells for line in agent.lines):
            await agent.logged(tells)
        yield Runtime(node, bin_directory, conf_directory / CONFLIST, place.socket)
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


async def test_pods_of_one_node_in_two_cidrs_reach_each_other_by_ptp(
    tmp_path: Path, namespaces: list[Namespace]
) -> None:
    node, _other, *pods = namespaces
    async with a_node(tmp_path / "node", node, "ptp", FIRST, LATER, cidrs=CIDRS) as runtime:
        by_address = {await asyncio.to_thread(runtime.add, pod): pod for pod in pods}
        assert by_address.keys() == {FIRST, LATER}
        await reach_each_other(by_address[FIRST], by_address[LATER])


async def test_an_agent_tells_of_a_second_cidr_before_the_bridge_plugin_refuses_it(
    tmp_path: Path, namespaces: list[Namespace]
) -> None:
    node, _other, *pods = namespaces
    made = a_node(tmp_path / "node", node, "bridge", FIRST, LATER, cidrs=CIDRS, tells=TOLD)
    async with made as runtime:
        await asyncio.to_thread(runtime.add, pods[0])
        with pytest.raises(AssertionError, match="already has an IP address different from"):
            await asyncio.to_thread(runtime.add, pods[1])


@pytest.mark.parametrize("type_", ["ptp", "bridge"])
async def test_pods_of_two_nodes_in_two_cidrs_reach_each_other(
    tmp_path: Path, namespaces: list[Namespace], type_: str
) -> None:
    *nodes, first, later = namespaces
    ip(
        "link",
        "add",
        "eth0",
        "netns",
        nodes[0].name,
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        nodes[1].name,
    )
    for number, (node, beyond) in enumerate(zip(nodes, ("10.9.0.0/28", "10.1.0.0/24"), strict=True), 1):
        ip("-n", node.name, "address", "add", f"192.168.7.{number}/24", "dev", "eth0")
        ip("-n", node.name, "link", "set", "eth0", "up")
        ip("-n", node.name, "route", "add", beyond, "via", f"192.168.7.{3 - number}")
    async with AsyncExitStack() as stack:
        for node, pod, address, cidr in zip(nodes, (first, later), (FIRST, LATER), CIDRS, strict=True):
            directory = tmp_path / address
            made = a_node(directory, node, type_, address, cidrs=[cidr])
            runtime = await stack.enter_async_context(made)
            assert await asyncio.to_thread(runtime.add, pod) == address
        await reach_each_other(first, later)
