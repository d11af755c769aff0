"""Three nodes with an agent each, Debian's interface plugins and podtide's addresses: pods reach each other."""

from itertools import permutations

import pytest

from control_plane.cluster import ControlPlane
from e2e.cni import Document, Refused, addresses
from e2e.networks import FLAT, LOCAL, PRIMARY
from e2e.pools import allocations, assigned_count
from e2e.traffic import called_from
from e2e.virtual_nodes import VirtualCluster

SECOND = "net1"
BOTH = ((PRIMARY, "eth0"), (FLAT, SECOND))
"""A pod's networks, each with its interface."""


def address(result: Document) -> str:
    """Its only one."""
    [found] = addresses(result)
    return found


def test_pods_of_three_nodes_reach_each_other_by_the_addresses_of_their_nodes_pools(
    virtual_cluster: VirtualCluster,
) -> None:
    first, second, third = virtual_cluster.nodes
    nodes = [first, first, second, third]
    with virtual_cluster.pods(*nodes) as pods:
        results = [node.plugins.add(PRIMARY, pod) for node, pod in zip(nodes, pods, strict=True)]
        given = [address(result) for result in results]
        assert len(set(given)) == len(pods)

        virtual_cluster.deliver()
        for (one, its), (other, others) in permutations(zip(pods, given, strict=True), 2):
            assert called_from(one.namespace, other.namespace, others) == its

        for node, pod, result in zip(nodes, pods, results, strict=True):
            node.plugins.check(PRIMARY, pod, result)
            node.plugins.delete(PRIMARY, pod)
            with pytest.raises(Refused):
                node.plugins.check(PRIMARY, pod, result)
        assert [assigned_count(node.socket) for node in virtual_cluster.nodes] == [0, 0, 0]


def test_the_same_pods_reach_each_other_by_a_sliced_secondary_network_too(
    virtual_cluster: VirtualCluster, own_control_plane: ControlPlane
) -> None:
    nodes = virtual_cluster.nodes[:2]
    with virtual_cluster.pods(*nodes) as pods:
        first = [node.plugins.add(PRIMARY, pod) for node, pod in zip(nodes, pods, strict=True)]
        second = [node.plugins.add(FLAT, pod, SECOND) for node, pod in zip(nodes, pods, strict=True)]
        virtual_cluster.deliver()
        for results in (first, second):
            one, other = map(address, results)
            assert called_from(pods[0].namespace, pods[1].namespace, other) == one
            assert called_from(pods[1].namespace, pods[0].namespace, one) == other

        for node, pod, on_first, on_second in zip(nodes, pods, first, second, strict=True):
            pool = f"{FLAT['name']}-{node.name}"
            [(offset, entry)] = allocations(own_control_plane, pool).items()
            assert entry == {
                "id": pod.id,
                "podref": f"default/{pod.pod}",
                "ifname": SECOND,
                "poduid": pod.uid,
                "configuration": FLAT["name"],
            }
            assert address(on_second).endswith(f".{offset}")
            node.plugins.check(PRIMARY, pod, on_first)
            node.plugins.check(FLAT, pod, on_second, SECOND)
            node.plugins.delete(FLAT, pod, SECOND)
            node.plugins.check(PRIMARY, pod, on_first)
            node.plugins.delete(PRIMARY, pod)
            assert allocations(own_control_plane, pool) == {}


def test_pods_of_a_node_reach_each_other_over_a_bridge_by_addresses_of_the_nodes_slice(
    virtual_cluster: VirtualCluster,
) -> None:
    node = virtual_cluster.nodes[2]
    with virtual_cluster.pods(node, node) as (one, other):
        its = address(node.plugins.add(LOCAL, one))
        others = address(node.plugins.add(LOCAL, other))
        assert called_from(one.namespace, other.namespace, others) == its
        for pod in (one, other):
            node.plugins.delete(LOCAL, pod)


@pytest.mark.parametrize(("network", "interface"), [(PRIMARY, "eth0"), (FLAT, SECOND)])
def test_gc_frees_what_sandboxes_had_that_nobody_knows_any_more(
    virtual_cluster: VirtualCluster, network: Document, interface: str
) -> None:
    """The interface plugins of Debian 12 are older than GC: its plugin for addresses is asked as newer ones ask it."""
    node = virtual_cluster.nodes[0]
    with virtual_cluster.pods(node, node) as (alive, dead):
        both = {pod.id: node.plugins.add(network, pod, interface) for pod in (alive, dead)}
        on_another = node.plugins.add(LOCAL, dead, "net2")
        collect = {
            **network,
            "cniVersion": "1.1.0",
            "cni.dev/valid-attachments": [{"containerID": alive.id, "ifname": interface}],
        }
        node.plugins.run("podtide", collect, {"CNI_COMMAND": "GC"})

        node.plugins.check(network, alive, both[alive.id], interface)
        with pytest.raises(Refused):
            node.plugins.check(network, dead, both[dead.id], interface)
        node.plugins.check(LOCAL, dead, on_another, "net2")
        node.plugins.delete(LOCAL, dead, "net2")
        for pod in (alive, dead):
            node.plugins.delete(network, pod, interface)


def test_a_killed_agent_leaves_pods_what_they_have_and_gives_it_to_nobody_else_when_it_is_back(
    virtual_cluster: VirtualCluster,
) -> None:
    node, other = virtual_cluster.nodes[:2]
    with virtual_cluster.pods(node, other, node) as (before, elsewhere, after):
        results = {interface: node.plugins.add(network, before, interface) for network, interface in BOTH}
        away = {
            interface: address(other.plugins.add(network, elsewhere, interface))
            for network, interface in BOTH
        }
        node.agent.kill()
        with pytest.raises(Refused, match=r'"code": ?11'):
            node.plugins.add(PRIMARY, after)
        virtual_cluster.deliver()
        for _, interface in BOTH:
            assert called_from(before.namespace, elsewhere.namespace, away[interface]) == address(
                results[interface]
            )

        node.agent.start()
        for network, interface in BOTH:
            node.plugins.check(network, before, results[interface], interface)
            assert address(node.plugins.add(network, after, interface)) != address(results[interface])
        for holder, pod in ((node, before), (other, elsewhere), (node, after)):
            for network, interface in BOTH:
                holder.plugins.delete(network, pod, interface)
