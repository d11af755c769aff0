"""A node's bridge keeps its gateways, whatever becomes of the agent and of the bridge."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from cli.processes import Program, until
from deploy.container_runtime import INTERFACE_PLUGINS, Namespace, called_from, ip, made_namespaces
from deploy.node_in_namespace import (
    NodeInNamespace,
    containers_of,
    in_cidrs,
    show_addresses,
    show_containers,
)
from deploy.test_several_cidrs import CIDRS, FIRST, LATER, reach_each_other
from left_out import leave_out
from podtide.cni.conflist import BRIDGE
from podtide.resources.node_network_config import CidrOfAddresses, IPAssignment, NetworkContainer

pytestmark = [pytest.mark.slow, pytest.mark.real_time]

GATEWAYS = {"10.1.0.1/24", "10.9.0.1/28"}


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """A node and two pods."""
    with made_namespaces(3) as made:
        yield made


@pytest.fixture
def node(tmp_path: Path, namespaces: list[Namespace]) -> NodeInNamespace:
    return NodeInNamespace(tmp_path, namespaces[0], "bridge")


async def started(node: NodeInNamespace, pods: list[Namespace]) -> dict[str, Namespace]:
    """The pods by the addresses that they are given."""
    return {await asyncio.to_thread(node.runtime.add, pod): pod for pod in pods}


async def network_is_installed(agent: Program) -> None:
    for _ in ("the plugin", "the network"):
        await agent.logged("installed")


async def gateways_are(node: NodeInNamespace, expected: set[str]) -> None:
    async def are() -> bool:
        return await asyncio.to_thread(node.addresses_of, BRIDGE) == expected

    await until(are)


def mac_of_bridge(node: NodeInNamespace) -> str:
    [bridge] = json.loads(ip("-n", node.namespace.name, "-json", "link", "show", BRIDGE))
    address: str = bridge["address"]
    return address


async def test_what_a_killed_agent_left_works_on_and_the_next_one_goes_on_with_it(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    _, *pods = namespaces
    async with node.cluster() as cluster:
        async with node.agent() as agent:
            await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
            await network_is_installed(agent)
            on = await started(node, pods)
            agent.process.kill()
        await reach_each_other(on[FIRST], on[LATER])
        before = mac_of_bridge(node)
        async with node.agent() as agent:
            await agent.logged("listening")
            await reach_each_other(on[FIRST], on[LATER])
            await asyncio.to_thread(node.runtime.delete, on[LATER])
            assert await asyncio.to_thread(node.runtime.add, on[LATER]) == LATER
            # The address was another interface's a moment ago, and Linux believes no other for a second (`locktime`).
            ip("-n", on[FIRST].name, "neigh", "flush", "all")
            await reach_each_other(on[FIRST], on[LATER])
            assert mac_of_bridge(node) == before
            await agent.stop()


async def test_after_a_reboot_the_network_is_there_and_a_pod_waits_for_its_gateway(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    _, *pods = namespaces
    async with node.cluster() as cluster:
        async with node.agent() as agent:
            await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
            await network_is_installed(agent)
            agent.process.kill()
        ip("-n", node.namespace.name, "link", "delete", BRIDGE)
        async with node.agent() as agent:
            await agent.logged("listening")
            on = await started(node, pods)
            await reach_each_other(on[FIRST], on[LATER])
            await agent.stop()


async def test_what_somebody_deletes_comes_back(node: NodeInNamespace, namespaces: list[Namespace]) -> None:
    _, *pods = namespaces
    async with node.cluster() as cluster, node.agent() as agent:
        await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
        await network_is_installed(agent)
        on = await started(node, pods)
        name = node.namespace.name

        async def is_up() -> bool:
            return "state UP" in await asyncio.to_thread(ip, "-n", name, "link", "show", BRIDGE)

        ip("-n", name, "address", "delete", "10.9.0.1/28", "dev", BRIDGE)
        await gateways_are(node, GATEWAYS)
        await reach_each_other(on[FIRST], on[LATER])

        ip("-n", name, "link", "set", BRIDGE, "down")
        await until(is_up)
        await reach_each_other(on[FIRST], on[LATER])

        ip("-n", name, "link", "delete", BRIDGE)
        await gateways_are(node, GATEWAYS)
        for pod in pods:  # their interfaces were on the bridge that is gone
            await asyncio.to_thread(node.runtime.delete, pod)
        on = await started(node, pods)
        await reach_each_other(on[FIRST], on[LATER])
        await agent.stop()


async def test_a_cidr_that_comes_later_has_its_gateway_before_its_pods_and_loses_it_after_them(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    _, *pods = namespaces
    async with node.cluster() as cluster, node.agent() as agent:
        await show_addresses(cluster, FIRST, cidrs=CIDRS[:1])
        await network_is_installed(agent)
        assert node.addresses_of(BRIDGE) == {"10.1.0.1/24"}
        ip("-n", node.namespace.name, "address", "add", "192.168.9.1/24", "dev", BRIDGE)
        await asyncio.to_thread(node.runtime.add, pods[0])

        [small] = await containers_of(cluster)
        later = IPAssignment(name="later", ip=LATER)
        grown = structs.replace(
            in_cidrs(small, CIDRS), ip_assignments=[*small.ip_assignments, later], version=2
        )
        await show_containers(cluster, grown)
        assert await asyncio.to_thread(node.runtime.add, pods[1]) == LATER
        await reach_each_other(*pods)

        await show_containers(cluster, structs.replace(small, version=3))
        await agent.logged("the cluster contradicts the pool")
        await reach_each_other(*pods)
        await asyncio.to_thread(node.runtime.delete, pods[1])
        await show_containers(cluster, structs.replace(small, version=4))
        await gateways_are(node, {"10.1.0.1/24", "192.168.9.1/24"})
        await agent.stop()


async def test_the_bridge_of_an_older_podtide_is_taken_over_with_the_pods_on_it(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    """The bridge plugin made it as the gateway, and knew of one CIDR."""
    _, old, new = namespaces
    await asyncio.to_thread(add_by_plugin_as_gateway, node, old)
    before = mac_of_bridge(node)
    async with node.cluster() as cluster, node.agent() as agent:
        await show_addresses(cluster, LATER, cidrs=[CIDRS[1], CIDRS[0]])
        [container] = await containers_of(cluster)
        both = [*container.ip_assignments, IPAssignment(name="first", ip="10.1.0.6")]
        await show_containers(cluster, structs.replace(container, ip_assignments=both, version=2))
        await network_is_installed(agent)
        assert await asyncio.to_thread(node.runtime.add, new) == LATER
        await reach_each_other(old, new)
        assert node.addresses_of(BRIDGE) == GATEWAYS
        assert mac_of_bridge(node) == before
        await agent.stop()


def add_by_plugin_as_gateway(node: NodeInNamespace, pod: Namespace) -> None:
    network = {
        "cniVersion": "1.0.0",
        "name": "podtide",
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipam": {
            "type": "static",
            "addresses": [{"address": f"{FIRST}/24", "gateway": "10.1.0.1"}],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    environment = {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": pod.name,
        "CNI_NETNS": pod.path,
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(INTERFACE_PLUGINS),
        "PATH": os.environ["PATH"],
    }
    subprocess.run(
        node.namespace.command(INTERFACE_PLUGINS / "bridge"),
        input=json.dumps(network),
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )


async def test_pods_of_both_families_have_a_gateway_of_each(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    _, *pods = namespaces
    async with node.cluster() as cluster, node.agent("--route", "0.0.0.0/0", "--route", "::/0") as agent:
        await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
        [four] = await containers_of(cluster)
        six = NetworkContainer(
            id="six",
            subnet_name="pods-v6",
            primary_ipv6="fd01::4",
            subnet_address_space_v6="fd01::/64",
            default_gateway_v6="fd01::1",
            version=1,
            cidrs=[
                CidrOfAddresses(cidr="fd01::/64", gateway="fd01::1"),
                CidrOfAddresses(cidr="fd09::/64", gateway="fd09::1"),
            ],
            ip_assignments=[IPAssignment(name="a", ip="fd01::5"), IPAssignment(name="b", ip="fd09::5")],
        )
        await show_containers(cluster, four, six)
        await network_is_installed(agent)
        on = await started(node, pods)
        assert node.addresses_of(BRIDGE) == {*GATEWAYS, "fd01::1/64", "fd09::1/64"}
        await reach_each_other(on[FIRST], on[LATER])
        addresses = {pod.name: address_of_family_six(pod) for pod in pods}
        assert set(addresses.values()) == {"fd01::5", "fd09::5"}
        one, other = pods
        for caller, callee in ((one, other), (other, one)):
            called = await asyncio.to_thread(called_from, caller, callee, addresses[callee.name])
            assert called == addresses[caller.name]
        await agent.stop()


def address_of_family_six(pod: Namespace) -> str:
    [interface] = json.loads(ip("-n", pod.name, "-json", "-6", "address", "show", "dev", "eth0"))
    [address] = [each["local"] for each in interface["addr_info"] if each["scope"] == "global"]
    return str(address)


_READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
_WITH_RIGHTS = 'exec setpriv --bounding-set "$RIGHTS" --inh-caps=-all --no-new-privs "$@"'
CONFINED = ("unshare", "--mount", "sh", "-c", f"{_READ_ONLY} && {_WITH_RIGHTS}", "confined")
"""As a container runtime starts the agent by the chart: root with no rights but these, and /proc/sys read-only."""


@pytest.fixture
def _confining() -> None:
    if not shutil.which("setpriv") or not shutil.which("unshare"):
        leave_out("capabilities", "install setpriv and unshare (Debian: apt-get install util-linux)")


@pytest.mark.usefixtures("_confining")
async def test_net_admin_is_the_only_right_that_it_takes_and_forwarding_is_left_to_the_node(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    _, *pods = namespaces
    confined = ("env", "RIGHTS=-all,+net_admin", *CONFINED)
    async with node.cluster() as cluster, node.agent(confined=confined) as agent:
        await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
        told = await agent.logged("the node does not forward packets")
        assert "set net.ipv4.ip_forward=1 on the node" in told["reason"]
        await network_is_installed(agent)
        on = await started(node, pods)
        await asyncio.to_thread(forward, node)
        await reach_each_other(on[FIRST], on[LATER])
        await agent.stop()
        assert [line["event"] for line in agent.lines].count("the node does not forward packets") == 1


@pytest.mark.usefixtures("_confining")
async def test_without_that_right_no_network_is_installed_and_the_log_says_why(node: NodeInNamespace) -> None:
    confined = ("env", "RIGHTS=-all", *CONFINED)
    async with node.cluster() as cluster, node.agent(confined=confined) as agent:
        await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
        told = await agent.logged("the bridge lacks gateways; will go on trying")
        assert "Operation not permitted" in told["error"]
        assert "the agent needs the capability NET_ADMIN" in told["error"]
        await agent.stop()
        assert not node.has_network


def forward(node: NodeInNamespace) -> None:
    command = node.namespace.command("sysctl", "-qw", "net.ipv4.ip_forward=1")
    subprocess.run(command, check=True)


async def test_uninstalling_removes_a_bridge_that_nothing_is_on(
    node: NodeInNamespace, namespaces: list[Namespace]
) -> None:
    _, pod, _ = namespaces
    async with node.cluster() as cluster, node.agent() as agent:
        await show_addresses(cluster, FIRST, LATER, cidrs=CIDRS)
        await network_is_installed(agent)
        await asyncio.to_thread(node.runtime.add, pod)
        left = "left the bridge podtide0: 1 interfaces of pods are on it; when they are gone, delete it by "
        assert left in await asyncio.to_thread(uninstall, node)
        assert node.addresses_of(BRIDGE) == GATEWAYS
        await asyncio.to_thread(ip, "netns", "delete", pod.name)  # and the pod's interface with it
        await agent.stop()

    lacks = await asyncio.to_thread(uninstall, node, "setpriv", "--bounding-set", "-all", "--inh-caps=-all")
    assert "left the bridge podtide0: " in lacks
    assert "the capability NET_ADMIN" in lacks
    assert "removed the bridge podtide0\n" in await asyncio.to_thread(uninstall, node)
    assert node.addresses_of(BRIDGE) == set()
    assert "bridge" not in await asyncio.to_thread(uninstall, node)


def uninstall(node: NodeInNamespace, *confined: str) -> str:
    """What `podtide uninstall-cni` says, on the node; it finds no files of podtide's."""
    nowhere = ("--cni-bin-directory", "/nonexistent", "--cni-conf-directory", "/nonexistent")
    command = node.namespace.command(*confined, sys.executable, "-m", "podtide", "uninstall-cni", *nowhere)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
